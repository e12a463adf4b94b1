// @ts-check
// Requests of a view to nize on behalf of its viewer: a tool or a resource of its own
// server. A call that needs approval has its card in the conversation, like every call.
import { get, post } from '../api.js'
import { Refusal } from './bridge.js'
import { Rate } from './wire.js'

const again = 1500 // ms between two polls of a pending call
const minute = 60_000 // ms
const most = 21 // per minute and method: nize records 20, and that there were more

/**
 * @param {string} call the call of the view
 * @param {string} method
 * @param {object} params
 */
export async function ask(call, method, params) {
  const base = `frames/${encodeURIComponent(call)}/`
  const answer = await post(base + 'requests', { method, params })
  return resultOf(base, answer)
}

/**
 * Returns a function that reports to nize the requests of a view that the page handles
 * itself, so that each is an event of the call. It doesn't wait for a response.
 * @param {string} call
 * @param {string[]} methods the known ones
 */
export function noting(call, methods) {
  /** @type {Map<string, Rate>} */
  const rates = new Map()
  return (/** @type {string} */ method, /** @type {string} */ answer) => {
    const name = methods.includes(method) ? method : ''
    const rate = rates.get(name) ?? new Rate(most, minute)
    rates.set(name, rate)
    if (rate.take(performance.now())) post(`frames/${encodeURIComponent(call)}/requests`, { method, answer }).catch(() => {})
  }
}

/** Returns the result of a view's call after it has ended; throws a Refusal if it has none. @param {string} call */
export const outcome = (call) => resultOf(`frames/${encodeURIComponent(call)}/`, { pending: call }, 0)

/**
 * @param {string} base
 * @param {any} answer
 * @param {number} [wait] before the first poll
 */
async function resultOf(base, answer, wait = again) {
  while (answer.pending) {
    const { pending } = answer
    await new Promise((done) => setTimeout(done, wait))
    wait = again
    answer = await get(base + 'calls/' + encodeURIComponent(pending)).catch((err) => {
      if (err.status >= 400 && err.status < 500 && err.status !== 429) throw new Refusal(-32000, err.message)
      return { pending } // nize is unavailable for a while
    })
  }
  if (answer.error) throw new Refusal(answer.error.code, answer.error.message)
  return answer.result
}
