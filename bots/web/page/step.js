// @ts-check
// Which cards of a step have been on the screen, whole: "Run all" runs these, by
// their digests, and counts once all of them were.
import { useEffect, useReducer } from 'preact/hooks'

/** By step, the digests of the cards that were seen. @type {Map<string, Map<string, {digest: string, mine: boolean}>>} */
const steps = new Map()
/** @type {Set<() => void>} */
const listeners = new Set()

/**
 * Notes a card, and says what "Run all" on it would run: null while a card of its
 * step has not been seen, or there is no other.
 * @param {any} card
 * @param {boolean} seen
 * @param {boolean} mine
 * @returns {Record<string, string>|null}
 */
export function useStep(card, seen, mine) {
  const [, changed] = useReducer((/** @type {number} */ n) => n + 1, 0)
  const key = card.step ? card.step + ' ' + (card.in?.thread ?? '') : ''
  useEffect(() => {
    if (!key) return
    const listen = () => changed(0)
    listeners.add(listen)
    return () => { listeners.delete(listen) }
  }, [key])
  useEffect(() => {
    if (!key || !seen) return
    const cards = steps.get(key) ?? new Map()
    steps.set(key, cards.set(card.call, { digest: card.digest, mine }))
    listeners.forEach((listen) => listen())
    return () => {
      cards.delete(card.call)
      if (cards.size === 0) steps.delete(key)
      listeners.forEach((listen) => listen())
    }
  }, [key, seen, mine, card.call, card.digest])
  const cards = steps.get(key)
  if (!cards || !mine || cards.size < card.together + 1) return null
  return Object.fromEntries([...cards].filter(([, c]) => c.mine).map(([id, c]) => [id, c.digest]))
}
