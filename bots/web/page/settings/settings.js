// @ts-check
// A person's own settings.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { t } from '../words.js'
import { Field } from './field.js'

export function Settings() {
  const [list, setList] = useState(/** @type {any[]|null} */ (null))
  const [failed, setFailed] = useState('')
  useEffect(() => { get('config').then((all) => setList(all.items), (err) => setFailed(err.message)) }, [])
  const changed = (/** @type {any} */ s) => setList((all) => (all ?? []).map((o) => o.key === s.key ? s : o))
  if (failed) return html`<p class="problem" role="alert">${failed}</p>`
  if (!list) return html`<p class="dim">${t('Loading…')}</p>`
  const categories = [...new Set(list.map((s) => s.category_label))]
  return categories.map((c) => html`<section key=${c} class="settings">
    <h2>${c}</h2>
    ${list.filter((s) => s.category_label === c).map((s) => html`<${Field} key=${s.key} setting=${s} changed=${changed} />`)}
  </section>`)
}
