// Where the focus and the view are after each press: nothing that a person types next is
// lost or does something else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, ask, choose, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** Waits until the focus is on what a selector names. @param {import('playwright-core').Page} page @param {string} selector */
const focused = (page, selector) => page.waitForFunction((s) => document.activeElement?.matches(s), selector)

/** @param {import('playwright-core').Page} page */
async function card(page) {
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(page, 'add a note: milk')
  await readable(page)
}

test('a panel of a card takes the focus, and gives it back', async () => {
  const page = await stand.signedIn()
  await card(page)
  const at = page.url()
  await press(page, 'Edit').click()
  await focused(page, '.edit-form textarea, .edit-form input')
  await page.getByRole('button', { name: 'Back', exact: true }).click()
  await focused(page, '.opens-edit')
  await choose(page, 'Never')
  await focused(page, '.panel select')
  await page.keyboard.press('Escape')
  await focused(page, '.menu-button')
  await page.keyboard.press('Enter')
  await focused(page, '[role=menuitem]:first-child')
  await page.keyboard.press('n') // the first entry with this letter, not the shortcut of the page
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Never')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Enter')
  await focused(page, '.panel textarea')
  await page.keyboard.type('not now, we wait')
  assert.equal(await page.inputValue('.panel textarea'), 'not now, we wait')
  assert.equal(page.url(), at)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.settled')
  await focused(page, '.settled .tool-line')
  assert.match(await page.innerText('.settled'), /Declined by root: not now, we wait/)
  await card(page)
  await press(page, 'Run').focus()
  await page.keyboard.press('Enter')
  await page.waitForSelector(outcome)
  await focused(page, '.settled .tool-line')
  await page.context().close()
})

test('on a narrow screen the field to edit stays in view', async () => {
  const page = await stand.signedIn({ viewport: { width: 320, height: 600 } })
  await card(page)
  await press(page, 'Edit').click()
  await focused(page, '.edit-form textarea, .edit-form input')
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
  const [field, log] = await page.evaluate(() => ['.edit-form :is(textarea, input)', '.log'].map((s) => document.querySelector(s)?.getBoundingClientRect().toJSON()))
  assert.ok(field.top >= log.top && field.bottom <= log.bottom, `the field is at ${field.top} to ${field.bottom}, the log at ${log.top} to ${log.bottom}`)
  await page.context().close()
})

test('a new conversation is ready to write; an open dialog keeps its keys', async () => {
  const page = await stand.signedIn()
  await page.locator('.sidebar .new').click()
  await focused(page, '#message')
  await page.locator('.sidebar').getByRole('link', { name: 'Usage', exact: true }).click()
  await page.waitForURL('**/app/usage')
  await page.keyboard.press('?')
  await page.waitForSelector('dialog[open]')
  await page.keyboard.press('n')
  assert.match(page.url(), /\/app\/usage$/)
  await page.keyboard.press('Escape')
  await page.waitForFunction(() => !document.querySelector('dialog[open]'))
  await page.keyboard.press('n')
  await page.waitForURL('**/app/')
  await focused(page, '#message')
  await page.context().close()
})

test('a text that is too long for a message goes with it as a file', async () => {
  const page = await stand.signedIn()
  const paste = (/** @type {number} */ size) => page.locator('#message').evaluate((field, n) => {
    const clipboardData = new DataTransfer()
    clipboardData.setData('text/plain', 'x'.repeat(n))
    return field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
  }, size)
  assert.equal(await paste(60_000), true, 'the field takes what fits')
  assert.equal(await paste(2_000_000), false)
  await page.locator('.files li').filter({ hasText: /pasted\.txt.*1\.9/ }).waitFor()
  assert.equal(await page.inputValue('#message'), '')
  await page.context().close()
})
