// @ts-check
// A menu behind a button, with mouse and keyboard control.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'

/**
 * @typedef {object} Entry
 * @property {string} label
 * @property {(e: Event) => void} act
 * @property {boolean} [off] not available yet
 * @property {boolean} [first] of a group
 */

/** @param {{label: string, entries: Entry[]}} props */
export function Menu({ label, entries }) {
  const [open, setOpen] = useState(false)
  const root = useRef(/** @type {HTMLElement|null} */ (null))
  const button = useRef(/** @type {HTMLButtonElement|null} */ (null))
  const items = () => /** @type {HTMLButtonElement[]} */ ([...root.current?.querySelectorAll('[role=menuitem]') ?? []])
  useEffect(() => {
    if (!open) return
    const [head] = items()
    head?.focus({ preventScroll: true })
    head?.parentElement?.scrollIntoView({ block: 'nearest' })
    const outside = (/** @type {Event} */ e) => { if (!root.current?.contains(/** @type {Node} */ (e.target))) setOpen(false) }
    addEventListener('pointerdown', outside)
    return () => removeEventListener('pointerdown', outside)
  }, [open])
  const close = () => { setOpen(false); button.current?.focus() }
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    if (!open) return
    const all = items()
    const at = all.indexOf(/** @type {any} */ (document.activeElement))
    /** @param {HTMLElement} i */
    const begins = (i) => i.innerText.toLocaleLowerCase().startsWith(e.key.toLocaleLowerCase())
    const letter = e.key.length === 1 && e.key !== ' ' && !e.ctrlKey && !e.metaKey && !e.altKey
    const to = letter ? (all.findIndex((i, n) => n > at && begins(i)) + 1 || all.findIndex(begins) + 1 || at + 1) - 1 : { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[e.key]
    if (to !== undefined) all.at(to % all.length)?.focus()
    else if (e.key === 'Escape') close()
    else if (e.key === 'Tab') return setOpen(false)
    else return
    e.preventDefault()
    e.stopPropagation()
  }
  return html`<span class="menu-of" ref=${root} onKeyDown=${key}>
    <button type="button" ref=${button} class="menu-button" aria-haspopup="menu" aria-expanded=${open} onClick=${() => setOpen(!open)}>${label}</button>
    ${open ? html`<div class="menu-list" role="menu" aria-label=${label}>${entries.map((e) => html`<button type="button" role="menuitem" tabindex="-1" class=${e.first ? 'first' : ''} aria-disabled=${!!e.off} onClick=${(/** @type {Event} */ press) => { if (e.off) return; close(); e.act(press) }}>${e.label}</button>`)}</div>` : ''}
  </span>`
}
