// @ts-check
// One setting in the form that its kind needs: its value, where that comes from, and how
// to return to the default.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { html } from '../html.js'
import { put, remove } from '../api.js'
import { inOrder } from '../order.js'
import { fitting, language, loadWords, setZone, t } from '../words.js'
import { setTheme } from '../theme.js'

/**
 * @param {object} props
 * @param {any} props.setting
 * @param {{value: string, label: string}[]|null} [props.choices] of a text, if known; '' chooses none
 * @param {(setting: any) => void} props.changed
 */
export function Field({ setting, choices, changed }) {
  const [draft, setDraft] = useState(setting.value)
  const [said, setSaid] = useState('')
  const [problem, setProblem] = useState('')
  useEffect(() => setDraft(setting.value), [setting.value])
  const id = 'setting-' + setting.key
  const order = useMemo(inOrder, [])
  const path = 'config/' + encodeURIComponent(setting.key)

  /** @param {() => Promise<any>} ask */
  const settle = async (ask) => {
    setSaid('')
    setProblem('')
    try {
      const { answer: now, newest } = await order(ask)
      if (!newest) return
      if (now.key === 'theme') setTheme(now.value)
      if (now.key === 'timezone') setZone(now.own_value ?? '')
      if (now.key === 'language') await loadWords(fitting(now.value === 'auto' ? navigator.language : now.value))
      changed(now)
      setDraft(now.value)
      setSaid(t('Saved.'))
    } catch (/** @type {any} */ err) {
      setDraft(setting.value)
      setProblem(err.message)
    }
  }
  // An empty value means none: then the common value is in force.
  const save = (/** @type {string} */ value) => settle(() => value === '' ? remove(path) : put(path, { value }))
  const choose = (/** @type {string} */ value) => {
    setDraft(value)
    save(value)
  }
  /** @param {Event} e */
  const submit = (e) => {
    e.preventDefault()
    if (draft !== setting.value) save(draft)
  }
  const from = setting.own_value !== null || setting.system_value !== setting.default || setting.bounded // otherwise it has the common value
  const described = { id, 'aria-describedby': id + '-help' + (from ? ` ${id}-from` : '') }
  const written = { ...described, value: draft, onInput: (/** @type {any} */ e) => setDraft(e.currentTarget.value) }
  const display = choices ? 'select' : setting.display
  const options = choices
    ? [{ value: '', label: t('automatic') }, ...choices, ...choices.some((c) => c.value === setting.value) || !setting.value ? [] : [{ value: setting.value, label: setting.value }]]
    : (setting.choices ?? []).map((/** @type {string} */ c) => ({ value: c, label: shown(setting, c) }))
  const control = {
    toggle: () => html`<input type="checkbox" role="switch" ...${described} checked=${draft === 'true'} onChange=${(/** @type {any} */ e) => choose(String(e.currentTarget.checked))} />`,
    select: () => html`<select ...${described} value=${draft} onChange=${(/** @type {any} */ e) => choose(e.currentTarget.value)}>
      ${options.map((/** @type {any} */ c) => html`<option key=${c.value} value=${c.value}>${c.label}</option>`)}</select>`,
    number: () => html`<input type="number" ...${written} min=${setting.min} max=${setting.max} required />`,
    longText: () => html`<textarea rows="10" ...${written}></textarea>`,
  }[/** @type {string} */ (display)] ?? (() => html`<input type="text" ...${written} list=${setting.key === 'timezone' ? 'zones' : undefined} />${setting.key === 'timezone' ? zones() : ''}`)
  const typed = !['toggle', 'select'].includes(display)
  return html`<form class=${'setting ' + display} onSubmit=${submit}>
    <label for=${id}>${setting.label}</label>
    <div class="setting-control">${control()}
      ${typed ? html`<button type="submit" aria-disabled=${draft === setting.value}>${t('Save')}</button>` : ''}</div>
    <p class="dim" id=${id + '-help'}>${setting.help}</p>
    ${from ? html`<p class="dim" id=${id + '-from'}>${whose(setting)}${setting.own_value === null ? '' : html` · <button type="button" class="quiet" onClick=${() => settle(() => remove(path))}>${t('Use that')}</button>`}
      ${setting.bounded ? html`<br />${t('The most that is allowed here is {value}.', { value: setting.value })}` : ''}</p>` : ''}
    <p class="setting-said" role="status">${said}</p>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
  </form>`
}

/** The time zones that the browser knows. */
const zones = () => html`<datalist id="zones">${Intl.supportedValuesOf('timeZone').map((z) => html`<option key=${z} value=${z} />`)}</datalist>`

/** Where the value comes from, and what it would be otherwise. @param {any} s */
function whose(s) {
  const otherwise = s.system_value === s.default ? t('Default: {value}', { value: shown(s, s.default) }) : t('For everybody: {value}', { value: shown(s, s.system_value) })
  if (s.own_value !== null) return t('Your own') + ' · ' + otherwise
  return t('Set for everybody')
}

/** A value for people. @param {any} s @param {string} value */
function shown(s, value) {
  if (s.display === 'toggle') return value === 'true' ? t('on') : t('off')
  if (value === 'auto') return t('automatic')
  if (s.key === 'theme') return value === 'dark' ? t('dark') : t('light')
  if (s.key === 'language') return new Intl.DisplayNames([language()], { type: 'language' }).of(value) ?? value
  if (value === '') return s.kind === 'text' ? t('automatic') : t('empty')
  return value.length > 80 ? value.slice(0, 80) + '…' : value
}
