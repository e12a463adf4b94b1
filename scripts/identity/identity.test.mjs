// People sign in to the real programs with a company's account: oidc-provider is the
// company's identity provider, and Chromium is their browser.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import http from 'node:http'
import path from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Acme } from './provider.mjs'
import { Stand, ask, outcome, patience, press, readable } from './stand.mjs'

const stand = new Stand()
const acme = new Acme()
const bin = process.env.NIZE_BIN ?? ''
/** @type {string} */ let origin
/** @type {import('playwright-core').BrowserContext[]} */ const open = []

/** Registers nize at the provider with a secret. @param {string} secret */
async function set(secret) {
  const args = ['--socket', path.join(stand.dir, 's'), 'identity', 'oidc', 'set', '--issuer', acme.issuer, '--client-id', acme.client.id, '--name', 'Acme', '--scope', 'groups']
  const running = spawn(path.join(bin, 'nizectl'), args, { env: { ...process.env, HOME: stand.dir }, stdio: ['pipe', 'inherit', 'inherit'] })
  running.stdin.end(secret)
  const code = await new Promise((done) => running.once('exit', done))
  assert.equal(code, 0, 'nizectl identity oidc set')
}

before(async () => {
  await stand.begin()
  origin = `http://127.0.0.1:${stand.port}`
  await acme.begin(origin)
  await set(acme.client.secret)
  await stand.ctl('servers', 'share', 'toolbox', '--with', 'all')
})
after(async () => {
  await stand.close()
  acme.end()
})
beforeEach(async () => {
  for (const context of open.splice(0)) await context.close()
  acme.people = {
    ana: { name: 'Ana Sommer', email: 'ana@acme.example', email_verified: true, groups: ['staff', 'leads'] },
    cleo: { name: 'Cleo Herbst', groups: ['leads'] },
    ben: { name: 'Ben Winter', email: 'ben@acme.example', email_verified: true, groups: ['staff'] },
  }
})

/** A browser in which nobody is signed in, here or at the provider. */
async function stranger() {
  const context = await stand.browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: 'reduce' })
  open.push(context)
  context.setDefaultTimeout(patience)
  await context.route((url) => url.hostname !== '127.0.0.1', (route) => route.abort()) // the provider's pages name a font elsewhere
  return context.newPage()
}

/** Goes on to the provider's form. @param {import('playwright-core').Page} page */
async function goOn(page) {
  await page.getByRole('link', { name: 'Continue with Acme' }).click()
  await page.locator('input[name=login]').waitFor()
}

/**
 * Fills in the provider's form, and its consent the first time.
 * @param {import('playwright-core').Page} page @param {string} login
 */
async function fillIn(page, login) {
  await page.fill('input[name=login]', login)
  await page.fill('input[name=password]', 'any')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

/** A browser in which somebody is signed in. @param {string} login */
async function signIn(login) {
  const page = await stranger()
  await page.goto(origin + '/app/')
  await goOn(page)
  await fillIn(page, login)
  await page.waitForURL('**/app/')
  await page.waitForSelector('#message')
  return page
}

/** Signs in and returns the page of the failure. @param {string} login @param {string} sentence */
async function refused(login, sentence) {
  const page = await stranger()
  await page.goto(origin + '/login')
  await goOn(page)
  await fillIn(page, login)
  await page.waitForURL('**/login/oidc?**')
  await page.getByText(sentence).waitFor()
  await page.goto(origin + '/login')
  await page.getByRole('link', { name: 'Continue with Acme' }).waitFor() // and nobody is signed in
  return page
}

const user = async (/** @type {string} */ name) => JSON.parse(await stand.ctl('users', 'show', name, '--json'))
const fails = (/** @type {Promise<unknown>} */ running, /** @type {RegExp} */ want) => assert.rejects(running, (/** @type {any} */ err) => want.test(err.stderr))

test('the provider is tested, and a person signs in', async () => {
  const found = JSON.parse(await stand.ctl('identity', 'oidc', 'test', '--json'))
  assert.deepEqual(found.steps.map((s) => [s.name, s.ok]), ['discovery', 'keys', 'clock', 'redirect address'].map((name) => [name, true]))
  const page = await signIn('ana')
  await page.goto(origin + '/login')
  await page.getByText('You are signed in as Ana Sommer').waitFor()
  await stand.look(page, 'identity-signed-in')
  const ana = await user('Ana Sommer')
  assert.equal(ana.role, 'member')
  assert.equal(ana.email, 'ana@acme.example')
  assert.deepEqual(ana.identities, [`oidc:${acme.issuer}#ana`])

  // Another browser is the same person.
  const before = acme.exchanges
  await signIn('ana')
  assert.equal(acme.exchanges, before + 1)
  assert.equal((await user('Ana Sommer')).id, ana.id)
})

test('an MCP client is let in with Allow, and no code', async () => {
  const page = await stranger()
  const client = http.createServer((_, res) => res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>client</title><h1>The client</h1>'))
  await new Promise((done) => client.listen(0, '127.0.0.1', () => done(undefined)))
  const redirect = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (client.address()).port}/callback`
  /** @type {any} */ const kept = {}
  const authProvider = {
    redirectUrl: redirect,
    clientMetadata: { client_name: 'The TypeScript SDK', redirect_uris: [redirect], token_endpoint_auth_method: 'none' },
    state: () => 'some-state',
    clientInformation: () => kept.client,
    saveClientInformation: (/** @type {any} */ v) => void (kept.client = v),
    tokens: () => kept.tokens,
    saveTokens: (/** @type {any} */ v) => void (kept.tokens = v),
    redirectToAuthorization: (/** @type {URL} */ v) => void (kept.opened = v),
    saveCodeVerifier: (/** @type {string} */ v) => void (kept.verifier = v),
    codeVerifier: () => kept.verifier,
  }
  const transport = () => new StreamableHTTPClientTransport(new URL(origin + '/mcp'), { authProvider })
  const asking = transport()
  await assert.rejects(new Client({ name: 'identity', version: '1' }).connect(asking))
  await page.goto(kept.opened.href)
  assert.equal(await page.locator('.code').count(), 1) // the other way in
  await goOn(page)
  await fillIn(page, 'ana')
  await page.getByText('You are signed in as Ana Sommer').waitFor()
  assert.equal(await page.locator('.code').count(), 0)
  await stand.look(page, 'identity-consent')
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.waitForURL(redirect + '**')
  await asking.finishAuth(new URL(page.url()).searchParams)
  const c = new Client({ name: 'identity', version: '1' })
  await c.connect(transport())
  assert.equal((await c.listTools()).tools.length, 5)
  await c.close()
  assert.match(await stand.ctl('tokens', 'list', '--user', 'Ana Sommer', '--json'), /oauth:the-typescript-sdk/)
  client.closeAllConnections()
  client.close()
})

test('a group of the provider decides, and its approver can no longer after losing it', async () => {
  await stand.ctl('groups', 'add', 'leads', '--oidc-group', 'leads')
  await stand.ctl('servers', 'edit', 'toolbox', '--approvers', 'group:leads')
  const [ana, ben] = [await signIn('ana'), await signIn('ben')]
  await signIn('cleo') // a call that nobody may approve is refused at once
  const members = async () => JSON.parse(await stand.ctl('groups', 'show', 'leads', '--json')).members.map((m) => m.name).sort()
  assert.deepEqual(await members(), ['Ana Sommer', 'Cleo Herbst'])

  await ask(ben, 'What time is it in Bonn?')
  await ben.getByText('Others decide about this call.').waitFor()
  await ana.goto(origin + '/app/approvals')
  await ana.locator('.card .arguments').getByText('Bonn').waitFor()
  await readable(ana)
  await press(ana, 'Run').click()
  await ben.waitForSelector(outcome)
  await ben.waitForSelector('[role=log][aria-busy=false]')

  await ben.goto(origin + '/app/')
  await ask(ben, 'What time is it in Oslo?')
  await ben.getByText('Others decide about this call.').waitFor()
  await ana.locator('.card .arguments').getByText('Oslo').waitFor()
  acme.people.ana.groups = ['staff']
  await signIn('ana') // in another browser
  assert.deepEqual(await members(), ['Cleo Herbst'])
  await ana.locator('.card').waitFor({ state: 'detached' }) // by itself
  await ben.getByText('Others decide about this call.').waitFor()

  acme.people.ana.groups = ['leads']
  await signIn('ana')
  await readable(ana)
  await press(ana, 'Run').click()
  await ben.waitForSelector(outcome)
  await stand.ctl('servers', 'edit', 'toolbox', '--approvers', 'requester')
})

test('a role follows the groups of each sign-in', async () => {
  await stand.ctl('config', 'set', 'oidc.admin_groups', 'leads')
  await signIn('ana')
  assert.equal((await user('Ana Sommer')).role, 'admin')
  acme.people.ana.groups = ['staff']
  await signIn('ana')
  assert.equal((await user('Ana Sommer')).role, 'member')
  await stand.ctl('config', 'unset', 'oidc.admin_groups')
})

test('the provider replaces its keys in the middle of sign-ins', async () => {
  for (const type of /** @type {const} */ (['rsa', 'ec'])) { // another key, and another algorithm
    const page = await stranger()
    await page.goto(origin + '/login')
    await goOn(page)
    acme.rotate(type)
    await fillIn(page, 'ana')
    await page.waitForURL('**/app/')
  }
})

test('signing out at the provider ends the page that is open', async () => {
  const [here, elsewhere] = [await signIn('ana'), await signIn('ana')]
  const at = await here.context().newPage()
  await at.goto(acme.issuer + '/session/end')
  await at.getByRole('button', { name: /^Yes/ }).click()
  await here.getByText('You are signed out. What you have written is kept.').waitFor()
  assert.deepEqual(acme.logouts, [undefined])
  await elsewhere.goto(origin + '/login') // the session of another browser goes on
  await elsewhere.getByText('You are signed in as Ana Sommer').waitFor()
})

test('oidc.required leaves one way in', async () => {
  await stand.ctl('config', 'set', 'oidc.required', 'true')
  const page = await stranger()
  await page.goto(origin + '/login')
  await page.getByRole('link', { name: 'Continue with Acme' }).waitFor()
  assert.equal(await page.locator('.code').count(), 0)
  assert.equal(await page.locator('input:visible').count(), 0)
  await stand.look(page, 'identity-required')
  await fails(stand.ctl('login'), /oidc\.required|Acme|identity provider/)
  await fails(stand.ctl('identity', 'oidc', 'remove', '--yes'), /oidc\.required/)
  await goOn(page)
  await fillIn(page, 'ana')
  await page.waitForURL('**/app/')
  await stand.ctl('config', 'unset', 'oidc.required')
})

test('a sign-in that fails says what an admin does', async () => {
  // The person cancels at the provider.
  const page = await stranger()
  await page.goto(origin + '/login')
  await goOn(page)
  await page.getByText('Cancel').click()
  await page.getByText('Acme did not let you in').waitFor()
  await stand.look(page, 'identity-refused')

  // They are in no group that may use nize.
  await stand.ctl('config', 'set', 'oidc.allowed_groups', 'leads')
  await refused('ben', 'is in no group that may use nize')
  delete acme.people.ben.groups
  await refused('ben', 'did not send your groups')
  await stand.ctl('config', 'unset', 'oidc.allowed_groups')

  // They are disabled here.
  await signIn('ben')
  await stand.ctl('users', 'disable', 'Ben Winter', '--yes')
  await refused('ben', 'Your account in nize is disabled')

  // The provider gave nize another secret.
  const before = acme.client.secret
  acme.register('another secret')
  await refused('ana', 'does not accept nize as its client')
  await set('another secret')
  await signIn('ana')
  acme.register(before)
})
