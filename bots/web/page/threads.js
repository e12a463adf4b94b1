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
 * @property {(id: string, change: {title?: string, updated?: string}) => void} renew changes what the list shows of a conversation, and loads the newest again if it isn't there
 */

/** @returns {Threads} */
export function useThreads() {
  const [{ items, more }, set] = useState({ items: /** @type {any[]} */ ([]), more: false, of: '' })
  const [words, search] = useState('')
  const asked = useRef(0) // a response that comes too late is ignored
  const loading = useRef(0)
  const shown = useRef(items)
  shown.current = items
  const load = useCallback(async () => {
    const mine = ++asked.current
    loading.current++
    const got = await page({ q: words }).catch(() => null)
    loading.current--
    if (!got || mine !== asked.current) return
    const last = got.items[got.items.length - 1]
    set((old) => { // keep older ones that were loaded
      const rest = got.more && old.of === words ? old.items.filter((th) => th.updated < last.updated && !got.items.some((/** @type {any} */ o) => o.id === th.id)) : []
      return { items: [...got.items, ...rest], more: rest.length ? old.more : got.more, of: words }
    })
  }, [words])
  useEffect(() => {
    load()
    const seen = () => { if (!document.hidden) load() } // the streams of other tabs and platforms report nothing here
    document.addEventListener('visibilitychange', seen)
    return () => document.removeEventListener('visibilitychange', seen)
  }, [load])
  /** @param {string} id @param {{title?: string, updated?: string}} change */
  const renew = (id, change) => {
    const listed = shown.current.some((th) => th.id === id)
    if (!listed && words) return
    if (!listed || loading.current) return void load() // a response under way may not have the change
    set((old) => {
      const now = { ...old.items.find((th) => th.id === id), ...change }
      return { ...old, items: change.updated && !words ? [now, ...old.items.filter((th) => th.id !== id)] : old.items.map((th) => th.id === id ? now : th) }
    })
  }
  const next = async () => {
    const mine = asked.current
    const got = await page({ q: words, before: items[items.length - 1].updated }).catch(() => null)
    if (!got || mine !== asked.current) return
    set((old) => ({ items: [...old.items, ...got.items.filter((/** @type {any} */ th) => !old.items.some((o) => o.id === th.id))], more: got.more, of: words }))
  }
  return { items, more, words, search, load, next, renew }
}
