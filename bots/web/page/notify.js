// @ts-check
// Notifications: off until a person turns them on, which asks for permission. They report
// that there is something new, without its content. One tab notifies for all: the holder
// of the Web Lock keeps its stream while it is hidden, and notifies only while no tab of
// nize is visible.
import { useReducer, useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { icon } from './icon.js'
import { t } from './words.js'

const key = 'nize.notify'
const lock = 'nize-events'
const seenLock = 'nize-seen'

let holds = false
/** @type {Set<() => void>} */
const listeners = new Set()
const changed = () => listeners.forEach((listen) => listen())

const known = () => 'Notification' in window && 'locks' in navigator
const on = () => known() && localStorage.getItem(key) === 'on' && Notification.permission === 'granted'

/** Whether this tab keeps its stream while it is hidden. */
export const keepsStream = () => holds

/** Calls listen when this tab begins or ceases to keep its stream. @param {() => void} listen */
export function onKeeping(listen) {
  listeners.add(listen)
  return () => { listeners.delete(listen) }
}

/** @type {AbortController|null} */
let waits = null

/** Takes the lock while notifications are on, and releases it. */
function follow() {
  if (on() && !waits) {
    const mine = waits = new AbortController()
    navigator.locks.request(lock, { signal: mine.signal }, () => {
      holds = true
      changed()
      return new Promise((done) => mine.signal.addEventListener('abort', () => done(undefined)))
    }).catch(() => {}).finally(() => {
      holds = false
      changed()
    })
  } else if (!on() && waits) {
    waits.abort()
    waits = null
  }
  changed()
}

/** @type {(() => void)|null} */
let unseen = null

/** Shows by a shared lock that a tab is visible. */
function showSeen() {
  if (document.hidden) {
    unseen?.()
    unseen = null
  } else if (!unseen) {
    const seen = new Promise((/** @type {(v: any) => void} */ done) => { unseen = () => done(undefined) })
    navigator.locks.request(seenLock, { mode: 'shared' }, () => seen).catch(() => {})
  }
}

if (known()) {
  follow()
  showSeen()
  addEventListener('storage', (e) => { if (e.key === key) follow() })
  document.addEventListener('visibilitychange', showSeen)
}

/**
 * Notifies if no tab of nize is visible. A notification replaces an earlier one with the
 * same tag.
 * @param {string} text without any content
 * @param {string} tag
 * @param {string} path the page that it opens
 */
export async function notify(text, tag, path) {
  if (!on() || !document.hidden) return
  const held = (await navigator.locks.query()).held ?? []
  if (held.some((l) => l.name === seenLock)) return
  const shown = new Notification('nize', { body: text, tag: 'nize-' + tag })
  shown.onclick = () => {
    focus()
    shown.close()
    if (location.pathname !== path) history.pushState(null, '', path)
    dispatchEvent(new PopStateEvent('popstate'))
  }
}

const toldKey = 'nize.waiting'

/**
 * Notifies of pending calls if any of them is new to all tabs that notify or are visible:
 * a tab that reconnects, or takes over, repeats nothing.
 * @param {string[]} ids
 * @param {string} text
 * @param {string} path
 */
export function notifyWaiting(ids, text, path) {
  if (!on() || !holds && document.hidden) return
  const told = localStorage.getItem(toldKey)?.split(' ') ?? []
  localStorage.setItem(toldKey, ids.join(' '))
  if (holds && ids.some((id) => !told.includes(id))) notify(text, 'waiting', path)
}

/** The switch for this browser. */
export function Notifications() {
  const [, again] = useReducer((/** @type {number} */ n) => n + 1, 0)
  const [refused, setRefused] = useState(false)
  useEffect(() => onKeeping(() => again(0)), [])
  if (!known()) return null
  const toggle = async () => {
    setRefused(false)
    if (on()) localStorage.removeItem(key)
    else if (await Notification.requestPermission() === 'granted') localStorage.setItem(key, 'on')
    else setRefused(true)
    follow()
  }
  return html`<div class="notify"><button type="button" class="row-button" aria-pressed=${on()} onClick=${toggle}>${on() ? icon('bell') : icon('bell-off')}${on() ? t('Notifications: on') : t('Notifications: off')}</button>
    ${refused ? html`<p class="dim" role="alert">${t('This browser does not allow them here.')}</p>` : ''}</div>`
}
