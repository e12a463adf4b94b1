// @ts-check
// Editing a call: a form beside the arguments as JSON, kept in sync. The JSON text itself
// is sent, so no number is rounded; nize checks whether the tool accepts it.
import { useMemo, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'
import { Wrong, isNumber, quote, read, scalar, shown, textOf, write } from '../json/json.js'
import { broken, fieldsOf, placeOf, placed, plain, put, same } from './shape.js'

/** @typedef {import('../json/json.js').Value} Value */
/** @typedef {import('./shape.js').Field} Field */

/**
 * What the fields of a form have in common.
 * @typedef {object} Form
 * @property {string} id
 * @property {(path: string[], now: Value|undefined) => void} set
 * @property {Map<string, string[]>} said problems, by path
 */

/** @param {string} text */
function parse(text) {
  try {
    return read(text)
  } catch {
    return null
  }
}

/**
 * @param {object} props
 * @param {string} props.call
 * @param {string} props.args as on the card
 * @param {string} props.schema
 * @param {boolean} props.off whether presses are disabled
 * @param {(e: Event, args: string) => void} props.run
 * @param {string} props.problem nize's error message
 * @param {{at: string[], message: string}[]} props.fields the same, by path
 * @param {() => void} props.close
 * @param {boolean} [props.question] it answers a question of a server
 */
export function Edit({ call, args, schema, off, run, problem, fields, close, question }) {
  const [text, setText] = useState(args || '{}')
  const [value, setValue] = useState(() => parse(args || '{}'))
  const [wrong, setWrong] = useState('')
  const [tried, setTried] = useState(/** @type {{at: string[], message: string}[]} */ ([]))
  const [sent, setSent] = useState('')
  const [pressed, setPressed] = useState(false)
  const root = useMemo(() => parse(schema), [schema])
  const latest = useRef(value)
  latest.current = value
  const id = 'edit-' + call
  const isObject = value?.kind === 'object'
  const list = useMemo(() => isObject && value ? fieldsOf(root ?? undefined, root ?? undefined, value, [], question) : [], [root, value, question])
  const current = sent === text // what nize said is of what stands there
  const said = useMemo(() => placed(list, tried.length ? tried : current ? fields : []), [list, tried, current, fields])
  /** @param {string[]} path @param {Value|undefined} now */
  const set = (path, now) => {
    if (!latest.current) return
    latest.current = put(latest.current, path, now)
    setValue(latest.current)
    setText(write(latest.current))
    setWrong('')
    setTried([])
  }
  /** @param {string} now */
  const type = (now) => {
    setText(now)
    setTried([])
    setPressed(false)
    try {
      const v = read(now)
      setWrong(v.kind === 'object' ? '' : t('The arguments must be an object: { … }'))
      if (v.kind === 'object') setValue(v)
    } catch (/** @type {any} */ err) {
      setWrong(err instanceof Wrong ? t('Invalid JSON: line {line}, column {column}', { line: err.line, column: err.column }) : err.message)
    }
  }
  /** @param {Event} e */
  const send = (e) => {
    setPressed(true)
    if (wrong || !value) return
    const bad = broken(value)
    setTried(bad.map((at) => ({ at, message: t('Enter a value.') })))
    if (bad.length) return
    setSent(text)
    run(e, text)
  }
  /** @type {Form} */
  const form = { id, set, said }
  const top = said.get('') ?? []
  const whole = wrong || (current && problem && fields.length === 0 ? problem : '')
  return html`<div class="edit">
    <div class="edit-sides">
      ${list.length ? html`<div class="edit-form" role="group" aria-label=${question ? t('Answer') : t('Arguments')}>
        ${top.map((p) => html`<p class="problem">${p}</p>`)}
        ${wrong ? html`<p class="dim">${t('The form shows what was there before: the JSON beside it can’t be read.')}</p>` : ''}
        ${list.map((f) => html`<${FormField} key=${placeOf(f.path)} field=${f} form=${form} removes=${!f.required} />`)}
      </div>` : ''}
      <div class="edit-json">
        <label for=${id}>${question ? t('Answer, as JSON') : t('Arguments as JSON')}</label>
        <textarea id=${id} spellcheck="false" rows=${Math.min(Math.max(text.split('\n').length + 1, 6), 24)} value=${text} aria-invalid=${!!whole} aria-describedby=${whole ? id + '-said' : undefined} onInput=${(/** @type {any} */ e) => type(e.currentTarget.value)}></textarea>
        ${whole ? html`<p class="problem" id=${id + '-said'}>${whole}</p>` : ''}
        ${list.length ? '' : top.map((p) => html`<p class="problem">${p}</p>`)}
      </div>
    </div>
    <p role="alert" class="problem">${pressed && wrong || tried.length || current && (fields.length || problem) ? question ? t('Nothing was sent: see what is said above.') : t('Nothing was run: see what is said above.') : ''}</p>
    <div class="buttons">
      <button type="button" class="run" aria-disabled=${off} onClick=${send}>${question ? t('Send the answer') : t('Run with these')}</button>
      <button type="button" onClick=${close}>${t('Back')}</button>
    </div>
  </div>`
}

/** @param {{field: Field, form: Form, removes: boolean}} props */
function FormField({ field, form, removes }) {
  const { path, label, about, required, value } = field
  const id = form.id + '-' + encodeURIComponent(placeOf(path))
  const problems = form.said.get(placeOf(path)) ?? []
  const attributes = { id, 'aria-invalid': problems.length ? 'true' : undefined, 'aria-describedby': [about ? id + '-about' : '', problems.length ? id + '-said' : ''].filter(Boolean).join(' ') || undefined }
  /** @param {Value|undefined} now */
  const set = (now) => form.set(path, now)
  const wrong = problems.length ? html`<p class="problem" id=${id + '-said'}>${problems.join('; ')}</p>` : ''
  const described = about ? html`<p class="dim" id=${id + '-about'}>${about}</p>` : ''
  const remove = removes ? html`<button type="button" class="quiet" onClick=${() => set(undefined)} aria-label=${t('Leave out {name}', { name: label })}>${t('Leave out')}</button>` : ''
  if (!value && !required) {
    return html`<div class="field absent"><button type="button" class="quiet" id=${id} onClick=${() => set(field.make())}>+ ${label}</button>${wrong}</div>`
  }
  const name = html`${label}${required && !removes ? html` <span class="dim">${t('(needed)')}</span>` : ''}`
  if (field.kind === 'object' || field.kind === 'array') {
    const item = field.makeItem
    return html`<fieldset class="field" aria-describedby=${attributes['aria-describedby']}>
      <legend>${name} ${remove}</legend>
      ${described}
      ${field.fields.map((f) => html`<${FormField} key=${placeOf(f.path)} field=${f} form=${form} removes=${field.kind === 'array' || !f.required} />`)}
      ${item ? html`<button type="button" class="quiet" onClick=${() => form.set([...path, String(value?.items.length ?? 0)], item())}>+ ${t('one more: {name}', { name: label })}</button>` : ''}
      ${wrong}
    </fieldset>`
  }
  return html`<div class="field">
    <div class="field-head"><label for=${id}>${name}${field.kind === 'json' ? html` <span class="dim">JSON</span>` : ''}</label>${remove}</div>
    ${described}
    <${Input} field=${field} set=${set} attributes=${attributes} />
    ${wrong}
  </div>`
}

/** @param {{field: Field, set: (now: Value|undefined) => void, attributes: any}} props */
function Input({ field, set, attributes }) {
  const { kind, value, options } = field
  const written = useRef(/** @type {{value: Value|undefined, kind: Field['kind'], text: string}|null} */ (null))
  const own = written.current && written.current.value === value ? written.current : null // the value was typed here
  /** @param {Value} now @param {string} text @param {Field['kind']} [as] */
  const give = (now, text, as = kind) => {
    written.current = { value: now, kind: as, text }
    set(now)
  }
  /** @param {any} e */
  const textIn = (e) => e.currentTarget.value
  // Typing into a field doesn't change its kind.
  switch (own?.kind ?? kind) {
    case 'boolean':
      return html`<select ...${attributes} value=${value?.raw ?? ''} onChange=${(/** @type {any} */ e) => set(textIn(e) ? scalar('literal', textIn(e)) : undefined)}>
        ${value ? '' : html`<option value="">–</option>`}
        ${['true', 'false'].map((word) => html`<option value=${word}>${word === 'true' ? t('yes') : t('no')}</option>`)}
      </select>`
    case 'choice': {
      const at = value ? options.findIndex((o) => same(o, value)) : -1
      return html`<select ...${attributes} value=${at} onChange=${(/** @type {any} */ e) => set(options[Number(textIn(e))])}>
        ${value ? '' : html`<option value="-1">–</option>`}
        ${options.map((o, i) => html`<option value=${i}>${field.titles[i] || (o.kind === 'string' ? shown(o.raw) : write(o))}</option>`)}
      </select>`
    }
    case 'date':
      return html`<input type="date" ...${attributes} value=${value ? textOf(value.raw) : ''} onInput=${(/** @type {any} */ e) => give(scalar('string', quote(textIn(e))), textIn(e))} />`
    case 'number':
      return html`<input type="text" inputmode="decimal" spellcheck="false" autocomplete="off" ...${attributes} value=${value?.raw ?? ''} onInput=${(/** @type {any} */ e) => {
        const typed = textIn(e).trim()
        give(scalar(isNumber(typed) ? 'number' : 'broken', typed), typed)
      }} />`
    case 'text': {
      const now = value ? textOf(value.raw) : ''
      const on = { ...attributes, value: now, spellcheck: false, autocomplete: 'off', onInput: (/** @type {any} */ e) => give(scalar('string', quote(textIn(e))), textIn(e)) }
      const unseen = value && !plain(value.raw) ? html`<p class="dim">${t('With what is not seen in it:')} <code>${value.raw}</code></p>` : ''
      return html`${field.long || own && now.includes('\n') ? html`<textarea rows="3" ...${on}></textarea>` : html`<input type="text" ...${on} />`}${unseen}`
    }
  }
  const text = own?.text ?? (value ? write(value) : '')
  return html`<textarea ...${attributes} spellcheck="false" class="code" rows=${Math.min(Math.max(text.split('\n').length, 1), 8)} value=${text} onInput=${(/** @type {any} */ e) => {
    const typed = textIn(e)
    give(parse(typed) ?? scalar('broken', typed), typed, 'json')
  }}></textarea>`
}
