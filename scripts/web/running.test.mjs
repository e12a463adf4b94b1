// Views of calls that still run, in a real browser.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { model, rested } from './obedient.mjs'
import { Stand, ask, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
const dir = path.join(stand.dir, 'ends')
before(async () => {
  await stand.begin()
  await model(stand)
  fs.mkdirSync(dir)
  await stand.ctl('servers', 'add', 'views', '--', process.execPath, new URL('viewserver.mjs', import.meta.url).pathname, dir)
  await stand.ctl('servers', 'edit', 'views', '--approval', 'always')
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--default')
})
after(() => stand.close())

const end = (file, how) => fs.writeFileSync(path.join(dir, file), how)

/** What a view was told of its call, by method, so many at least. @param {import('playwright-core').Frame} view @param {number} count */
async function told(view, count) {
  const all = await view.waitForFunction((n) => { // looking at it changes the theme, of which it is told, too
    const all = /** @type {any} */ (window).told.map(({ method, params }) => [method.replace('ui/notifications/', ''), params]).filter(([method]) => method !== 'host-context-changed')
    return all.length >= n && all
  }, count)
  return all.jsonValue()
}

test('views of calls that run', async () => {
  const page = await stand.signedIn()
  /** Lets a call of slow run, and says what its view is. @param {string} file @param {(n: number) => any} [look] */
  const run = async (file, look = shown) => {
    const before = await page.locator('.view-place').count()
    await ask(page, `views:slow {"file":"${file}"}`)
    await page.locator('.card').waitFor()
    assert.equal(await page.locator('.view-place').count(), before, 'a view before a yes')
    const call = await page.locator('.card').getAttribute('data-call')
    const early = await page.evaluate((call) => fetch('/app/v1/frames', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ call }) }).then((answer) => answer.status), call)
    assert.equal(early, 409)
    await page.locator('.card .buttons').scrollIntoViewIfNeeded()
    await readable(page)
    await press(page, 'Run').click()
    return look(before)
  }
  async function shown(n) {
    const frame = await (await page.locator('.view-place').nth(n).locator('iframe').elementHandle())?.contentFrame()
    await frame?.locator('body[data-ready]').waitFor({ state: 'attached' })
    return /** @type {import('playwright-core').Frame} */ (frame)
  }

  let view = await run('a')
  assert.deepEqual(await told(view, 1), [['tool-input', { arguments: { file: 'a' } }]])
  await view.evaluate(() => { /** @type {any} */ (window).same = true })
  await stand.look(page, 'view-running')
  end('a', 'done')
  let all = await told(view, 2)
  assert.deepEqual([all.length, all[1][0], all[1][1].structuredContent], [2, 'tool-result', { how: 'done' }])
  assert.equal(await view.evaluate(() => /** @type {any} */ (window).same), true, 'it was opened again')

  // A call that fails, and one whose outcome nobody knows.
  await page.waitForSelector('[role=log][aria-busy=false]')
  view = await run('b')
  end('b', 'fail')
  all = await told(view, 2)
  assert.deepEqual([all.length, all[0][0], all[1][0]], [2, 'tool-input', 'tool-cancelled'])
  assert.match(all[1][1].reason, /it failed/)
  await page.waitForSelector('[role=log][aria-busy=false]')
  view = await run('c')
  await told(view, 1)
  await stand.end('SIGKILL')
  await stand.start()
  all = await told(view, 2)
  assert.deepEqual([all[1][0], all.length], ['tool-cancelled', 2])
  assert.match(all[1][1].reason, /nized stopped while it ran/)
  await page.waitForSelector('[role=log][aria-busy=false]')

  // One ends while its view is being opened, whose answer comes when the page has drawn
  // the end and not yet acted on it: the view is opened once.
  let loads = 0
  page.on('request', (r) => { loads += +/\/app\/(v1\/)?frames(\?|\/[\w-]+$)/.test(r.url()) })
  await page.evaluate((done) => {
    const ask = window.fetch
    window.fetch = async (at, init) => {
      const answer = await ask(at, init)
      if (!answer.ok || !String(at).startsWith('/app/v1/frames?')) return answer
      window.fetch = ask
      const frame = await answer.json()
      const before = document.querySelectorAll(done).length
      await new Promise((drawn) => {
        new MutationObserver(() => document.querySelectorAll(done).length > before && drawn(0)).observe(document.body, { subtree: true, childList: true, attributes: true })
        Object.assign(window, { opening: true })
      })
      return /** @type {any} */ ({ ok: true, json: async () => frame })
    }
  }, outcome)
  view = await run('e', async (n) => {
    await page.waitForFunction(() => 'opening' in window)
    end('e', 'done')
    return shown(n)
  })
  all = await told(view, 2)
  assert.deepEqual(all.map(([method]) => method), ['tool-input', 'tool-result'])
  await page.waitForSelector('[role=log][aria-busy=false]')
  assert.equal(loads, 2, 'it was opened or loaded again')

  // The page is loaded again while one runs.
  view = await run('d')
  await page.reload()
  await page.locator('.view-place').nth(2).waitFor({ state: 'attached' })
  const place = await page.locator('.view-place').count() - 1
  await page.locator('.view-place').nth(place).scrollIntoViewIfNeeded()
  view = await shown(place)
  assert.deepEqual(await told(view, 1), [['tool-input', { arguments: { file: 'd' } }]])
  end('d', 'done')
  all = await told(view, 2)
  assert.deepEqual(all[1][1].structuredContent, { how: 'done' })
  await page.waitForSelector('[role=log][aria-busy=false]')

  // A view is told when its conversation is left, and can still ask: its frame goes once
  // it answered, or after two seconds. One that has the keyboard loses it, and one that
  // takes it goes at once: it has no key of what a person writes.
  const address = page.url()
  /** @type {string[]} */
  const said = []
  page.on('console', (m) => said.push(m.text()))
  for (const stays of ['', 'quiet', 'loud']) {
    await view.evaluate((how) => { /** @type {any} */ (window).stays = how }, stays)
    const leave = page.getByRole('link', { name: 'New conversation' })
    if (stays === 'quiet') {
      await rested(page)
      await page.locator('.view-place').nth(place).locator('iframe').click()
      await page.waitForFunction(() => document.activeElement?.tagName === 'IFRAME')
    }
    const goodbye = page.waitForEvent('console', (m) => m.text() === 'goodbye')
    if (stays === 'quiet') {
      const active = await leave.evaluate((link) => new Promise((done) => {
        new MutationObserver(() => document.querySelector('body > iframe') && done(document.activeElement?.tagName)).observe(document.body, { childList: true })
        link.click() // which leaves the keyboard where it is
      }))
      assert.equal(active, 'BODY')
    } else await leave.click()
    if (stays === 'loud') await page.focus('#message')
    await goodbye
    if (stays === 'quiet') await page.keyboard.type('keys')
    await page.waitForFunction(() => !document.querySelector('iframe'))
    if (stays === 'loud') break
    await page.goto(address)
    await page.locator('.view-place').nth(place).scrollIntoViewIfNeeded()
    view = await shown(place)
    await told(view, 2)
  }
  // What was typed while the quiet view left is in the field, since a new conversation has
  // the focus there.
  await page.evaluate(() => {
    const field = /** @type {HTMLTextAreaElement} */ (document.querySelector('#message'))
    field.value = ''
    field.dispatchEvent(new Event('input', { bubbles: true }))
  })
  await page.keyboard.type('what a person writes')
  assert.equal(await page.inputValue('#message'), 'what a person writes')
  assert.deepEqual(said.filter((text) => /^a (key|take)$/.test(text)), ['a take'], 'a view that leaves had a key, or took the keyboard again')
  await page.context().close()
})
