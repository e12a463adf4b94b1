// @ts-check
// The arguments of a call for a person: labelled rows, edits of texts as diffs. A button
// shows the canonical JSON, which the digest covers.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'

/** @param {{words: any}} props */
export function Arguments({ words }) {
  const [json, setJSON] = useState(false)
  if (words.args_head) return html`<p class="dim">${words.args_head}</p>${words.args ? html`<pre class="args" tabindex="0" role="group" aria-label=${t('Arguments')}>${words.args}</pre>` : ''}`
  if (!words.args) return null
  return html`<div class="arguments">
    ${json || !words.rows ? html`<pre class="args" tabindex="0" role="group" aria-label=${t('Arguments as JSON')}>${words.args}</pre>` : html`<${Rows} rows=${words.rows} />`}
    ${words.rows ? html`<button type="button" class="quiet as-json" aria-pressed=${json} onClick=${() => setJSON(!json)}>JSON</button>` : ''}
  </div>`
}

/** How a screen reader announces a line of a diff. @type {Record<string, () => string>} */
const ops = { '-': () => t('removed:'), '+': () => t('added:') }

/** @param {{rows: any[]}} props */
export function Rows({ rows }) {
  return html`<dl class="rows-of" aria-label=${t('Arguments')}>${rows.map((row) => html`<div class=${'row ' + row.kind}>
    <dt>${row.label}</dt>
    <dd>${row.kind === 'diff'
      ? html`<pre class="diff" tabindex="0" role="group" aria-label=${row.label}>${(row.lines ?? []).map((/** @type {any} */ l) => html`<span class=${'op op-' + ({ '-': 'out', '+': 'in', '@': 'at' }[/** @type {string} */ (l.op)] ?? 'same')}><span class="sign" aria-hidden="true">${l.op === '@' ? '' : l.op}</span>${ops[l.op] ? html`<span class="visually-hidden">${ops[l.op]()} </span>` : ''}${l.text + '\n'}</span>`)}</pre>`
      : row.kind === 'value' ? html`<span>${row.text}</span>`
      : html`<pre tabindex="0" role="group" aria-label=${row.label}>${row.text}</pre>`}</dd>
  </div>`)}</dl>`
}
