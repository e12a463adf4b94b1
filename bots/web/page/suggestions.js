// @ts-check
// Messages suggested by views. Only a person can send them.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { t } from './words.js'

/** @typedef {{server: string, text: string, done: (sent: boolean) => void}} Suggestion */

const most = 3

/** @type {Suggestion[]} */
let open = []
/** @type {(() => void)|undefined} */
let changed

/**
 * Shows a text above the composer; returns false if it was dismissed.
 * @param {string} server
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export function suggest(server, text) {
  if (open.length >= most) return Promise.resolve(false)
  return new Promise((done) => {
    open = [...open, { server, text, done }]
    changed?.()
  })
}

/** @param {{send: (w: import('./composer.js').Writing) => void}} props */
export function Suggestions({ send }) {
  const [list, setList] = useState(open)
  useEffect(() => {
    changed = () => setList(open)
    return () => {
      changed = undefined
      for (const s of open) s.done(false)
      open = []
    }
  }, [])
  /** @param {Event} e @param {Suggestion} s @param {boolean} yes */
  const end = (e, s, yes) => {
    if (!e.isTrusted) return
    open = open.filter((o) => o !== s)
    setList(open)
    if (yes) send({ text: s.text, files: [] })
    s.done(yes)
  }
  return list.map((s) => html`<div class="suggestion" role="group" aria-label=${t('{server} suggests:', { server: s.server })}>
    <p><span class="dim">${t('{server} suggests:', { server: s.server })}</span> <bdi>${s.text}</bdi></p>
    <div class="buttons"><button type="button" onClick=${(/** @type {Event} */ e) => end(e, s, true)}>${t('Send')}</button><button type="button" onClick=${(/** @type {Event} */ e) => end(e, s, false)}>${t('Dismiss')}</button></div>
  </div>`)
}
