// @ts-check
// The list of the person's conversations as far as loaded: page by page, all of them or
// those that match a search.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { get } from './api.js'

/** @param {Record<string, string>} query */
const page = (query) => get('chat/threads?' + new URLSearchParams(query))

/**
 * @typedef {object} Threads
 * @property {any[]} items
 * @property {boolean} more whether there are older ones
 * @property {string} words of the search
 * @property {(words: string) => void} search
 * @property {() => Promise<void>} load loads the newest again
 * @property {() => Promise<void>} next loads older ones
 */

/** @returns {Threads} */
export function useThreads() {
  const [{ items, more }, set] = useState({ items: /** @type {any[]} */ ([]), more: false, of: '' })
  const [words, search] = useState('')
  const asked = useRef(0) // a response that comes too late is ignored
  const load = useCallback(async () => {
    const mine = ++asked.current
    const got = await page({ q: words }).catch(() => null)
    if (!got || mine !== asked.current) return
    const last = got.items[got.items.length - 1]
    set((old) => { // keep older ones that were loaded
      const rest = got.more && old.of === words ? old.items.filter((th) => th.updated < last.updated && !got.items.some((/** @type {any} */ o) => o.id === th.id)) : []
      return { items: [...got.items, ...rest], more: rest.length ? old.more : got.more, of: words }
    })
  }, [words])
  useEffect(() => { load() }, [load])
  const next = async () => {
    const mine = asked.current
    const got = await page({ q: words, before: items[items.length - 1].updated }).catch(() => null)
    if (!got || mine !== asked.current) return
    set((old) => ({ items: [...old.items, ...got.items.filter((/** @type {any} */ th) => !old.items.some((o) => o.id === th.id))], more: got.more, of: words }))
  }
  return { items, more, words, search, load, next }
}
