// Several tabs of one browser that nobody sees: which of them keeps its stream, and which
// one notifies.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** @typedef {import('playwright-core').Page} Page */

/** Waits until a tab has so many streams. @param {Page} page @param {number} n */
const streams = (page, n) => page.waitForFunction((n) => /** @type {any} */ (window).streams === n, n)

/** How many streams a tab has. @param {Page} page @returns {Promise<number>} */
const count = (page) => page.evaluate(() => /** @type {any} */ (window).streams)

/** Says that nobody sees a tab, or that somebody does. @param {Page} page @param {boolean} now */
const hide = (page, now) => page.evaluate((now) => /** @type {any} */ (window).hide(now), now)

/** What a tab has notified. @param {Page} page @returns {Promise<string[]>} */
const shown = (page) => page.evaluate(() => /** @type {any} */ (window).shown)

test('one hidden tab keeps its stream and notifies, the others come back when they are seen', async () => {
  const first = await stand.signedIn()
  const context = first.context()
  await context.clock.install()
  await context.grantPermissions(['notifications'])
  await context.addInitScript(() => {
    const shown = /** @type {any} */ (window).shown = []
    class Told {
      static permission = 'granted'
      static requestPermission = async () => 'granted'
      constructor(title, options) { shown.push(options.body) }
      close() {}
    }
    Object.defineProperty(window, 'Notification', { value: Told })
    const ask = window.fetch
    let streams = 0
    Object.defineProperty(window, 'streams', { get: () => streams })
    window.fetch = (at, init) => {
      if (String(at).includes('/app/v1/events')) {
        streams++
        init?.signal?.addEventListener('abort', () => { streams-- }, { once: true })
      }
      return ask(at, init)
    }
    let hidden = false
    Object.defineProperty(document, 'hidden', { get: () => hidden })
    Object.assign(window, { hide: (/** @type {boolean} */ now) => { hidden = now; document.dispatchEvent(new Event('visibilitychange')) } })
  })
  const origin = `http://127.0.0.1:${stand.port}`
  /** @type {Page[]} */ const pages = []
  for (const path of ['/app/', '/app/approvals', '/app/usage']) {
    const page = await context.newPage()
    pages.push(page)
    await page.goto(origin + path)
    await streams(page, 1)
    if (pages.length > 1) continue
    await page.getByRole('button', { name: 'Notifications: off' }).click() // the others come once it is the one
    await page.waitForFunction(async () => (await navigator.locks.query()).held?.some((l) => l.name === 'nize-events'))
  }
  await first.close()
  const [a, b, c] = pages
  /** Asks for a call that waits. */
  const propose = async (/** @type {string} */ city) => {
    const headers = { Origin: origin }
    const { id } = await (await context.request.post(origin + '/app/v1/chat/threads', { headers, data: {} })).json()
    const answer = await context.request.post(`${origin}/app/v1/chat/threads/${id}/messages`, { headers, data: { key: 'k', text: `What time is it in ${city}?` } })
    assert.equal(answer.status(), 200)
  }
  const unseen = (/** @type {Page} */ page) => page.waitForFunction(async () => !(await navigator.locks.query()).held?.some((l) => l.name === 'nize-seen'))
  const waits = (/** @type {Page} */ page, /** @type {number} */ n) => page.waitForFunction((n) => document.title.startsWith(`(${n})`), n)

  for (const page of pages) await page.getByRole('button', { name: 'Notifications: on' }).waitFor()
  await a.waitForFunction(async () => { // it notifies, and the others would
    const { held, pending } = await navigator.locks.query()
    return held?.some((l) => l.name === 'nize-events') && pending?.filter((l) => l.name === 'nize-events').length === 2
  })
  for (const page of pages) await hide(page, true)
  await unseen(a)
  await context.clock.runFor(30_000)
  assert.deepEqual(await Promise.all(pages.map(count)), [1, 1, 1], 'a stream ended before a minute')
  await context.clock.runFor(31_000)
  await streams(b, 0)
  await streams(c, 0)
  assert.equal(await count(a), 1, 'the tab that notifies gave its stream back')

  await propose('Oslo')
  await a.waitForFunction(() => /** @type {any} */ (window).shown.length)
  assert.deepEqual(await Promise.all(pages.map(shown)), [['A call needs your approval.'], [], []])

  await hide(b, false) // it comes back, and has what it missed
  await waits(b, 1)
  assert.equal(await count(b), 1)
  await propose('Rome') // which is seen there
  await waits(b, 2)
  await waits(a, 2)
  assert.deepEqual(await Promise.all(pages.map(shown)), [['A call needs your approval.'], [], []])

  await hide(b, true)
  await unseen(b)
  await context.clock.runFor(61_000)
  await streams(b, 0)
  await c.close()
  await a.close() // another one notifies from now on
  await b.waitForFunction(async () => (await navigator.locks.query()).held?.some((l) => l.name === 'nize-events'))
  await streams(b, 1)
  await waits(b, 2)
  await propose('Cairo')
  await waits(b, 3)
  await b.waitForFunction(() => /** @type {any} */ (window).shown.length)
  assert.deepEqual(await shown(b), ['A call needs your approval.'])
  await context.close()
})
