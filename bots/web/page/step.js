// @ts-check
// The cards of a step that were completely on the screen: "Run all" runs these, by their
// digests, and is enabled when all of them were.
import { useEffect, useReducer } from 'preact/hooks'

/** The cards on this page, by step. @type {Map<string, Map<string, {digest: string, mine: boolean, seen: boolean}>>} */
const steps = new Map()
/** @type {Set<() => void>} */
const listeners = new Set()

/**
 * Records a card, and returns what "Run all" on it would run: the cards of its step that
 * are on this page and that the reader may decide, and whether each of them was seen.
 * @param {any} card
 * @param {boolean} seen
 * @param {boolean} mine
 * @returns {{cards: Record<string, string>, count: number, ready: boolean}}
 */
export function useStep(card, seen, mine) {
  const [, changed] = useReducer((/** @type {number} */ n) => n + 1, 0)
  const key = card.step ?? ''
  useEffect(() => {
    if (!key) return
    const listen = () => changed(0)
    listeners.add(listen)
    return () => { listeners.delete(listen) }
  }, [key])
  useEffect(() => {
    if (!key) return
    const cards = steps.get(key) ?? new Map()
    steps.set(key, cards.set(card.call, { digest: card.digest, mine, seen }))
    listeners.forEach((listen) => listen())
    return () => {
      cards.delete(card.call)
      if (cards.size === 0) steps.delete(key)
      listeners.forEach((listen) => listen())
    }
  }, [key, seen, mine, card.call, card.digest])
  const all = [...steps.get(key) ?? []].filter(([, c]) => c.mine)
  return { cards: Object.fromEntries(all.map(([id, c]) => [id, c.digest])), count: mine ? all.length : 0, ready: all.every(([, c]) => c.seen) }
}
