// @ts-check
// The texts of the page in the reader's language.

/** @type {Record<string, string>} */
let words = {}
let lang = 'en'
/** @type {string|undefined} */
let zone

const languages = ['en', 'zh-Hans', 'zh-Hant']

/**
 * Returns our language that fits a BCP 47 tag best.
 * @param {string} tag
 */
export function fitting(tag) {
  const low = tag.toLowerCase()
  if (!low.startsWith('zh')) return 'en'
  return /hant|tw|hk|mo/.test(low) ? 'zh-Hant' : 'zh-Hans'
}

/**
 * Loads the texts of a language.
 * @param {string} wanted
 */
export async function loadWords(wanted) {
  lang = languages.includes(wanted) ? wanted : fitting(wanted)
  const answer = await fetch(`/app/phrases/${lang}.json`)
  if (answer.ok) words = await answer.json()
  document.documentElement.lang = lang
  dispatchEvent(new Event('nize-words')) // everything that shows texts redraws
}

/** Sets the time zone; the browser's if it doesn't know the name. @param {string} name */
export function setZone(name) {
  zone = undefined
  try {
    zone = name ? new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone : undefined
  } catch { /* auto, or a zone that is too new */ }
}

/** The current language of the page. */
export const language = () => lang

/** The same as a tag with a region, such as en-US: the browser's own if it has that language, otherwise the likeliest. */
export function locale() {
  for (const tag of navigator.languages) {
    try {
      const { language: base, region } = new Intl.Locale(tag)
      if (region && lang.startsWith(base) && fitting(tag) === lang) return tag
    } catch { /* not a tag, for example C */ }
  }
  const likely = new Intl.Locale(lang).maximize()
  return `${likely.language}-${likely.region}`
}

/**
 * Returns a text in the reader's language, with {name} filled in.
 * @param {string} english
 * @param {Record<string, string|number>} [values]
 */
export function t(english, values = {}) {
  const text = words[english] ?? english
  return text.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name] ?? all
    return typeof value === 'number' ? new Intl.NumberFormat(lang).format(value) : value
  })
}

/**
 * A time, as short as unambiguous, in 24-hour form as on cards.
 * @param {string} at
 */
export function time(at) {
  const date = new Date(at)
  const day = new Intl.DateTimeFormat('en', { timeZone: zone })
  const today = day.format(date) === day.format(new Date())
  return new Intl.DateTimeFormat(lang, { timeZone: zone, hourCycle: 'h23', timeStyle: 'short', dateStyle: today ? undefined : 'medium' }).format(date)
}

/**
 * The number of midnights since then, in the reader's time zone.
 * @param {string} at
 */
export function daysAgo(at) {
  const day = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
  return Math.round((Date.parse(day.format(new Date())) - Date.parse(day.format(new Date(at)))) / 86_400_000)
}

/**
 * A duration.
 * @param {number} ms
 */
export function span(ms) {
  const [unit, n] = ms < 1000 ? ['millisecond', ms] : ['second', ms / 1000]
  const digits = unit === 'second' && n < 10 ? 1 : 0
  return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: digits }).format(n).replace('sec', 's')
}

/** A size. @param {number} n in bytes */
export function bytes(n) {
  const [unit, size] = n < 1000 ? ['byte', 1] : n < 1 << 20 ? ['kilobyte', 1 << 10] : ['megabyte', 1 << 20]
  return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'narrow', maximumFractionDigits: n / size < 10 && size > 1 ? 1 : 0 }).format(n / size)
}
