// @ts-check
// The stream of events. It reconnects by itself; events need not be kept, because each
// connection begins with the whole state.
import { address, failureOf, headers } from './api.js'
import { keepsStream, onKeeping } from './notify.js'

// It reconnects after a random time between these, in ms, because all tabs lose it at
// once.
const shortest = 200
const longest = 10_000
// A hidden tab closes its connection after this time, except for the one that notifies.
const hiddenFor = 60_000
// An interruption shorter than this, in ms, is not shown.
const unnoticed = 1500

/**
 * @typedef {object} Listener
 * @property {(name: string, data: any) => void} event may throw, and then gets the whole state again
 * @property {(state: 'open'|'away'|'signedOut'|'gone') => void} state
 */

/**
 * Follows a conversation ('' for none) until the returned function is called.
 * @param {string} thread
 * @param {Listener} listener
 */
export function follow(thread, listener) {
  let ended = false
  let pause = 2 * shortest
  /** @type {AbortController|undefined} */
  let open
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let noticed

  const later = () => {
    if (ended || document.hidden && hiddenLong) return
    clearTimeout(timer)
    timer = setTimeout(run, shortest + Math.random() * (pause - shortest))
    pause = Math.min(pause * 2, longest)
  }

  const run = async () => {
    clearTimeout(timer)
    const mine = new AbortController()
    open = mine
    try {
      const answer = await fetch(address('events' + (thread ? '?thread=' + encodeURIComponent(thread) : '')), { headers: headers(), signal: mine.signal, cache: 'no-store' })
      if (!answer.ok || !answer.body) {
        const failure = await failureOf(answer)
        if (failure.status === 401 || failure.status === 404) clearTimeout(noticed)
        if (failure.status === 401) return listener.state('signedOut')
        if (failure.status === 404) return listener.state('gone')
        throw failure
      }
      clearTimeout(noticed)
      noticed = undefined
      listener.state('open')
      await read(answer.body, (name, data) => {
        if (name === 'thread') pause = 2 * shortest
        if (name !== 'bye') listener.event(name, data)
      })
    } catch (err) {
      if (ended || mine !== open || mine.signal.aborted) return
    }
    if (ended || mine !== open) return
    mine.abort()
    noticed ??= setTimeout(() => listener.state('away'), unnoticed)
    later()
  }

  let hiddenLong = false
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let hiding
  const seen = () => {
    clearTimeout(hiding)
    if (document.hidden && !keepsStream()) {
      hiding = setTimeout(() => {
        hiddenLong = true
        open?.abort()
      }, hiddenFor)
    } else if (hiddenLong) {
      hiddenLong = false
      pause = 2 * shortest
      run()
    }
  }
  const online = () => {
    pause = 2 * shortest
    if (open?.signal.aborted) run()
  }
  const offline = () => { // a lost connection reports nothing by itself
    clearTimeout(timer)
    open?.abort()
    listener.state('away')
  }
  document.addEventListener('visibilitychange', seen)
  addEventListener('online', online)
  addEventListener('offline', offline)
  const forget = onKeeping(seen)
  run()
  return () => {
    ended = true
    clearTimeout(timer)
    clearTimeout(noticed)
    clearTimeout(hiding)
    document.removeEventListener('visibilitychange', seen)
    forget()
    removeEventListener('online', online)
    removeEventListener('offline', offline)
    open?.abort()
  }
}

/**
 * Reads server-sent events to the end.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(name: string, data: any) => void} event
 */
async function read(body, event) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    rest += value
    const parts = rest.split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      let name = ''
      let data = ''
      for (const line of part.split('\n')) {
        if (line.startsWith('event: ')) name = line.slice(7)
        if (line.startsWith('data: ')) data += line.slice(6)
      }
      if (name) event(name, JSON.parse(data))
    }
  }
}
