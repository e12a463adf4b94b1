// The chat page in a real browser, against the real programs.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, shots } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** @param {import('playwright-core').Page} page @param {string} text */
async function ask(page, text) {
  await page.fill('#message', text)
  await page.press('#message', 'Enter')
}

/** @param {import('playwright-core').Page} page @param {string} name */
const press = (page, name) => page.locator('.card').getByRole('button', { name, exact: true })

/** Waits until the buttons of the card count. @param {import('playwright-core').Page} page */
const readable = (page) => page.waitForSelector('.card .run[aria-disabled="false"]')

const outcome = '.settled[data-state="done"]'

test('signed out, the page leads to signing in and comes back', async () => {
  const context = await stand.browser.newContext()
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await page.waitForURL('**/login**')
  const secret = /#(\S+)/.exec(await stand.ctl('login'))[1]
  await page.fill('[data-fragment]', secret)
  await page.locator('form:has([data-fragment]) button').click()
  await page.waitForURL('**/app/approvals')
  await page.getByText('Nothing waits.').waitFor()
  await stand.look(page, 'nothing-waits')
  await context.close()
})

test('a question, its card, a yes; two tabs show one decision', async () => {
  const page = await stand.signedIn()
  await stand.look(page, 'new')
  await page.setViewportSize({ width: 1200, height: 320 }) // the card's beginning stays out of sight
  await ask(page, 'What time is it in Tokyo?')
  await page.waitForSelector('.card .run')
  await press(page, 'Run').click({ force: true }) // nobody has read it
  assert.equal(await press(page, 'Run').getAttribute('aria-disabled'), 'true', 'a press counts too early')
  await page.setViewportSize({ width: 1200, height: 800 })
  await readable(page)
  assert.match(await page.locator('.card .args').innerText(), /"place": "Tokyo"/)
  await stand.look(page, 'card')
  const other = await page.context().newPage()
  await other.goto(page.url())
  await readable(other)
  const third = await page.context().newPage()
  await third.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await readable(third)
  assert.match(await third.title(), /^\(1\) /)
  await page.evaluate(() => document.querySelector('.card .run').click()) // a script is no person
  await other.bringToFront()
  await press(other, 'Run').click()
  for (const tab of [page, other, third]) {
    await tab.bringToFront()
    await tab.waitForSelector(outcome)
    assert.equal(await tab.locator('.card').count(), 0)
  }
  await page.getByText('(from toolbox:current_time)').waitFor()
  assert.equal(await page.locator('.settled').count(), 1)
  assert.equal(await page.locator('.said').count(), 1)
  await page.locator('.settled .tool-line').click()
  await page.getByText('Result', { exact: true }).waitFor()
  await stand.look(page, 'answered')
  await page.reload()
  await page.waitForSelector(outcome)
  assert.equal(await page.locator('.said').count(), 1)
  assert.equal(await page.locator('.answer').count(), 2)
  await page.context().close()
})

test('edited arguments are what runs, numbers as they are written', async () => {
  const page = await stand.signedIn()
  await ask(page, 'calculate 6*7')
  await readable(page)
  await press(page, 'Edit as JSON').click()
  const field = page.getByLabel('Arguments as JSON')
  await field.fill('{"expression": ')
  await press(page, 'Run with these').click()
  await page.waitForSelector('.edit [role=alert]')
  await field.fill('{"expression": 9007199254740993}')
  await press(page, 'Run with these').click()
  await page.getByText('expression', { exact: false }).locator('visible=true').last().waitFor()
  await stand.look(page, 'edit')
  await field.fill('{"expression": "9007199254740993 + 0"}')
  await press(page, 'Run with these').click()
  await page.waitForSelector(outcome)
  await page.locator(outcome).getByText('9007199254740993').first().waitFor()
  await page.context().close()
})

test('kill -9 with a card open, and back', async () => {
  const page = await stand.signedIn()
  await ask(page, 'What time is it in Paris?')
  await readable(page)
  await page.fill('#message', 'a draft')
  await stand.end('SIGKILL')
  await page.waitForSelector('.banner')
  await stand.look(page, 'away')
  await stand.start()
  await page.waitForSelector('.banner', { state: 'detached' })
  await readable(page)
  await press(page, 'Run').click()
  await page.waitForSelector(outcome)
  assert.equal(await page.inputValue('#message'), 'a draft')
  assert.equal(await page.locator('.said').count(), 1)
  await page.context().close()
})

test('Cancel; Enter sends nothing while an input method composes', async () => {
  const page = await stand.signedIn()
  await ask(page, 'What time is it in Lima?')
  await readable(page)
  await press(page, 'Cancel').click()
  await page.waitForSelector('.settled[data-state="cancelled"]')
  const cdp = await page.context().newCDPSession(page)
  await page.focus('#message')
  await cdp.send('Input.imeSetComposition', { text: 'に', selectionStart: 1, selectionEnd: 1 })
  await page.keyboard.press('Enter')
  assert.equal(await page.locator('.said').count(), 1, 'Enter sent what was being composed')
  await page.context().close()
})

test('a phone, the dark, Chinese', async () => {
  const page = await stand.signedIn({ viewport: { width: 320, height: 640 }, colorScheme: 'dark', locale: 'zh-CN' })
  await stand.look(page, 'phone-new')
  await ask(page, 'What time is it in Tokyo?')
  await page.waitForSelector('.card')
  await page.locator('.card .buttons').scrollIntoViewIfNeeded()
  await page.locator('.card h3').scrollIntoViewIfNeeded()
  await readable(page)
  await press(page, '运行').waitFor()
  await stand.look(page, 'phone-card')
  await page.getByRole('button', { name: /菜单/ }).click()
  await stand.look(page, 'phone-menu')
  await page.getByRole('button', { name: /菜单/ }).click()
  await press(page, '运行').click()
  await page.waitForSelector(outcome)
  await page.locator('.answer').nth(1).waitFor()
  await stand.look(page, 'phone-answered')
  await page.context().close()
})

test('the keys; signed out elsewhere', async () => {
  const page = await stand.signedIn({ colorScheme: 'dark' })
  await ask(page, 'calculate 2+2')
  await readable(page)
  await stand.look(page, 'dark-card')
  await page.keyboard.press('Tab')
  await page.locator('body').press('?')
  await page.waitForSelector('dialog[open]')
  await stand.look(page, 'keys')
  await page.keyboard.press('Escape')
  const sessions = JSON.parse(await stand.ctl('login', 'list', '--json'))
  for (const s of Array.isArray(sessions) ? sessions : sessions.items) await stand.ctl('login', 'revoke', s.id)
  stand.state = undefined
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await stand.look(page, 'signed-out')
  await page.context().close()
})

test('an answer is drawn while it is written; none of it is markup', async () => {
  const page = await stand.signedIn()
  const model = await stand.model([
    '# One\n\nA **bold** beginning',
    ' and its end, with <img src=x onerror=alert(1)> and [a link](javascript:alert(1)) and [another](https://example.org/x).\n\n',
    '| a | b |\n| --- | ---: |\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n\n- [x] done\n- two 😀',
    '\n\n<script>alert(1)</' + 'script>\n\nThe end.',
  ])
  await ask(page, 'Say it')
  await page.locator('.answer strong', { hasText: 'bold' }).waitFor()
  const first = await page.locator('.answer h3').elementHandle()
  model.more()
  await page.getByText('and its end').waitFor()
  model.more()
  await page.locator('.answer td.align-right').waitFor()
  await page.locator('.answer .hljs-keyword').first().waitFor()
  model.more()
  await page.getByText('The end.').waitFor()
  await page.waitForSelector('[role=log][aria-busy=false]')
  assert.ok(await first.evaluate((e) => e.isConnected), 'a settled block was drawn again')
  assert.equal(await page.locator('.answer img, .answer script, .answer a').count(), 1)
  assert.equal(await page.locator('.answer a').getAttribute('href'), 'https://example.org/x')
  await page.getByText('(example.org)').waitFor()
  assert.match(await page.locator('.answer').innerText(), /<img src=x onerror=alert\(1\)>/)
  await stand.look(page, 'markdown')
  await page.context().close()
})

test('axe finds nothing, and the pages complained about nothing', () => {
  assert.deepEqual(stand.found, [])
  assert.deepEqual(stand.complaints, [])
  console.log(`screenshots: ${shots}`)
})
