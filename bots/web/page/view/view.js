// @ts-check
// A tool's view in its frame: the tool author's HTML, with an opaque origin or its
// server's own, which shows the result and communicates with the page only by messages.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'
import { post } from '../api.js'
import { CallDetails } from '../call.js'
import { Bridge, Refusal, version } from './bridge.js'
import { appearance, context, room, theme } from './context.js'
import { Ask, answersOf } from './questions.js'
import { noting, outcome } from './requests.js'
import { over as final } from '../tool.js'
import { locale, t } from '../words.js'

const [least, most, first] = [40, 800, 160]
const resizes = 100 // ms between two resizes
const soon = 500 // ms that a call runs before its view is opened: most have ended by then

/**
 * @param {object} props
 * @param {string} props.call
 * @param {string} props.state of the call
 * @param {import('../frame.js').Page} props.host
 */
export function View({ call, state, host }) {
  const [frame, setFrame] = useState(/** @type {any} */ (null))
  const [over, setOver] = useState('')
  const ended = final.includes(state)
  const opened = useRef(Promise.resolve(false)) // whether it is open; requested once, since another ticket would reload the frame
  useEffect(() => {
    let left = false
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let timer
    const open = () => {
      opened.current = opened.current.then((done) => done || post('frames', { call, theme: theme(), locale: locale() }).then((f) => {
        setFrame(f)
        return true
      }, (err) => {
        if (left) return false
        if (ended) setOver('none')
        else if (err.status === 409) timer = setTimeout(open, soon) // it doesn't run yet
        return false
      }))
    }
    if (ended) open()
    else timer = setTimeout(open, soon)
    return () => {
      left = true
      clearTimeout(timer)
    }
  }, [call, ended])
  if (over === 'none' || !frame) return ''
  if (over) return html`<div class="view ended">
    <p class="dim">${over === 'flood' ? t('The view of {tool} was stopped: it sent too much.', { tool: frame.tool.name }) : over === 'keys' ? t('The view of {tool} was stopped: it took the keyboard.', { tool: frame.tool.name }) : over === 'silent' ? t('The view of {tool} did not start. This is the plain result:', { tool: frame.tool.name }) : t('The view of {tool} is closed.', { tool: frame.tool.name })}</p>
    ${over === 'closed' ? '' : html`<${CallDetails} id=${call} state=${state} />`}
  </div>`
  return html`<${Shown} call=${call} frame=${frame} ended=${ended} host=${host} end=${setOver} />`
}

/**
 * @param {object} props
 * @param {string} props.call
 * @param {any} props.frame
 * @param {boolean} [props.ended] whether the call has ended
 * @param {import('../frame.js').Page} props.host
 * @param {string} [props.refusal] the error for all of the view's requests; '' handles them
 * @param {(why: string) => void} props.end
 */
export function Shown({ call, frame, ended = true, host, refusal = '', end }) {
  const element = useRef(/** @type {HTMLIFrameElement|null} */ (null))
  const box = useRef(/** @type {HTMLElement|null} */ (null))
  const [height, setHeight] = useState(first)
  const [full, setFull] = useState(false)
  const [question, setQuestion] = useState(/** @type {import('./questions.js').Question|null} */ (null))
  const bridge = useRef(/** @type {Bridge|null} */ (null))
  const mode = useRef('inline')
  const [ready, setReady] = useState(false)

  const show = (/** @type {boolean} */ large) => {
    mode.current = large ? 'fullscreen' : 'inline'
    setFull(large)
    bridge.current?.notify('ui/notifications/host-context-changed', { displayMode: mode.current })
    return { mode: mode.current }
  }

  useEffect(() => {
    const iframe = element.current
    if (!iframe) return
    let wanted = first
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let sizing
    let asking = false
    const noted = (/** @type {string} */ method, /** @type {string} */ answer) => tell?.(method, answer)
    const answers = answersOf({
      call,
      noted,
      frame: iframe,
      show,
      suggest: async (text) => b.state === 'ready' && host.suggest(frame.server, text), // not after switching to another conversation
      agree: (what) => new Promise((done) => {
        if (asking) return done(false)
        asking = true
        setQuestion({ ...what, end: (yes) => {
          asking = false
          setQuestion(null)
          done(yes)
        } })
      }),
    })
    const tell = refusal ? undefined : noting(call, ['ui/initialize', 'ping', ...Object.keys(answers)])
    const b = new Bridge(iframe, {
      noted,
      initialize: () => ({
        protocolVersion: version,
        hostInfo: { name: 'nize', version: '1' },
        hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, downloadFile: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} }, sandbox: frame.granted },
        hostContext: context(iframe, frame, mode.current),
      }),
      ready: () => {
        b.notify('ui/notifications/tool-input', { arguments: frame.arguments ?? {} })
        setReady(true)
      },
      request: (method, params) => {
        if (refusal) throw new Refusal(-32000, refusal)
        const answer = Object.hasOwn(answers, method) && answers[method]
        if (!answer) {
          noted(method, 'method not found')
          throw new Refusal(-32601, 'method not found')
        }
        return answer(params)
      },
      notice: (method, params) => {
        if (method === 'ui/notifications/size-changed' && typeof params.height === 'number' && params.height > 0) {
          wanted = Math.min(Math.max(Math.ceil(params.height), least), most)
          sizing ??= setTimeout(() => {
            sizing = undefined
            setHeight(wanted)
          }, resizes)
        }
        if (method === 'ui/notifications/request-teardown') b.close().then(() => end('closed'))
        if (method === 'notifications/message') console.debug('view', frame.server, params)
      },
      stopped: end,
    }, frame.origin)
    bridge.current = b
    const repaint = () => b.notify('ui/notifications/host-context-changed', appearance())
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', repaint)
    const themed = new MutationObserver(repaint)
    themed.observe(document.documentElement, { attributes: true })
    let told = ''
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let telling
    const sized = new ResizeObserver(() => {
      telling ??= setTimeout(() => {
        telling = undefined
        const now = room(iframe, mode.current)
        const before = told
        told = JSON.stringify(now)
        if (before && before !== told) b.notify('ui/notifications/host-context-changed', now)
      }, resizes)
    })
    sized.observe(iframe)
    iframe.src = (frame.origin ?? '') + '/app/frames/' + frame.ticket
    return () => {
      clearTimeout(sizing)
      clearTimeout(telling)
      sized.disconnect()
      dark.removeEventListener('change', repaint)
      themed.disconnect()
    }
  }, [frame])

  useLayoutEffect(() => () => bridge.current?.leave(), [frame]) // while the frame still exists

  useEffect(() => {
    if (!ready || !ended) return
    const b = bridge.current
    if (frame.result) return b?.notify('ui/notifications/tool-result', frame.result)
    outcome(call).then((result) => b?.notify('ui/notifications/tool-result', result), (err) => b?.notify('ui/notifications/tool-cancelled', { reason: err.message }))
  }, [frame, ready, ended])

  useLayoutEffect(() => { // before it is painted in full size
    if (!full) return
    const close = (/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && show(false)
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [full])

  const name = frame.tool.title || frame.tool.name
  return html`<div role="group" ref=${box} class=${'view' + (full ? ' full' : '')} aria-label=${t('{tool}, shown by {server}', { tool: name, server: frame.server })}>
    <header><span class="dim">${t('shown by {server}', { server: frame.server })}</span><span><button type="button" class="quiet" onClick=${() => show(!full)}>${full ? t('Smaller') : t('Larger')}</button></span></header>
    <iframe ref=${element} sandbox=${'allow-scripts allow-forms' + (frame.origin ? ' allow-same-origin' : '')} referrerpolicy="no-referrer" allow=${frame.granted.permissions.clipboardWrite ? 'clipboard-write' : ''} title=${t('{tool}, shown by {server}', { tool: name, server: frame.server })} height=${full ? undefined : height}></iframe>
    ${question ? html`<${Ask} server=${frame.server} question=${question} />` : ''}
  </div>`
}
