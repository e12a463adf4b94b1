// @ts-check
// A call's result for people: in the form of its tool's renderer, with its pictures. All
// of it is text from outside.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { get } from './api.js'
import { t } from './words.js'

/** @param {{message: import('./conversation.js').Message, viewed: boolean}} props viewed: the view of its tool shows the result */
export function Returned({ message, viewed }) {
  return html`${message.rendered && !viewed ? html`<${Rendered} is=${message.rendered} />` : ''}${message.pictures ? html`<${Pictures} id=${message.call} />` : ''}`
}

/** @param {{is: any}} props */
function Rendered({ is }) {
  const { title, link, text, fields, table, more } = is
  return html`<div class="rendered" role="group" aria-label=${t('Result')}>
    ${title ? html`<p class="rendered-title">${link ? html`<a href=${link} target="_blank" rel="noopener noreferrer nofollow"><bdi>${title}</bdi></a>` : html`<bdi>${title}</bdi>`}</p>` : ''}
    ${text ? html`<p class="rendered-text"><bdi>${text}</bdi></p>` : ''}
    ${fields?.length ? html`<dl>${fields.map((/** @type {any} */ f) => html`<div><dt><bdi>${f.name}</bdi></dt><dd><bdi>${f.value}</bdi></dd></div>`)}</dl>` : ''}
    ${table ? html`<div class="rendered-table" tabindex="0" role="region" aria-label=${title || t('Result')}><table>
      <thead><tr>${table.columns.map((/** @type {string} */ c) => html`<th scope="col"><bdi>${c}</bdi></th>`)}</tr></thead>
      <tbody>${table.rows.map((/** @type {string[]} */ row) => html`<tr>${row.map((cell) => html`<td><bdi>${cell}</bdi></td>`)}</tr>`)}</tbody></table></div>
      ${more ? html`<p class="dim">${more}</p>` : ''}` : ''}
  </div>`
}

/** @param {{id: string}} props */
function Pictures({ id }) {
  const [list, setList] = useState(/** @type {any[]} */ ([]))
  useEffect(() => {
    let left = false
    get('calls/' + encodeURIComponent(id)).then((c) => left || setList(c.output.filter((/** @type {any} */ p) => p.data)), () => {})
    return () => { left = true }
  }, [id])
  return html`<div class="images">${list.map((p) => html`<img src=${`data:${p.type};base64,${p.data}`} alt=${t('An image that the tool returned')} />`)}</div>`
}
