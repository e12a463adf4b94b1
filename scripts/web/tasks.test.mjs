// Five tasks of people, by clicks and key presses: a text that is typed counts as one. A
// task that takes more than it did fails.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, outcome, readable } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** Counts what a person does on a page. @param {import('playwright-core').Page} page */
function person(page) {
  /** @type {string[]} */
  const deeds = []
  return {
    deeds,
    /** @param {string} name @param {import('playwright-core').Locator} what */
    click: async (name, what) => {
      deeds.push('click ' + name)
      await what.click()
    },
    /** @param {string} key */
    press: async (key) => {
      deeds.push('press ' + key)
      await page.keyboard.press(key)
    },
    /** @param {string} text */
    type: async (text) => {
      deeds.push('type')
      await page.keyboard.type(text)
    },
  }
}

/** @param {import('playwright-core').Page} page @param {string} name */
const button = (page, name) => page.locator('.card').getByRole('button', { name, exact: true })

test('the first call that is approved: 4', async () => {
  const page = await stand.signedIn()
  const p = person(page)
  await p.click('the message field', page.locator('#message'))
  await p.type('add a note: milk')
  await p.press('Enter')
  await readable(page)
  await p.click('Run', button(page, 'Run'))
  await page.waitForSelector(outcome)
  assert.equal(p.deeds.length, 4)
  await page.context().close()
})

test('why a tool asks, and what would end it: 1', async () => {
  const page = await stand.signedIn()
  await page.fill('#message', 'add a note: bread')
  await page.press('#message', 'Enter')
  await readable(page)
  const p = person(page)
  await p.click('Details', button(page, 'Details'))
  assert.match(await page.innerText('.card .more'), /needs approval: .+\n[^]*to stop asking: /)
  assert.equal(p.deeds.length, 1)
  await page.context().close()
})

test('a tool may run for good: 2', async () => {
  const page = await stand.signedIn()
  await page.fill('#message', 'add a note: eggs')
  await page.press('#message', 'Enter')
  await readable(page)
  const p = person(page)
  await p.click('More', button(page, 'More'))
  await p.click('Always allow', page.getByRole('menuitem', { name: 'Always allow (these arguments)' }))
  await page.waitForSelector(outcome)
  assert.equal(p.deeds.length, 2)
  await page.context().close()
})

test('a standing answer is taken back: 3', async () => {
  const page = await stand.signedIn()
  const p = person(page)
  await p.click('Settings', page.locator('.sidebar').getByRole('link', { name: 'Settings' }))
  await p.click('What runs without asking', page.getByRole('navigation', { name: 'Settings' }).getByRole('link', { name: 'What runs without asking' }))
  await p.click('Revoke', page.getByRole('button', { name: /^Revoke: / }))
  await page.getByText('Revoked.').waitFor()
  assert.equal(p.deeds.length, 3)
  await page.context().close()
})

test('an earlier conversation: 1 in the list, 3 by its words', async () => {
  const [id] = await stand.history(2)
  const page = await stand.signedIn()
  const found = page.locator(`.threads a[href="/app/c/${id}"]`)
  await found.waitFor()
  const title = (await found.innerText()).trim()
  let p = person(page)
  await p.click('the conversation', found)
  await page.waitForURL('**/app/c/' + id)
  assert.equal(p.deeds.length, 1)
  await page.goto(`http://127.0.0.1:${stand.port}/app/usage`)
  await found.waitFor()
  p = person(page)
  await p.press('s')
  await page.waitForFunction(() => document.activeElement?.id === 'search')
  await p.type(title)
  await page.waitForFunction(() => document.querySelectorAll('.threads li').length === 1)
  await p.click('the conversation', found)
  await page.waitForURL('**/app/c/' + id)
  assert.equal(p.deeds.length, 3)
  await page.context().close()
})
