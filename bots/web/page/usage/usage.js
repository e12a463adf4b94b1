// @ts-check
// What a person used, by day.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { language, t } from '../words.js'

/** @param {{me: any}} props */
export function Usage({ me }) {
  const [report, setReport] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  useEffect(() => {
    const since = new Date(Date.now() - 30 * 86_400_000).toISOString()
    get(`usage?by=day&since=${since}&user=${encodeURIComponent(me.id)}`).then(setReport, (err) => setFailed(err.message))
  }, [])
  if (failed) return html`<p class="problem" role="alert">${failed}</p>`
  if (!report) return html`<p class="dim">${t('Loading…')}</p>`
  if (!report.rows?.length) return html`<p class="dim">${t('Nothing was used.')}</p>`
  const number = new Intl.NumberFormat(language())
  const money = new Intl.NumberFormat(language(), { style: 'currency', currency: 'USD', maximumFractionDigits: 6 })
  return html`<h2>${t('By day')}</h2><div class="usage-table" tabindex="0" role="region" aria-label=${t('By day')}><table>
    <thead><tr><th scope="col">${t('Day')}</th><th scope="col">${t('Calls')}</th><th scope="col">${t('Tokens')}</th><th scope="col">${t('Cost')}</th></tr></thead>
    <tbody>${report.rows.map((/** @type {any} */ r) => html`<tr key=${r.key}><th scope="row">${r.key}</th><td>${number.format(r.calls)}</td><td>${number.format((r.prompt ?? 0) + (r.completion ?? 0))}</td><td>${money.format((r.micro_usd ?? 0) / 1e6)}</td></tr>`)}</tbody>
  </table></div>`
}
