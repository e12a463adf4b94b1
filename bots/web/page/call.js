// @ts-check
// A call's arguments and result, fetched when they are opened: JSON as a tree, texts by
// lines, long ones cut.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { get, getFile } from './api.js'
import { Copy } from './code.js'
import { Arguments } from './card/rows.js'
import { span, t } from './words.js'

// Number of lines shown at first, ten times as many with each press, with this average
// number of characters per line.
const first = 200
const width = 400

/** @type {Promise<typeof import('./json/tree.js')>|undefined} */
let trees

/**
 * @param {{id: string, state: string, words?: any}} props state: a change reloads the call; words: of its card
 */
export function CallDetails({ id, state, words }) {
  const [call, setCall] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  useEffect(() => {
    let left = false
    get('calls/' + encodeURIComponent(id)).then((c) => left || setCall(c), (err) => left || setFailed(err.message))
    return () => { left = true }
  }, [id, state])
  if (failed) return html`<p class="problem">${failed}</p>`
  if (!call) return html`<p class="dim">${t('Loading…')}</p>`
  const took = call.started && call.finished ? Date.parse(call.finished) - Date.parse(call.started) : 0
  const whole = () => getFile(`calls/${encodeURIComponent(id)}/result`).then((file) => save(file, id + '-result.json'), (err) => setFailed(err.message))
  /** @param {any} part */
  const one = (part) => getFile(`calls/${encodeURIComponent(id)}/result?file=${part.file}`).then((file) => save(file, part.name), (err) => setFailed(err.message))
  return html`<div class="call-details">
    ${words?.rows ? html`<${Arguments} words=${words} />` : html`<${Part} title=${t('Arguments')} text=${call.args_text} json=${true} file=${id + '-arguments.json'} />`}
    ${call.output.map((/** @type {any} */ part) => part.data
      ? html`<img src=${`data:${part.type};base64,${part.data}`} alt=${t('An image that the tool returned')} />`
      : part.text ? html`<${Part} title=${t('Result')} text=${part.text} json=${!!part.json} whole=${part.size ? whole : undefined} size=${part.size} file=${id + (part.json ? '-result.json' : '-result.txt')} />`
      : html`<p class="dim"><bdi>${part.name}</bdi> · ${part.type} · ${t('{n} bytes', { n: part.size })} <button type="button" class="quiet" onClick=${() => one(part)}>${t('Download')}</button></p>`)}
    ${call.reason && call.state !== 'done' && !call.output.some((/** @type {any} */ p) => p.text?.includes(call.reason)) ? html`<p class="problem">${call.reason}</p>` : ''}
    ${words?.more ? html`<pre class="more">${words.more.join('\n')}</pre>` : took ? html`<p class="dim">${t('took {time}', { time: span(took) })}</p>` : ''}
  </div>`
}

/**
 * @param {Blob} file
 * @param {string} name
 */
function save(file, name) {
  const url = URL.createObjectURL(file)
  const a = Object.assign(document.createElement('a'), { href: url, download: name })
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

/**
 * @param {object} props
 * @param {string} props.title
 * @param {string} props.text
 * @param {boolean} props.json
 * @param {string} props.file
 * @param {() => void} [props.whole] downloads all of it if text is only the beginning
 * @param {number} [props.size] total size
 */
function Part({ title, text, json, file, whole, size }) {
  const [raw, setRaw] = useState(false)
  const [tree, setTree] = useState(/** @type {any} */ (null))
  useEffect(() => {
    let left = false
    if (json) (trees ??= import('./json/tree.js')).then((m) => left || setTree(() => m.Tree), () => left || setRaw(true))
    return () => { left = true }
  }, [json])
  const lines = html`<${Lines} text=${text} title=${title} />`
  return html`<section class="part" aria-label=${title}>
    <header><span>${title}</span><span>
      ${json ? html`<button type="button" class="quiet" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>${t('Raw')}</button>` : ''}
      <${Copy} text=${text} />
      <button type="button" class="quiet" onClick=${whole ?? (() => save(new Blob([text], { type: 'text/plain' }), file))}>${t('Download')}</button>
    </span></header>
    ${json && !raw ? tree ? html`<${tree} text=${text} label=${title} other=${lines} />` : html`<p class="dim">${t('Loading…')}</p>` : lines}
    ${size ? html`<p class="dim">${t('This is the beginning; the file has all {n} bytes.', { n: size })}</p>` : ''}
  </section>`
}

/** @param {{text: string, title: string}} props */
function Lines({ text, title }) {
  const [limit, setLimit] = useState(first)
  let end = -1
  for (let n = 0; n < limit; n++) {
    end = text.indexOf('\n', end + 1)
    if (end < 0) break
  }
  end = Math.min(end < 0 ? text.length : end, limit * width)
  return html`<pre tabindex="0" role="group" aria-label=${title}>${text.slice(0, end)}</pre>
    ${end < text.length ? html`<button type="button" class="quiet" onClick=${() => setLimit(limit * 10)}>${t('Show more: {n} of {all} characters', { n: end, all: text.length })}</button>` : ''}`
}
