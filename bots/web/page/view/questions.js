// @ts-check
// What a view may request, and what a person has to confirm: opening a URL and saving a
// file.
import { useEffect, useRef } from 'preact/hooks'
import { html } from '../html.js'
import { Refusal } from './bridge.js'
import { ask } from './requests.js'
import { t } from '../words.js'

const maxText = 4 << 10
const maxFile = 10 << 20

/**
 * Throws unless a person has just pressed something in the frame: a view opens nothing by
 * itself, nor because of a press elsewhere on the page.
 * @param {HTMLIFrameElement} frame
 */
function pressed(frame) {
  if (!navigator.userActivation?.isActive || document.activeElement !== frame) throw new Refusal(-32000, 'this needs a person who presses something in the view')
}

/** Returns the text of a message: of its blocks, or its only one. @param {any} content */
function textOf(content) {
  const blocks = Array.isArray(content) ? content : [content]
  const text = blocks.map((b) => b?.type === 'text' && typeof b.text === 'string' ? b.text : '').join('\n').trim()
  if (!text || new TextEncoder().encode(text).length > maxText) throw new Refusal(-32602, 'a message is a text of at most 4 KiB')
  return text
}

/** @param {unknown} text */
function linkOf(text) {
  const url = typeof text === 'string' && text.length <= 8192 && URL.canParse(text) ? new URL(text) : null
  if (!url || !['https:', 'http:'].includes(url.protocol) || url.username || url.password) throw new Refusal(-32602, 'only addresses of the web can be opened')
  return url
}

/** Returns the only embedded file. @param {any} contents */
function fileOf(contents) {
  const resource = Array.isArray(contents) && contents.length === 1 && contents[0]?.type === 'resource' ? contents[0].resource : null
  /** @type {BlobPart|undefined} */
  let data
  if (typeof resource?.text === 'string') data = resource.text
  else if (typeof resource?.blob === 'string') {
    try {
      data = Uint8Array.from(atob(resource.blob), (c) => c.charCodeAt(0))
    } catch {
      data = undefined
    }
  }
  if (data === undefined) throw new Refusal(-32602, 'one embedded resource can be saved')
  const blob = new Blob([data], { type: 'application/octet-stream' })
  if (blob.size > maxFile) throw new Refusal(-32602, 'a file may have 10 MiB')
  const last = String(resource.uri ?? '').split(/[?#]/)[0].split('/').pop() ?? ''
  const name = last.replace(/[^\p{L}\p{N}._ -]/gu, '_').replace(/^[. ]+/, '').slice(-80) || 'file'
  return { name, blob }
}

/**
 * @typedef {object} Want
 * @property {URL} [url] to be opened
 * @property {{name: string, blob: Blob}} [file] to be saved
 */
/** @typedef {Want & {end: (yes: boolean) => void}} Question */

/**
 * Returns the handlers for the requests of a call's view.
 * @param {object} page
 * @param {string} page.call
 * @param {HTMLIFrameElement} page.frame
 * @param {(large: boolean) => object} page.show
 * @param {(text: string) => Promise<boolean>} page.suggest
 * @param {(what: Want) => Promise<boolean>} page.agree asks the person
 * @param {(method: string, answer: string) => void} page.noted a request that the page handles itself
 * @returns {Record<string, (params: any) => Promise<object>>}
 */
export function answersOf({ call, frame, show, suggest, agree, noted }) {
  /**
   * Returns what is requested, validated; reports refusals to nize.
   * @template T
   * @param {string} method @param {() => T} wanted
   */
  const checked = (method, wanted) => {
    try {
      return wanted()
    } catch (/** @type {any} */ err) {
      noted(method, err.message)
      throw err
    }
  }
  const ends = (/** @type {boolean} */ yes) => {
    if (!yes) throw new Refusal(-32000, 'the person said no')
    return {}
  }
  return {
    'tools/call': (params) => ask(call, 'tools/call', { name: params.name, arguments: params.arguments ?? {} }),
    'tools/list': () => ask(call, 'tools/list', {}),
    'resources/read': (params) => ask(call, 'resources/read', { uri: params.uri }),
    'ui/message': async (params) => {
      const text = checked('ui/message', () => textOf(params.content))
      await ask(call, 'ui/message', {})
      return ends(await suggest(text))
    },
    'ui/update-model-context': (params) => ask(call, 'ui/update-model-context', { content: params.content, structuredContent: params.structuredContent }),
    'nize/set-widget-state': (params) => ask(call, 'nize/set-widget-state', { state: params.state ?? null }),
    'ui/open-link': async (params) => {
      const url = checked('ui/open-link', () => {
        const url = linkOf(params.url)
        pressed(frame)
        return url
      })
      await ask(call, 'ui/open-link', { url: url.href })
      return ends(await agree({ url }))
    },
    'ui/download-file': async (params) => {
      const file = checked('ui/download-file', () => {
        const file = fileOf(params.contents)
        pressed(frame)
        return file
      })
      await ask(call, 'ui/download-file', {})
      return ends(await agree({ file }))
    },
    'ui/request-display-mode': async (params) => {
      const large = params.mode === 'fullscreen'
      checked('ui/request-display-mode', () => large && pressed(frame))
      await ask(call, 'ui/request-display-mode', {})
      return show(large)
    },
  }
}

/** @param {{server: string, question: Question}} props */
export function Ask({ server, question }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null))
  useEffect(() => dialog.current?.showModal(), [])
  const { url, file } = question
  /** @param {Event} e */
  const yes = (e) => {
    if (!e.isTrusted) return
    if (url) window.open(url.href, '_blank', 'noopener,noreferrer')
    if (file) {
      const href = URL.createObjectURL(file.blob)
      Object.assign(document.createElement('a'), { href, download: file.name }).click()
      setTimeout(() => URL.revokeObjectURL(href), 1000)
    }
    question.end(true)
  }
  const no = () => question.end(false)
  const title = url ? t('{server} wants to open an address', { server }) : t('{server} wants to save a file', { server })
  return html`<dialog ref=${dialog} class="question" aria-label=${title} onCancel=${no}>
    <h2>${title}</h2>
    ${url ? html`<p><strong>${url.host}</strong></p><p class="view-url">${url.href}</p>` : html`<p><strong>${file?.name}</strong> · ${t('{n} bytes', { n: file?.blob.size ?? 0 })}</p>`}
    <div class="buttons"><button type="button" onClick=${no}>${t('Back')}</button><button type="button" onClick=${yes}>${url ? t('Open') : t('Save file')}</button></div>
  </dialog>`
}
