// What a message does to calls that wait, in a real browser: it withdraws one's own, which
// the page says before, and waits behind those that others decide.
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { heard, model } from './obedient.mjs'
import { Stand, ask, press, readable } from './stand.mjs'

const stand = new Stand()
/** @type {string} */ let mia
before(async () => {
  await stand.begin()
  await model(stand)
  await stand.ctl('servers', 'add', 'vault', '--', 'nize-toolbox', '--notes', path.join(stand.dir, 'vault.json'))
  for (const server of ['toolbox', 'vault']) await stand.ctl('servers', 'share', server, '--with', 'all')
  await stand.ctl('servers', 'edit', 'vault', '--approvers', 'admins')
  mia = JSON.parse(await stand.ctl('users', 'add', 'mia', '--json')).id
})
after(() => stand.close())

const note = (/** @type {string} */ server, /** @type {string} */ title) => `${server}:note_add {"title":"${title}","text":"x"}`
/** @param {import('playwright-core').Page} page @param {string} state */
const settled = (page, state) => page.waitForSelector(`.settled[data-state="${state}"]`)
/** @param {import('playwright-core').Page} page */
const held = (page) => page.locator('.composer .held')
/** @param {import('playwright-core').Page} page */
const idle = (page) => page.waitForSelector('[role=log][aria-busy=false]')

test("a message withdraws one's own card, and the page says so before", async () => {
  const page = await stand.signedIn({}, mia)
  await ask(page, note('toolbox', 'one'))
  await readable(page)
  await held(page).getByText('Sending a message withdraws your call that waits.').waitFor()
  await stand.look(page, 'withdraws')
  await ask(page, 'no, leave it')
  await settled(page, 'cancelled')
  await page.getByText('Said.').waitFor()
  assert.equal(await held(page).count(), 0)
  await page.context().close()
})

test('a call that others decide survives a message, which is answered after it', async () => {
  const page = await stand.signedIn({}, mia)
  await ask(page, note('vault', 'two'))
  await page.locator('.card').getByRole('button', { name: 'Withdraw' }).waitFor()
  assert.equal(await press(page, 'Run').count(), 0)
  await held(page).getByText('nize answers what you write after that').waitFor()
  await stand.look(page, 'others-decide')
  await ask(page, 'thanks, I will wait')
  await page.locator('.said').nth(1).waitFor()
  await idle(page)
  await page.reload()
  await page.locator('.card').getByRole('button', { name: 'Withdraw' }).waitFor()
  assert.equal(await page.locator('.answer').count(), 0)
  const root = await stand.signedIn()
  await root.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await readable(root)
  await press(root, 'Run').click()
  await settled(page, 'done')
  await page.getByText('Said.').waitFor()
  await idle(page)
  const last = heard[heard.length - 1]
  assert.deepEqual(last.slice(-3).map((/** @type {any} */ m) => m.role), ['assistant', 'tool', 'user'])
  assert.match(last[last.length - 1].content, /I will wait/)
  await root.context().close()
  await page.context().close()
})

test('Withdraw, unread and beside a call of others', async () => {
  const page = await stand.signedIn({ viewport: { width: 390, height: 600 } }, mia)
  await ask(page, [note('toolbox', 'three'), note('vault', 'four')].join('\n'))
  await page.locator('.card').nth(1).waitFor()
  assert.deepEqual(await held(page).allInnerTexts(), ['Sending a message withdraws your call that waits.', 'Others decide about a call of yours. nize answers what you write after that.'])
  await stand.look(page, 'withdraws-and-others')
  await ask(page, 'only the vault then')
  await settled(page, 'cancelled')
  assert.equal(await page.locator('.card').count(), 1)
  await page.locator('.card').getByRole('button', { name: 'Withdraw' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.settled[data-state="cancelled"]').length === 2)
  await page.getByText('Said.').waitFor()
  const root = await stand.signedIn()
  await root.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await root.getByText('No pending approvals.').waitFor()
  await root.context().close()
  await page.context().close()
})
