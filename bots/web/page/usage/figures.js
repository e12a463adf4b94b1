// @ts-check
// Formatting of usage figures.
import { language, span, t } from '../words.js'

/** @param {any} r */
export const tokens = (r) => (r.prompt ?? 0) + (r.completion ?? 0)

/** @param {number} n */
export const number = (n) => new Intl.NumberFormat(language()).format(n ?? 0)

/** In cents, with more digits below a dollar. @param {number} micro millionths of a dollar */
export const money = (micro) => new Intl.NumberFormat(language(), { style: 'currency', currency: 'USD', maximumFractionDigits: micro && micro < 1e6 ? 4 : 2 }).format((micro ?? 0) / 1e6)

/** Money, as far as known; an unknown price is never 0. @param {any} r */
export function cost(r) {
  if (r.unpriced > 0 && (r.unpriced >= r.calls || !r.micro_usd)) return t('unknown')
  return (r.unpriced ? '> ' : '') + money(r.micro_usd)
}

/** @param {any} r */
export const took = (r) => span(r.took_ms ?? 0)

/** @param {string} day */
export const dayName = (day) => new Intl.DateTimeFormat(language(), { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(day + 'T00:00:00Z'))

/** The subject of a row; a dash if it has none. @param {any} report @param {any} r */
export function keyOf(report, r) {
  if (!r.key) return '–'
  if (report.by === 'day') return dayName(r.key)
  return report.titles?.[r.key] || r.key
}

/** Every day of a range, including those without use. @param {any} report @param {number} range */
export function days(report, range) {
  const last = new Intl.DateTimeFormat('en-CA', { timeZone: report.zone, dateStyle: 'short' }).format(new Date())
  const at = Date.parse(last + 'T00:00:00Z')
  const known = new Map(report.rows.map((/** @type {any} */ r) => [r.key, r]))
  return Array.from({ length: range }, (_, i) => {
    const key = new Date(at - (range - 1 - i) * 86_400_000).toISOString().slice(0, 10)
    return known.get(key) ?? { key, calls: 0 }
  })
}
