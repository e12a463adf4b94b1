// @ts-check
// A JSON document as a tree, fully expanded at first up to a number of lines.
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'
import { read } from './json.js'

/** @typedef {import('./json.js').Value} Value */

// Number of lines shown at first, and ten times as many with each press.
const first = 200
// Maximum length of one string; Raw shows all of it.
const longest = 2000

/** @param {Value} v */
const opens = (v) => (v.kind === 'object' || v.kind === 'array') && v.items.length > 0

/**
 * A document as a tree. If it isn't JSON, or is too deep, other is shown.
 * @param {{text: string, label: string, other: any}} props
 */
export function Tree({ text, label, other }) {
  const root = useMemo(() => {
    try {
      return read(text)
    } catch {
      return null
    }
  }, [text])
  return root ? html`<${Rows} root=${root} label=${label} />` : other
}

/**
 * Returns the expanded lines up to a limit, and their total number.
 * @param {Value} root
 * @param {Set<Value>} closed
 * @param {number} limit
 */
function linesOf(root, closed, limit) {
  /** @type {{value: Value, key: string, level: number, parent: Value|null, place: number, of: number}[]} */
  const list = []
  let all = 0
  /** @param {Value} v @param {string} key @param {number} level @param {Value|null} parent @param {number} place @param {number} of */
  const walk = (v, key, level, parent, place, of) => {
    if (all++ < limit) list.push({ value: v, key, level, parent, place, of })
    if (closed.has(v)) return
    v.items.forEach((item, i) => walk(item, v.kind === 'object' ? v.keys[i].slice(1, -1) : String(i), level + 1, v, i + 1, v.items.length))
  }
  if (opens(root)) root.items.forEach((item, i) => walk(item, root.kind === 'object' ? root.keys[i].slice(1, -1) : String(i), 1, null, i + 1, root.items.length))
  else walk(root, '', 1, null, 1, 1)
  return { list, all }
}

/** @param {{root: Value, label: string}} props */
function Rows({ root, label }) {
  const [closed, setClosed] = useState(/** @type {Set<Value>} */ (new Set()))
  const [limit, setLimit] = useState(first)
  const [at, setAt] = useState(/** @type {Value|null} */ (null))
  const tree = useRef(/** @type {HTMLElement|null} */ (null))
  const moved = useRef(false) // by a key: then move the focus too
  const { list, all } = useMemo(() => linesOf(root, closed, limit), [root, closed, limit])
  const here = Math.max(list.findIndex((l) => l.value === at), 0)
  useLayoutEffect(() => {
    if (moved.current) /** @type {HTMLElement|undefined} */ (tree.current?.children[here])?.focus()
    moved.current = false
  }, [here])
  /** @param {Value} v @param {boolean} open */
  const toggle = (v, open) => setClosed((old) => {
    const now = new Set(old)
    if (open) now.delete(v)
    else now.add(v)
    return now
  })
  /** @param {KeyboardEvent} e */
  const press = (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return
    const line = list[here]
    const open = opens(line.value) && !closed.has(line.value)
    /** @param {number} n */
    const go = (n) => {
      moved.current = n !== here
      setAt(list[Math.min(Math.max(n, 0), list.length - 1)].value)
    }
    if (e.key === 'ArrowDown') go(here + 1)
    else if (e.key === 'ArrowUp') go(here - 1)
    else if (e.key === 'Home') go(0)
    else if (e.key === 'End') go(list.length - 1)
    else if (e.key === 'ArrowRight' && open) go(here + 1)
    else if (e.key === 'ArrowRight' && opens(line.value)) toggle(line.value, true)
    else if (e.key === 'ArrowLeft' && open) toggle(line.value, false)
    else if (e.key === 'ArrowLeft' && line.parent) go(list.findIndex((l) => l.value === line.parent))
    else if ((e.key === 'Enter' || e.key === ' ') && opens(line.value)) toggle(line.value, !open)
    else return
    e.preventDefault()
  }
  return html`<div class="tree-frame">
    <div class="tree" role="tree" aria-label=${label} ref=${tree} onKeyDown=${press}>
      ${list.map((l, i) => {
        const open = opens(l.value) ? !closed.has(l.value) : undefined
        return html`<div key=${i} role="treeitem" class="tree-line" aria-level=${l.level} aria-expanded=${open} aria-setsize=${l.of} aria-posinset=${l.place} tabindex=${i === here ? 0 : -1} onClick=${() => { setAt(l.value); if (open !== undefined) toggle(l.value, !open) }} onFocus=${() => setAt(l.value)}>
          <span class=${'mark ' + (open === undefined ? 'none' : open ? 'open' : '')} aria-hidden="true"></span><span>${l.key === '' && l.value === root ? '' : html`<span class="tree-key">${l.key}</span>: `}<${Shown} value=${l.value} /></span>
        </div>`
      })}
    </div>
    ${all > limit ? html`<button type="button" class="quiet" onClick=${() => setLimit(limit * 10)}>${t('Show more: {n} of {all} lines', { n: Math.min(limit * 10, all), all })}</button>` : ''}
  </div>`
}

/** @param {{value: Value}} props */
function Shown({ value }) {
  if (value.kind === 'object') return html`<span class="dim">${value.items.length ? `{ ${value.items.length} }` : '{}'}</span>`
  if (value.kind === 'array') return html`<span class="dim">${value.items.length ? `[ ${value.items.length} ]` : '[]'}</span>`
  if (value.raw.length > longest) return html`<span class=${'tree-' + value.kind}>${value.raw.slice(0, longest)}</span><span class="dim">… ${t('{n} characters', { n: value.raw.length - 2 })}</span>`
  return html`<span class=${'tree-' + value.kind}>${value.raw}</span>`
}
