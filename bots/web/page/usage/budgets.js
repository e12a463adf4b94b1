// @ts-check
// The budgets in force: what is left, and when they are reset.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { language, t, time } from '../words.js'

/** @param {{all: boolean}} props */
export function Budgets({ all }) {
  const [list, setList] = useState(/** @type {any[]|null} */ (null))
  useEffect(() => {
    let left = false
    get('budgets' + (all ? '?all=1' : '')).then((b) => left || setList(b.items), () => {})
    return () => { left = true }
  }, [all, language()])
  if (!list) return ''
  return html`<section class="budgets"><h2>${t('Budgets')}</h2>
    ${list.length ? '' : html`<p class="dim">${t('None is set.')}</p>`}
    <ul>${list.map((b) => html`<li key=${b.title}>
      <p>${b.title}${b.state ? html` <strong class=${b.state}>${b.state === 'exceeded' ? t('used up') : t('nearly used up')}</strong>` : ''}</p>
      ${b.each ? '' : html`<svg class="budget-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="budget-all" width="100" height="6" /><rect class="budget-used" width=${b.part} height="6" /></svg>
      <p class="dim">${t('{used} used, {left} left; begins again {time}', { used: b.used, left: b.left, time: time(b.resets) })}</p>`}
    </li>`)}</ul></section>`
}
