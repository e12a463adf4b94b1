// @ts-check
// Requests to nize in the session of the signed-in person.
import { language } from './words.js'

const base = '/app/v1/'

/** An error response of nize. */
export class Failure extends Error {
  /**
   * @param {number} status
   * @param {{error?: {type: string, message: string, fields?: {at: string[], message: string}[]}, card?: any}} body
   */
  constructor(status, body) {
    super(body.error?.message ?? `HTTP ${status}`)
    this.status = status
    this.type = body.error?.type ?? ''
    this.card = body.card
    /** What is wrong with the arguments, by field. */
    this.fields = body.error?.fields ?? []
  }
}

/** The reader's time zone, for times in texts from nize. */
export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone ?? ''

/** @param {string} path */
export const address = (path) => base + path + (path.includes('?') ? '&' : '?') + 'zone=' + encodeURIComponent(zone())

/** @returns {Record<string, string>} */
export const headers = () => ({ 'Accept-Language': language() })

/** @param {Response} answer */
export async function failureOf(answer) {
  const body = await answer.json().catch(() => ({}))
  return new Failure(answer.status, body)
}

/** @param {string} path */
export async function get(path) {
  const answer = await fetch(address(path), { headers: headers(), cache: 'no-store' })
  if (!answer.ok) throw await failureOf(answer)
  return answer.json()
}

/** Fetches a file. @param {string} path */
export async function getFile(path) {
  const answer = await fetch(address(path), { headers: headers(), cache: 'no-store' })
  if (!answer.ok) throw await failureOf(answer)
  return answer.blob()
}

/**
 * Sends JSON. A string is sent unchanged, so that its numbers keep their form.
 * @param {string} path
 * @param {object|string} [body]
 */
export const post = (path, body) => send('POST', path, body)

/** @param {string} path @param {object|string} [body] */
export const put = (path, body) => send('PUT', path, body)

/** @param {string} path @param {object|string} [body] */
export const patch = (path, body) => send('PATCH', path, body)

/** Sends a file. @param {string} path @param {File} file */
export async function upload(path, file) {
  const answer = await fetch(address(path), { method: 'POST', headers: { ...headers(), 'Content-Type': 'application/octet-stream' }, body: file })
  if (!answer.ok) throw await failureOf(answer)
  return answer.json()
}

/** @param {string} path */
export const remove = (path) => send('DELETE', path)

/** @param {string} method @param {string} path @param {object|string} [body] */
const send = (method, path, body) => sendTo(method, address(path), body)

/** Sends JSON to a URL outside the person's API. @param {string} at @param {object} body */
export const postTo = (at, body) => sendTo('POST', at, body)

/** @param {string} method @param {string} at @param {object|string} body */
async function sendTo(method, at, body = {}) {
  const answer = await fetch(at, {
    method,
    headers: { ...headers(), 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  if (!answer.ok) throw await failureOf(answer)
  return answer.json().catch(() => ({}))
}

/** Returns a key under which a message is accepted only once. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('')

/** Goes to the sign-in page, which returns to the current address. */
export function signIn() {
  document.cookie = `nize-next=${location.pathname}; path=/; max-age=900; samesite=lax`
  location.assign('/login')
}
