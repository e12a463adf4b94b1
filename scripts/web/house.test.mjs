// What admins do and see on the page beside others, and connecting by signing in at a
// service, in a real browser.
import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, test } from 'node:test'
import { Stand, ask, choose, outcome, press, readable } from './stand.mjs'

const stand = new Stand()

/** What the service's token address was asked for. @type {URLSearchParams[]} */
const asked = []
/** A service where people sign in: a page with one button, and an address for tokens. */
const service = http.createServer(async (req, res) => {
  const at = new URL(req.url ?? '', 'http://service')
  if (at.pathname === '/token') {
    let body = ''
    for await (const more of req) body += more
    asked.push(new URLSearchParams(body))
    return res.setHeader('Content-Type', 'application/json').end('{"access_token":"at-1","token_type":"Bearer","expires_in":3600,"refresh_token":"rt-1"}')
  }
  if (at.pathname !== '/authorize') return res.writeHead(404).end()
  const back = new URL(at.searchParams.get('redirect_uri') ?? '')
  back.search = String(new URLSearchParams({ code: 'the-code', state: at.searchParams.get('state') ?? '' }))
  res.setHeader('Content-Type', 'text/html').end(`<!doctype html><html lang="en"><title>Service</title><h1>The service</h1><a href="${back.href.replaceAll('&', '&amp;')}">Allow</a></html>`)
})

before(async () => {
  await stand.begin()
  await new Promise((done) => service.listen(0, '127.0.0.1', () => done(undefined)))
  await stand.ctl('users', 'add', 'mia', '--role', 'member')
  await stand.ctl('servers', 'share', 'toolbox', '--with', 'all')
})
after(async () => {
  service.closeAllConnections()
  service.close()
  await stand.close()
})

test('a credential is connected by signing in at its service', async () => {
  const base = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (service.address()).port}`
  await stand.ctl('config', 'set', 'egress.allow', '127.0.0.1')
  await stand.ctl('credentials', 'declare', 'tracker', '--name', 'Tracker', '--mode', 'user-oauth', '--authorization-url', base + '/authorize', '--token-url', base + '/token', '--client-id', 'nize', '--host', 'api.example.com')
  const page = await stand.signedIn()
  await page.goto(`http://127.0.0.1:${stand.port}/app/settings`)
  const credentials = page.locator('section', { has: page.locator('#credentials') })
  await credentials.getByText('not connected').waitFor()
  await credentials.getByRole('button', { name: 'Sign in: Tracker' }).click()
  const opens = page.context().waitForEvent('page')
  await credentials.getByRole('link', { name: 'Go on to sign in' }).click()
  const other = await opens
  await other.getByRole('button', { name: /^Continue to/ }).click()
  await other.getByRole('link', { name: 'Allow' }).click()
  await other.waitForURL('**/oauth/callback**')
  await other.getByText(/connected/i).first().waitFor()
  await stand.look(other, 'connected')
  assert.equal(asked.length, 1)
  assert.equal(asked[0].get('code'), 'the-code')
  assert.ok(asked[0].get('code_verifier'))
  await other.close()
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))) // they come back to it
  await credentials.getByRole('button', { name: 'Sign in again: Tracker' }).waitFor()
  await stand.look(page, 'connected-settings')
  assert.ok(!(await page.content()).includes('at-1'))
  await credentials.getByRole('button', { name: 'Remove: Tracker' }).click()
  await credentials.getByText('not connected').waitFor()
  await page.context().close()
})

test('an admin sees nothing of what others decide, and answers for everybody', async () => {
  const page = await stand.signedIn()
  const mia = await stand.signedIn({}, 'mia')

  // Her own is hers to decide, and an admin sees nothing of it.
  await ask(mia, 'What time is it in Riga?')
  await readable(mia)
  await page.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await page.locator('.approvals').waitFor()
  assert.equal(await page.getByText('Riga').count(), 0)
  assert.equal(await page.locator('.card').count(), 0)
  assert.doesNotMatch(await page.title(), /^\(/)
  await press(mia, 'Run').click()
  await mia.waitForSelector(outcome)

  // What an admin named her for waits for her, wherever it was asked for.
  await stand.ctl('servers', 'edit', 'toolbox', '--approvers', 'user:mia')
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(page, 'What time is it in Bonn?')
  await page.getByText('Others decide about this call.').waitFor()
  assert.equal(await page.locator('.card .run').count(), 0)
  await mia.locator('.sidebar').getByRole('link', { name: /^Pending approvals/ }).click()
  await mia.locator('.card .arguments').getByText('Bonn').waitFor()
  await readable(mia)
  await press(mia, 'Run').click()
  await page.waitForSelector(outcome)
  await page.waitForSelector('[role=log][aria-busy=false]')

  await stand.ctl('servers', 'edit', 'toolbox', '--approvers', 'admins')
  await mia.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(mia, 'What time is it in Oslo?')
  await mia.getByText('Others decide about this call.').waitFor()
  assert.equal(await mia.locator('.card .run').count(), 0)

  // What admins decide is among what waits for them, and their yes is seen where it was
  // asked for.
  await page.waitForFunction(() => document.title.startsWith('(1)'))
  await page.locator('.sidebar').getByRole('link', { name: /^Pending approvals/ }).click()
  await page.locator('.card .arguments').getByText('Oslo').waitFor()
  await readable(page)
  await stand.look(page, 'approval-of-another')
  await press(page, 'Run').click()
  await mia.waitForSelector(outcome)
  await mia.waitForSelector('[role=log][aria-busy=false]')

  const thread = new URL(mia.url()).pathname.split('/').pop()
  await page.goto(`http://127.0.0.1:${stand.port}/app/c/${thread}`) // hers, too
  await page.getByText('There is no such conversation.').waitFor()

  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(page, 'What time is it in Rome?')
  await readable(page)
  await choose(page, 'Allow with limits…')
  const panel = page.locator('.panel')
  await panel.locator('select').nth(0).selectOption('everywhere')
  await panel.locator('select').nth(1).selectOption('any')
  await panel.getByRole('button', { name: 'Allow and run' }).click()
  await page.waitForSelector(outcome)

  await ask(mia, 'And what time is it in Lima?')
  await mia.locator('.tool', { hasText: /current.time/i }).last().getByText('done').waitFor()
  assert.equal(await mia.locator('.card').count(), 0, 'she was asked all the same')

  // She sees whose answer that is, and can't take it back.
  await mia.goto(`http://127.0.0.1:${stand.port}/app/settings`)
  const standing = mia.locator('section', { has: mia.locator('#grants') })
  await standing.getByText('toolbox:current_time').waitFor()
  assert.equal(await standing.getByRole('button', { name: /^Revoke/ }).count(), 0)
  await standing.scrollIntoViewIfNeeded()
  await stand.look(mia, 'standing-of-admin')
  await mia.context().close()

  // Usage of everybody, by person.
  await page.getByRole('link', { name: 'Usage', exact: true }).click()
  await page.getByLabel('Whose').selectOption('all')
  await page.getByText('Calls by day').waitFor() // the planner used no tokens
  await stand.model(['It is late.'])
  for (const [i, of] of [page, await stand.signedIn({}, 'mia')].entries()) {
    await of.goto(`http://127.0.0.1:${stand.port}/app/`)
    await ask(of, 'Say it')
    await of.getByText('It is late.').waitFor()
    await of.waitForSelector('[role=log][aria-busy=false]')
    if (i) await of.context().close()
  }
  await page.getByRole('link', { name: 'Usage', exact: true }).click()
  await page.getByLabel('Whose').selectOption('all')
  await page.locator('.usage-part[aria-busy="false"] tbody th', { hasText: 'mia' }).waitFor()
  const { total, rows } = JSON.parse(await stand.ctl('usage', '--by', 'user', '--json'))
  assert.deepEqual(await page.locator('.usage-table tbody th').allInnerTexts(), rows.map((r) => r.key))
  await page.getByRole('img', { name: `Tokens by day: ${(total.prompt + total.completion).toLocaleString('en')} in` }).waitFor()
  await page.getByText('The daily budget of each person (200,000 tokens)').waitFor()
  await stand.look(page, 'usage-of-all')

  // Of servers and health nothing is changed there but by accepting a definition.
  await page.getByRole('link', { name: 'Servers and health' }).click()
  await page.getByRole('heading', { name: 'What the doctor found' }).waitFor()
  const buttons = await page.locator('.place').getByRole('button').filter({ hasNot: page.locator('.dot') }).allInnerTexts()
  assert.deepEqual(buttons, ['Look again', 'Search'])
  await page.context().close()
})
