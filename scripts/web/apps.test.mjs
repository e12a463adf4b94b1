// The example servers of MCP Apps, with the official App, in the page of a real browser.
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { model, rested, show } from './obedient.mjs'
import { Stand } from './stand.mjs'

const stand = new Stand()
const modules = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules')
before(async () => {
  await stand.begin()
  await model(stand)
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--approval', 'none', '--default')
})
after(() => stand.close())

/** The example servers of MCP Apps: what is called, and what its view then has. @type {[string, string, string][]} */
const examples = [
  ['budget-allocator', 'get-budget-data', 'canvas'],
  ['cohort-heatmap', 'get-cohort-data', '#root > *'],
  ['system-monitor', 'get-system-info', '#poll-toggle-btn'],
  ['wiki-explorer', 'get-first-degree-links', 'canvas'],
  ['basic-vanillajs', 'get-time', '#server-time'],
]

test('the example servers of MCP Apps, with the official App', async () => {
  const page = await stand.signedIn()
  for (const [name, tool, has] of examples) {
    await stand.ctl('servers', 'add', name, '--', process.execPath, path.join(modules, '@modelcontextprotocol', 'server-' + name, 'dist', 'index.js'), '--stdio')
    if (name === 'system-monitor') await stand.ctl('servers', 'edit', name, '--approval', 'never') // it asks again and again
    const view = await show(page, name + ':' + tool)
    await view.locator(has).first().waitFor() // of wiki-explorer, its empty graph: what it draws is on the network
    await page.waitForFunction((n) => [...document.querySelectorAll('.view iframe')].at(-1)?.getAttribute('height') !== '160' || n === 'wiki-explorer', name)
  }
  const app = /** @type {import('playwright-core').Frame} */ (await (await page.locator('.view iframe').nth(4).elementHandle())?.contentFrame())
  await app.locator('#server-time', { hasText: /^20..-/ }).waitFor() // the result came
  const first = await app.locator('#server-time').innerText()

  // A tool, by a card in the conversation that names the view: the agent asks for nothing,
  // and that does not count for what a server's page asks.
  await rested(page)
  await app.locator('#get-time-btn').click()
  const card = page.locator('.card', { hasText: 'asked for by the view of basic-vanillajs:get-time' })
  await card.locator('.buttons').scrollIntoViewIfNeeded()
  await card.locator('.run[aria-disabled="false"]').waitFor()
  await stand.look(page, 'view-card')
  assert.equal(await app.locator('#server-time').innerText(), first, 'it ran before a yes')
  await card.locator('.run').click()
  await app.waitForFunction((was) => document.querySelector('#server-time')?.textContent !== was, first)

  // What it would say, and an address.
  await rested(page)
  await app.locator('#send-message-btn').click()
  await page.locator('.suggestion', { hasText: 'This is message text.' }).waitFor()
  await stand.look(page, 'view-suggests')
  assert.equal(await page.locator('.said').count(), 5)
  await page.locator('.suggestion').getByRole('button', { name: 'Send' }).click()
  await page.locator('.said').nth(5).filter({ hasText: 'This is message text.' }).waitFor()
  await rested(page)
  await app.locator('#open-link-btn').click()
  await page.locator('dialog', { hasText: 'https://modelcontextprotocol.io/' }).waitFor()
  await stand.look(page, 'view-link')
  await page.locator('dialog').getByRole('button', { name: 'Back' }).click()
  const events = await stand.ctl('audit', '--json')
  assert.match(events, /view\.request/)
  stand.complaints = stand.complaints.filter((said) => !/Failed to fetch stats|the person said no/.test(said)) // the apps' own: over 20 in a minute, and the link
  await page.context().close()
})
