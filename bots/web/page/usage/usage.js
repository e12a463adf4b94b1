// @ts-check
// Usage: bars by day, a table by a chosen grouping, the same as CSV, and the budgets in
// force.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { t } from '../words.js'
import { Bars } from './bars.js'
import { Budgets } from './budgets.js'
import { download } from './csv.js'
import { days, keyOf, money, number, tokens } from './figures.js'
import { Table } from './table.js'
import { Totals } from './totals.js'

/** The groupings; providers and people are for admins. */
const groupings = () => ({ day: t('Day'), model: t('Model'), agent: t('Agent'), conversation: t('Conversation'), tool: t('Tool'), user: t('Person'), team: t('Team'), provider: t('Provider') })
const own = ['day', 'model', 'agent', 'conversation', 'tool']

/** @param {{me: any}} props */
export function Usage({ me }) {
  const [range, setRange] = useState(30)
  const [by, setBy] = useState('day')
  const [all, setAll] = useState(false)
  const [daily, setDaily] = useState(/** @type {any} */ (null))
  const [report, setReport] = useState(/** @type {any} */ (null))
  const [before, setBefore] = useState(/** @type {any} */ (null)) // the total of this period and the previous one
  const [failed, setFailed] = useState('')
  useEffect(() => {
    let left = false
    setFailed('')
    const since = (/** @type {number} */ days) => new Date(Date.now() - (days - 1) * 86_400_000).toISOString() // today included
    const ask = (/** @type {string} */ what, days = range) => get(`usage?by=${what}&since=${since(days)}${all ? '&all=1' : ''}`)
    Promise.all([ask('day'), by === 'day' ? null : ask(by), ask('day', 2 * range)]).then(([d, r, both]) => {
      if (left) return
      setBefore({ all: both.total, range })
      setDaily(d)
      setReport(r ?? d)
    }, (err) => left || setFailed(err.status ? err.message : t('nize could not be reached.')))
    return () => { left = true }
  }, [range, by, all])
  const words = /** @type {Record<string, string>} */ (groupings())
  const filled = daily && days(daily, range)
  return html`<form class="usage-form" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
    <div><label for="usage-range">${t('Range')}</label><select id="usage-range" value=${range} onChange=${(/** @type {any} */ e) => setRange(Number(e.currentTarget.value))}>${[7, 30, 90, 365].map((n) => html`<option key=${n} value=${n}>${t('{n} days', { n })}</option>`)}</select></div>
    <div><label for="usage-by">${t('Table by')}</label><select id="usage-by" value=${by} onChange=${(/** @type {any} */ e) => setBy(e.currentTarget.value)}>${Object.keys(words).filter((k) => own.includes(k) || all).map((k) => html`<option key=${k} value=${k}>${words[k]}</option>`)}</select></div>
    ${me.role === 'admin' ? html`<div><label for="usage-whose">${t('Whose')}</label><select id="usage-whose" value=${all ? 'all' : 'own'} onChange=${(/** @type {any} */ e) => { const everybody = e.currentTarget.value === 'all'; setAll(everybody); if (everybody ? by === 'day' : !own.includes(by)) setBy(everybody ? 'user' : 'day') }}><option value="own">${t('Mine')}</option><option value="all">${t('Everybody\u2019s')}</option></select></div>` : ''}
  </form>
  ${daily && before?.range === range ? html`<${Totals} now=${daily.total} both=${before.all} range=${range} />` : ''}
  <${Budgets} all=${all} />
  ${failed ? html`<p class="problem" role="alert">${failed}</p>` : ''}
  ${!report && !failed ? html`<p class="dim">${t('Loading…')}</p>` : ''}
  ${report ? html`<section class="usage-part" aria-busy=${report.by !== by}>
    ${daily.rows.length ? html`${tokens(daily.total) ? html`<${Bars} title=${t('Tokens by day')} rows=${filled} value=${tokens} show=${number} />` : html`<${Bars} title=${t('Calls by day')} rows=${filled} value=${(/** @type {any} */ r) => r.calls} show=${number} />`}
      ${daily.total.micro_usd ? html`<${Bars} title=${t('Cost by day')} rows=${filled} value=${(/** @type {any} */ r) => r.micro_usd ?? 0} show=${money} />` : ''}` : ''}
    <div class="usage-head"><h2>${t('By {what}', { what: words[report.by] })}</h2>
      ${report.rows.length ? html`<button type="button" onClick=${() => download(report)}>${t('Download CSV')}</button>` : ''}</div>
    ${report.rows.length ? html`<${Table} report=${report} head=${words[report.by]} name=${(/** @type {any} */ r) => keyOf(report, r)} />` : html`<p class="dim">${t('Nothing was used.')}</p>`}
    <${Notes} report=${report} />
  </section>` : ''}`
}

/** What the numbers don't include. @param {{report: any}} props */
function Notes({ report }) {
  const { total, unpriced_models: models = [] } = report
  return html`<ul class="usage-notes dim">
    ${total.unpriced ? html`<li>${t('The price of some calls ({n}) is unknown, so the cost is at least what stands here: {models}', { n: number(total.unpriced), models: models.join(', ') })}</li>` : ''}
    ${total.estimated ? html`<li>${t('The tokens of some calls ({n}) are an estimate: the provider sent no numbers.', { n: number(total.estimated) })}</li>` : ''}
    ${report.rows.length ? html`<li>${t('Days are those of {zone}.', { zone: report.zone })}</li>` : ''}
  </ul>`
}
