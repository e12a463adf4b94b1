// The places of the page besides conversations, in a real browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** What a setting is for root. @param {string} key */
const value = async (key) => JSON.parse(await stand.ctl('config', 'get', key, '--user', 'root', '--json')).value

/** A setting's part of the page. @param {import('playwright-core').Page} page @param {string} label */
const setting = (page, label) => page.locator('.setting', { has: page.getByLabel(label, { exact: true }) })

test('each kind of setting is set for oneself, and taken back', async () => {
  const page = await stand.signedIn()
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await page.waitForURL('**/app/settings')
  const steps = setting(page, 'Max tool-call steps per message')
  await steps.getByRole('spinbutton').fill('7')
  await steps.getByRole('button', { name: 'Save' }).click()
  await steps.getByText('Saved.').waitFor()
  assert.equal(await value('agent.tools.maxSteps'), '7')
  await steps.getByText('Your own · Default: 10').waitFor()
  await stand.look(page, 'settings')
  await steps.getByRole('button', { name: 'Use that' }).click()
  await steps.getByText('Saved.').waitFor()
  assert.equal(await value('agent.tools.maxSteps'), '10')
  await page.getByLabel('Theme').selectOption('dark')
  await setting(page, 'Theme').getByText('Saved.').waitFor()
  assert.equal(await value('theme'), 'dark')
  await stand.look(page, 'settings-dark')
  await page.context().close()
})

test('what was used', async () => {
  const page = await stand.signedIn()
  await page.goto(`http://127.0.0.1:${stand.port}/usage`)
  await page.waitForURL('**/app/usage')
  await page.getByText('Nothing was used.').waitFor()
  await stand.look(page, 'usage-none')
  await page.context().close()
})
