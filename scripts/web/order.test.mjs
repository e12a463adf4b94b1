// Requests whose answers overtake each other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inOrder, newestOnly } from './page/order.js'

/** A request that is answered when it is told so. */
function request() {
  const r = { sent: false, ask: () => { r.sent = true; return r.answered }, /** @type {Promise<any>} */ answered: Promise.resolve(), done: (/** @type {any} */ _) => {}, fail: (/** @type {any} */ _) => {} }
  r.answered = new Promise((done, fail) => { r.done = done; r.fail = fail })
  return r
}

test('a change is sent after the one before it was answered, or failed', async () => {
  const run = inOrder()
  const [a, b, c] = [request(), request(), request()]
  const first = run(a.ask)
  const second = run(b.ask)
  const third = run(c.ask)
  await Promise.resolve()
  assert.deepEqual([a.sent, b.sent, c.sent], [true, false, false])
  a.done('a')
  assert.deepEqual(await first, { answer: 'a', newest: false })
  assert.equal(c.sent, false)
  b.fail(new Error('b'))
  await assert.rejects(second, /b/)
  c.done('c')
  assert.deepEqual(await third, { answer: 'c', newest: true })
})

test('only the newest answer counts, and only its failure', async () => {
  const run = newestOnly()
  const [a, b, c] = [request(), request(), request()]
  const got = /** @type {any[]} */ ([])
  for (const r of [a, b, c]) run(r.ask).then((x) => got.push(x), (err) => got.push(err.message))
  c.done('c')
  b.fail(new Error('b'))
  a.done('a')
  await Promise.allSettled([a.answered, b.answered, c.answered])
  await new Promise((next) => setImmediate(next))
  assert.deepEqual(got, ['c'])
})
