// @ts-check
// The totals of a period, compared with those of the previous one.
import { html } from '../html.js'
import { icon } from '../icon.js'
import { language, t } from '../words.js'
import { cost, number, tokens } from './figures.js'

/** @param {{now: any, both: any, range: number}} props both: this period and the previous one together */
export function Totals({ now, both, range }) {
  /** @type {[string, string, number, number][]} */
  const tiles = [
    [t('Tokens'), number(tokens(now)), tokens(now), tokens(both) - tokens(now)],
    [t('Cost'), cost(now), now.micro_usd ?? 0, (both.micro_usd ?? 0) - (now.micro_usd ?? 0)],
    [t('Calls'), number(now.calls), now.calls ?? 0, (both.calls ?? 0) - (now.calls ?? 0)],
  ]
  return html`<dl class="totals">${tiles.map(([name, sum, is, was]) => html`<div key=${name}><dt>${name}</dt><dd><strong>${sum}</strong> <span class="dim">${was > 0 ? html`${is === was ? '' : is > was ? icon('trending-up') : icon('trending-down')} ${t('{change} vs. the {n} days before', { change: percent(is / was - 1), n: range })}` : t('nothing in the {n} days before', { n: range })}</span></dd></div>`)}</dl>`
}

/** @param {number} part */
const percent = (part) => new Intl.NumberFormat(language(), { style: 'percent', signDisplay: 'exceptZero', maximumFractionDigits: Math.abs(part) < .1 ? 1 : 0 }).format(part)
