// Answers as they are drawn: where links end, the direction of each paragraph, and what is
// shown as under way. What the page loads meanwhile, and whose calls an approver sees.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, ask } from './stand.mjs'

const stand = new Stand()
/** @type {Awaited<ReturnType<Stand['model']>>} */
let model
before(async () => {
  await stand.begin()
  model = await stand.model(['Hello.'])
})
after(() => stand.close())

/** Waits for the whole of the nth answer. @param {import('playwright-core').Page} page @param {number} n */
const answered = (page, n) => page.waitForFunction((n) => document.querySelectorAll('.answer:not(.writing)').length === n && document.querySelector('[role=log][aria-busy=false]'), n)

test('a link ends where the URL does; each paragraph has its own direction', async () => {
  const text = 'See {"a":"https://example.com/y"},{"b":"http://z.example/q?x={id}"} and \'https://example.com/p\'}, www.foo.example/a"b or a@b.example" here; https://example.com/users/{id} and https://example.com/x。然后 and https://example.com/w_(disambiguation).\n\n\u0645\u0631\u062d\u0628\u0627 hello.\n\n- \u05e2\u05d1\u05e8\u05d9\u05ea'
  const says = model.says([text])
  const page = await stand.signedIn()
  await ask(page, 'links')
  await says
  await answered(page, 1)
  assert.deepEqual(await page.locator('.answer a').evaluateAll((all) => all.map((a) => [a.textContent, a.getAttribute('href')])), [
    ['https://example.com/y', 'https://example.com/y'],
    ['http://z.example/q?x={id}', 'http://z.example/q?x={id}'],
    ['https://example.com/p', 'https://example.com/p'],
    ['www.foo.example/a', 'http://www.foo.example/a'],
    ['a@b.example', 'mailto:a@b.example'],
    ['https://example.com/users/{id}', 'https://example.com/users/%7Bid%7D'],
    ['https://example.com/x', 'https://example.com/x'],
    ['https://example.com/w_(disambiguation)', 'https://example.com/w_(disambiguation)'],
  ])
  assert.equal((await page.innerText('.answer .markdown')).replaceAll(/\s/g, '').slice(0, 40), text.replaceAll(/\s/g, '').slice(0, 40), 'a text is lost')
  const ends = await page.evaluate(() => [...document.querySelectorAll('.answer .markdown > p, .answer li')].map((e) => {
    const range = document.createRange()
    range.selectNodeContents(e)
    const [text, box] = [range.getBoundingClientRect(), e.getBoundingClientRect()]
    return text.right > box.right - 2 && text.left > box.left + 50 ? 'right' : 'left'
  }))
  assert.deepEqual(ends, ['left', 'right', 'right'])
  await page.context().close()
})

test('nothing is under way for a message that was not sent', async () => {
  const says = model.says(['I begin', ' and end.'])
  const page = await stand.signedIn()
  await ask(page, 'begin')
  await says
  await page.getByText('I begin').waitFor()
  await page.route('**/messages?*', (route) => route.abort())
  await ask(page, 'lost')
  await page.getByText('nize could not be reached.').waitFor()
  assert.equal(await page.locator('.working').count(), 0)
  model.more()
  await answered(page, 1)
  await page.context().close()
})

test('a conversation loads no list again', async () => {
  const says = model.says(['One.'])
  const page = await stand.signedIn()
  /** @type {string[]} */
  const loaded = []
  page.on('request', (r) => loaded.push(r.method() + ' ' + new URL(r.url()).pathname.replace(/[0-9A-Z]{26}/, 'ID')))
  const lists = () => loaded.splice(0).filter((r) => /^GET .*\/v1\/(chat\/threads|approvals|models|servers|agents)/.test(r))
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await page.waitForSelector('.threads li')
  assert.deepEqual(lists().filter((r) => r.endsWith('threads')), ['GET /app/v1/chat/threads'], 'at the start')
  await ask(page, 'first of this page')
  await says
  await answered(page, 1)
  await page.locator('.threads li').filter({ hasText: 'first of this page' }).waitFor()
  lists()
  for (const n of [2, 3]) {
    await ask(page, `message ${n}`)
    await answered(page, n)
  }
  assert.deepEqual(lists(), [], 'while nize answers')
  // Another conversation in another tab changes nothing here.
  const other = await page.context().newPage()
  await page.locator('.sidebar').getByRole('link', { name: 'Servers and health' }).click()
  await page.waitForSelector('.server-row')
  await page.waitForSelector('.fine summary')
  lists()
  await other.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(other, 'elsewhere')
  await answered(other, 1)
  assert.deepEqual(lists(), [], 'while another tab talks')
  await other.context().close()
})

test('of many calls an approver sees those of one person', async () => {
  await stand.ctl('models', 'remove', 'parrot', '--yes') // the planner answers
  await stand.ctl('servers', 'edit', 'toolbox', '--approvers', 'admins')
  await stand.ctl('servers', 'share', 'toolbox', '--with', 'all')
  for (const name of ['ann', 'ben']) {
    const person = JSON.parse(await stand.ctl('users', 'add', name, '--json'))
    const page = await stand.signedIn({}, person.id)
    for (let n = 0; n < 3; n++) {
      await page.goto(`http://127.0.0.1:${stand.port}/app/`)
      await ask(page, `add a note: ${name} ${n}`)
      await page.waitForSelector('.card')
    }
    await page.context().close()
  }
  const page = await stand.signedIn()
  await page.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await page.waitForFunction(() => document.querySelectorAll('.card').length === 6)
  const chips = page.locator('.whose button')
  assert.deepEqual((await chips.allInnerTexts()).map((text) => text.replace(/\s+/, ' ')), ['Everybody\u2019s 6', 'ann 3', 'ben 3'])
  await chips.nth(2).click()
  await page.waitForFunction(() => document.querySelectorAll('.card').length === 3)
  assert.equal(await page.locator('.card').filter({ hasText: 'asked by ben' }).count(), 3)
  await stand.look(page, 'approvals-of-one')
  await page.locator('.card').first().getByRole('button', { name: 'Decline', exact: true }).click()
  await page.waitForSelector('.settled')
  await page.waitForFunction(() => document.querySelectorAll('.card').length === 2)
  await chips.first().click()
  await page.waitForFunction(() => document.querySelectorAll('.card').length === 5 && !document.querySelector('.whose')) // five are few
  await page.context().close()
})
