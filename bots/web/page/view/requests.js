// @ts-check
// What a view asks of nize, for who looks at it: a tool of its own server, or what that
// has. A call that needs a yes has its card in the conversation, as every call has.
import { get, post } from '../api.js'
import { Refusal } from './bridge.js'
import { Rate } from './wire.js'

const again = 1500 // ms between two looks at a call that waits
const minute = 60_000 // ms
const most = 21 // in a minute, of each method: nize writes down 20, and that more came

/**
 * @param {string} call whose view asks
 * @param {string} method
 * @param {object} params
 */
export async function ask(call, method, params) {
  const base = `frames/${encodeURIComponent(call)}/`
  const answer = await post(base + 'requests', { method, params })
  return resultOf(base, answer)
}

/**
 * What tells nize of the requests of a view that go no further than the page, so that
 * each is an event of the call. Nobody waits for that.
 * @param {string} call
 * @param {string[]} methods that there are
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

/** What the call came to that a view shows, once it has ended; a Refusal where it came to nothing. @param {string} call */
export const outcome = (call) => resultOf(`frames/${encodeURIComponent(call)}/`, { pending: call }, 0)

/**
 * @param {string} base
 * @param {any} answer
 * @param {number} [wait] before the first look
 */
async function resultOf(base, answer, wait = again) {
  while (answer.pending) {
    const { pending } = answer
    await new Promise((done) => setTimeout(done, wait))
    wait = again
    answer = await get(base + 'calls/' + encodeURIComponent(pending)).catch((err) => {
      if (err.status >= 400 && err.status < 500 && err.status !== 429) throw new Refusal(-32000, err.message)
      return { pending } // nize is away, and comes back
    })
  }
  if (answer.error) throw new Refusal(answer.error.code, answer.error.message)
  return answer.result
}
