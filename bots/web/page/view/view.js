// @ts-check
// A tool's view in its frame: HTML of whoever wrote the tool, without an origin,
// which shows the result and talks to the page by messages alone.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'
import { post } from '../api.js'
import { CallDetails } from '../call.js'
import { Bridge, Refusal, version } from './bridge.js'
import { appearance, context, theme } from './context.js'
import { keepFocus } from './focus.js'
import { t } from '../words.js'

const [least, most, first] = [40, 800, 160]
const resizes = 100 // ms between two

/**
 * @param {object} props
 * @param {string} props.call
 */
export function View({ call }) {
  const [frame, setFrame] = useState(/** @type {any} */ (null))
  const [over, setOver] = useState('')
  useEffect(() => {
    let left = false
    post('frames', { call, theme: theme() }).then((f) => left || setFrame(f), () => left || setOver('none'))
    return () => { left = true }
  }, [call])
  if (over === 'none' || !frame) return ''
  if (over) return html`<div class="view ended">
    <p class="dim">${over === 'flood' ? t('The view of {tool} was stopped: it sent too much.', { tool: frame.tool.name }) : over === 'silent' ? t('The view of {tool} did not start. This is the plain result:', { tool: frame.tool.name }) : t('The view of {tool} is closed.', { tool: frame.tool.name })}</p>
    ${over === 'closed' ? '' : html`<${CallDetails} id=${call} state="done" />`}
  </div>`
  return html`<${Shown} frame=${frame} end=${setOver} />`
}

/** @param {{frame: any, end: (why: string) => void}} props */
function Shown({ frame, end }) {
  const element = useRef(/** @type {HTMLIFrameElement|null} */ (null))
  const box = useRef(/** @type {HTMLElement|null} */ (null))
  const [height, setHeight] = useState(first)
  const [full, setFull] = useState(false)
  const bridge = useRef(/** @type {Bridge|null} */ (null))
  const mode = useRef('inline')

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
    const b = new Bridge(iframe, {
      initialize: () => ({
        protocolVersion: version,
        hostInfo: { name: 'nize', version: '1' },
        hostCapabilities: { logging: {}, sandbox: { permissions: {}, csp: {} } },
        hostContext: context(frame, mode.current),
      }),
      ready: () => {
        b.notify('ui/notifications/tool-input', { arguments: frame.arguments ?? {} })
        b.notify('ui/notifications/tool-result', frame.result)
      },
      request: (method, params) => {
        if (method !== 'ui/request-display-mode') throw new Refusal(-32601, 'method not found')
        if (params.mode === 'fullscreen') pressed()
        return show(params.mode === 'fullscreen')
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
    })
    bridge.current = b
    const repaint = () => b.notify('ui/notifications/host-context-changed', appearance())
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', repaint)
    const themed = new MutationObserver(repaint)
    themed.observe(document.documentElement, { attributes: true })
    const free = keepFocus(iframe)
    iframe.src = '/app/frames/' + frame.ticket
    return () => {
      clearTimeout(sizing)
      dark.removeEventListener('change', repaint)
      themed.disconnect()
      free()
      b.end()
    }
  }, [frame])

  useEffect(() => {
    if (!full) return
    const close = (/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && show(false)
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [full])

  const name = frame.tool.title || frame.tool.name
  return html`<section ref=${box} class=${'view' + (full ? ' full' : '')} aria-label=${t('{tool}, shown by {server}', { tool: name, server: frame.server })}>
    <header><span class="dim">${t('shown by {server}', { server: frame.server })}</span><span><button type="button" class="quiet" onClick=${() => show(!full)}>${full ? t('Smaller') : t('Larger')}</button></span></header>
    <iframe ref=${element} sandbox="allow-scripts allow-forms" referrerpolicy="no-referrer" title=${t('{tool}, shown by {server}', { tool: name, server: frame.server })} height=${full ? undefined : height}></iframe>
  </section>`
}

/** Throws unless a person has just pressed something: a view opens nothing by itself. */
function pressed() {
  if (!navigator.userActivation?.isActive) throw new Refusal(-32000, 'this needs a person who presses something in the view')
}
