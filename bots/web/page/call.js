// @ts-check
// What a call was given and what it returned, fetched when somebody looks.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { get } from './api.js'
import { Copy } from './code.js'
import { span, t } from './words.js'

// So many lines are shown at first.
const first = 200

/** @param {{id: string, state: string}} props state: looked at again when it changes */
export function CallDetails({ id, state }) {
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
  return html`<div class="call-details">
    <${Part} title=${t('Arguments')} text=${call.args_text} file=${id + '-arguments.json'} />
    ${call.output.map((/** @type {any} */ part) => part.data
      ? html`<img src=${`data:${part.type};base64,${part.data}`} alt=${t('An image that the tool returned')} />`
      : part.text ? html`<${Part} title=${t('Result')} text=${part.text} file=${id + (part.json ? '-result.json' : '-result.txt')} />`
      : html`<p class="dim">${part.type} · ${t('{n} bytes', { n: part.size })}</p>`)}
    ${call.reason && call.state !== 'done' ? html`<p class="problem">${call.reason}</p>` : ''}
    ${took ? html`<p class="dim">${t('took {time}', { time: span(took) })}</p>` : ''}
  </div>`
}

/** @param {{title: string, text: string, file: string}} props */
function Part({ title, text, file }) {
  const [whole, setWhole] = useState(false)
  const lines = text.split('\n')
  const cut = !whole && lines.length > first
  const download = () => {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
    const a = Object.assign(document.createElement('a'), { href: url, download: file })
    a.click()
    setTimeout(() => URL.revokeObjectURL(url), 1000)
  }
  return html`<section class="part" aria-label=${title}>
    <header><span>${title}</span><span><${Copy} text=${text} /><button type="button" class="quiet" onClick=${download}>${t('Download')}</button></span></header>
    <pre tabindex="0">${cut ? lines.slice(0, first).join('\n') : text}</pre>
    ${cut ? html`<button type="button" class="quiet" onClick=${() => setWhole(true)}>${t('Show all {n} lines', { n: lines.length })}</button>` : ''}
  </section>`
}

/** The images that a call returned. @param {{id: string}} props */
export function CallImages({ id }) {
  const [list, setList] = useState(/** @type {any[]} */ ([]))
  useEffect(() => {
    let left = false
    get('calls/' + encodeURIComponent(id)).then((c) => left || setList(c.output.filter((/** @type {any} */ p) => p.data)), () => {})
    return () => { left = true }
  }, [id])
  return html`<div class="images">${list.map((p) => html`<img src=${`data:${p.type};base64,${p.data}`} alt=${t('An image that the tool returned')} />`)}</div>`
}
