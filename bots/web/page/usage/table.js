// @ts-check
// Usage as a table.
import { html } from '../html.js'
import { t } from '../words.js'
import { cost, number, took } from './figures.js'

/**
 * @param {object} props
 * @param {any} props.report
 * @param {string} props.head
 * @param {(row: any) => string} props.name
 */
export function Table({ report, head, name }) {
  /** @type {[string, (r: any) => string][]} */
  const columns = report.by === 'tool'
    ? [[t('Calls'), (r) => number(r.calls)], [t('Failed'), (r) => number(r.failed)], [t('Time'), took]]
    : [[t('Calls'), (r) => number(r.calls)], [t('Prompt'), (r) => number(r.prompt)], [t('Cached'), (r) => number(r.cached)], [t('Completion'), (r) => number(r.completion)],
      [t('Reasoning'), (r) => number(r.reasoning)], [t('Cost'), cost], [t('Time'), took]]
  const own = report.by === 'conversation' ? report.titles ?? {} : {}
  return html`<div class="usage-table" tabindex="0" role="region" aria-label=${t('By {what}', { what: head })}><table>
    <thead><tr><th scope="col">${head}</th>${columns.map(([c]) => html`<th key=${c} scope="col">${c}</th>`)}</tr></thead>
    <tbody>${report.rows.map((/** @type {any} */ r) => html`<tr key=${r.key}>
      <th scope="row">${r.key in own ? html`<a href=${'/app/c/' + r.key}>${name(r)}</a>` : name(r)}</th>${columns.map(([c, show]) => html`<td key=${c}>${show(r)}</td>`)}</tr>`)}</tbody>
    ${report.rows.length > 1 ? html`<tfoot><tr><th scope="row">${t('All')}</th>${columns.map(([c, show]) => html`<td key=${c}>${show(report.total)}</td>`)}</tr></tfoot>` : ''}
  </table></div>`
}
