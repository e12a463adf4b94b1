// @ts-check
// The host's side of MCP Apps: JSON-RPC 2.0 with one frame. Only messages from this
// frame's window are accepted, and none is sent before the view has said that it is ready.
import { keepFocus } from './focus.js'
import { Rate, fits } from './wire.js'

export const version = '2026-01-26'

/** The maximum number of messages from a view per second. */
const maxRate = 50
const patience = 10_000 // ms within which it must be ready
const teardown = 2000 // ms for the view's teardown
const beat = 20_000 // ms between two signs of life while a request waits

/** An error that is returned to a view. */
export class Refusal extends Error {
  /** @param {number} code @param {string} message */
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

/**
 * @typedef {object} Host
 * @property {() => object} initialize returns the response to ui/initialize
 * @property {() => void} ready messages to the view are now possible
 * @property {(method: string, params: any) => object|Promise<object>} request throws a Refusal
 * @property {(method: string, params: any) => void} notice
 * @property {(method: string, answer: string) => void} noted a request that the page handles itself
 * @property {(why: 'silent'|'flood'|'keys') => void} stopped the frame must be removed
 */

export class Bridge {
  /** @type {'new'|'asked'|'ready'|'leaving'|'ended'} */
  state = 'new'
  rate = new Rate(maxRate)
  /** @type {(() => void)|undefined} */
  goodbye

  /**
   * @param {HTMLIFrameElement} frame
   * @param {Host} host
   * @param {string} [origin] of the view, if it has one
   */
  constructor(frame, host, origin = 'null') {
    this.frame = frame
    this.host = host
    this.origin = origin
    this.hear = (/** @type {MessageEvent} */ e) => this.heard(e)
    addEventListener('message', this.hear)
    this.timer = setTimeout(() => this.stop('silent'), patience)
    this.free = keepFocus(frame, () => this.stop('keys'))
  }

  /** @param {MessageEvent} e */
  heard(e) {
    if (this.state === 'ended' || e.source === null || e.source !== this.frame.contentWindow || e.origin !== this.origin) return
    if (!this.rate.take(performance.now())) return this.stop('flood')
    const m = e.data
    if (!fits(m)) return this.stop('flood')
    if (m === null || typeof m !== 'object' || Array.isArray(m) || m.jsonrpc !== '2.0') return
    const asks = typeof m.id === 'string' || typeof m.id === 'number'
    if (typeof m.method !== 'string') {
      if (asks) this.goodbye?.() // the only request sent to a view
      return
    }
    const params = m.params !== null && typeof m.params === 'object' && !Array.isArray(m.params) ? m.params : {}
    if (asks) this.asked(m.id, m.method, params)
    else if (m.id === undefined) this.noticed(m.method, params)
  }

  /** @param {string|number} id @param {string} method @param {any} params */
  asked(id, method, params) {
    if (method === 'ui/initialize') {
      if (this.state === 'new') this.state = 'asked'
      this.host.noted(method, 'ok')
      return this.post({ id, result: this.host.initialize() })
    }
    if (this.state !== 'ready' && this.state !== 'leaving') return this.host.noted(method, 'none: it is not ready') // a view that is leaving may still store something
    if (method === 'ping') {
      this.host.noted(method, 'ok')
      return this.post({ id, result: {} })
    }
    this.answer(id, method, params)
  }

  /** @param {string|number} id @param {string} method @param {any} params */
  async answer(id, method, params) {
    const progressToken = params._meta?.progressToken
    let progress = 0
    const alive = setInterval(() => {
      if (progressToken !== undefined) this.post({ method: 'notifications/progress', params: { progressToken, progress: ++progress } })
    }, beat)
    try {
      this.post({ id, result: await this.host.request(method, params) })
    } catch (/** @type {any} */ err) {
      this.post({ id, error: { code: err instanceof Refusal ? err.code : -32000, message: String(err.message) } })
    } finally {
      clearInterval(alive)
    }
  }

  /** @param {string} method @param {any} params */
  noticed(method, params) {
    if (method === 'ui/notifications/initialized') {
      if (this.state !== 'asked') return
      this.state = 'ready'
      clearTimeout(this.timer)
      return this.host.ready()
    }
    if (this.state === 'ready') this.host.notice(method, params)
  }

  /** @param {object} message */
  post(message) {
    if (this.state !== 'ended') this.frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, this.origin === 'null' ? '*' : this.origin) // an opaque origin can't be named; what the view gets is only its own data
  }

  /** Sends the view a notification, once it is ready. @param {string} method @param {object} params */
  notify(method, params) {
    if (this.state === 'ready') this.post({ method, params })
  }

  /** Lets the view tear down, and ends. */
  async close() {
    if (this.state === 'ready') {
      this.state = 'leaving'
      await new Promise((done) => {
        this.goodbye = () => done(undefined)
        setTimeout(done, teardown)
        this.post({ id: 'teardown', method: 'ui/resource-teardown', params: {} })
      })
    }
    this.end()
  }

  /**
   * Moves the frame when its place is removed, so that the view can tear down invisibly.
   * Browsers that would reload a moved frame end it at once.
   */
  leave() {
    const body = /** @type {any} */ (document.body)
    if (this.state !== 'ready' || !body.moveBefore) return this.end()
    this.frame.hidden = true // which also takes the keyboard away from it
    body.moveBefore(this.frame, null)
    this.close()
  }

  /** @param {'silent'|'flood'|'keys'} why */
  stop(why) {
    this.end()
    this.host.stopped(why)
  }

  end() {
    this.state = 'ended'
    this.free()
    if (this.frame.hidden) this.frame.remove()
    clearTimeout(this.timer)
    removeEventListener('message', this.hear)
  }
}
