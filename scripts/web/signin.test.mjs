// The pages of signing in, in a real browser: a client that registered, with a code and
// with a session, in both themes, small and wide, in three languages, by keyboard and
// without scripts; /login with what is signed in; the page of a login elsewhere.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import http from 'node:http'
import { after, before, test } from 'node:test'
import { Stand, patience } from './stand.mjs'

const stand = new Stand()
/** What the client's own page was asked for. @type {URLSearchParams[]} */
const came = []
const client = http.createServer((req, res) => {
  if (req.url?.startsWith('/cb')) came.push(new URL(req.url, 'http://x').searchParams)
  res.setHeader('Content-Type', 'text/html').end('<!doctype html><html lang="en"><title>client</title><h1>The client</h1></html>')
})
/** @type {string} */ let origin
/** @type {string} */ let id
/** @type {string} */ let redirect

before(async () => {
  await stand.begin()
  origin = `http://127.0.0.1:${stand.port}`
  await new Promise((done) => client.listen(0, '127.0.0.1', () => done(undefined)))
  redirect = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (client.address()).port}/cb`
  const answer = await fetch(origin + '/oauth/register', {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'The <b>client</b> with a rather long name of its own, in one word: ' + 'x'.repeat(60), redirect_uris: [redirect], token_endpoint_auth_method: 'none' }),
  })
  assert.equal(answer.status, 201)
  id = (await answer.json()).client_id
})
after(async () => {
  client.close()
  client.closeAllConnections()
  await stand.close()
})

const verifier = randomBytes(32).toString('base64url')
const authorize = (more = {}) => origin + '/oauth/authorize?' + new URLSearchParams({
  response_type: 'code', client_id: id, redirect_uri: redirect, state: 'a state', scope: 'mcp offline_access',
  code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256', ...more,
})

/** A browser in which nobody is signed in. @param {import('playwright-core').BrowserContextOptions} [options] */
async function stranger(options) {
  const context = await stand.browser.newContext({ viewport: { width: 1000, height: 800 }, ...options })
  context.setDefaultTimeout(patience)
  return context.newPage()
}

/**
 * Looks at a page as it is, in the dark on a small screen, and in Chinese.
 * @param {import('playwright-core').Page} page @param {string} name
 */
async function lookAround(page, name) {
  await stand.look(page, name)
  const was = page.viewportSize()
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize({ width: 320, height: 640 })
  await stand.look(page, name + '-dark-small')
  await page.emulateMedia({ colorScheme: 'light' })
  if (was) await page.setViewportSize(was)
}

/** The same page in another language. @param {import('playwright-core').Page} page @param {string} locale @param {string} name */
async function lookIn(page, locale, name) {
  const other = await stranger({ locale, storageState: await page.context().storageState() })
  await other.goto(page.url())
  assert.equal(await other.locator('html').getAttribute('lang'), locale === 'zh-TW' ? 'zh-Hant' : 'zh-Hans')
  await stand.look(other, name)
  await other.context().close()
}

/** The number for the code on a page. @param {import('playwright-core').Page} page */
const confirm = async (page) => JSON.parse(await stand.ctl('login', 'approve', await page.locator('.code').innerText(), '--json')).number

/** The code is one that the client can use. @param {URLSearchParams | undefined} answer */
async function redeem(answer) {
  assert.equal(answer?.get('state'), 'a state')
  assert.equal(answer?.get('iss'), origin)
  const got = await (await fetch(origin + '/oauth/token', {
    method: 'POST', body: new URLSearchParams({ grant_type: 'authorization_code', client_id: id, redirect_uri: redirect, code: answer?.get('code') ?? '', code_verifier: verifier }),
  })).json()
  assert.match(got.access_token, /^nize_/)
}

test('a link of nizectl login: one button, and who it signs in', async () => {
  const link = async (/** @type {string[]} */ ...args) => /http\S+/.exec(await stand.ctl('login', ...args))?.[0] ?? ''
  const page = await stranger()
  await page.goto(await link())
  const heading = page.getByRole('heading', { level: 1 })
  await heading.filter({ hasText: 'Sign in to nize on 127.0.0.1 as root' }).waitFor()
  assert.equal(new URL(page.url()).hash, '', 'the secret is in the address')
  assert.equal(await page.locator('button:visible').count(), 1)
  assert.equal(await page.locator('input:visible').count(), 0)
  await lookAround(page, 'login-link')
  const [zh, spare] = [await stranger({ locale: 'zh-CN' }), await link()]
  await zh.goto(spare)
  await zh.getByRole('heading', { name: '以 root 的身份登录 127.0.0.1 上的 nize' }).waitFor()
  await stand.look(zh, 'login-link-zh')
  await zh.context().close()

  // Another way, back, and in, with one key.
  await page.getByRole('link', { name: 'Sign in another way' }).click()
  await page.getByLabel('The six digits').waitFor()
  const used = await link()
  await page.goto(used)
  await heading.filter({ hasText: 'as root' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL('**/app/')

  // Who is in already goes on; somebody else's link says so.
  await page.goto(await link())
  await page.waitForURL('**/app/')
  const mia = JSON.parse(await stand.ctl('users', 'add', 'mia', '--json'))
  await page.goto(await link('--user', mia.id))
  await heading.filter({ hasText: 'Sign in to nize on 127.0.0.1 as mia' }).waitFor()
  await page.getByText('You are signed in here as root.').waitFor()
  await lookAround(page, 'login-link-other')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL('**/app/')
  await page.goto(origin + '/login')
  await page.getByText('You are signed in as mia').waitFor()
  await page.context().close()

  const late = await stranger()
  await late.goto(used)
  await late.getByText('This address was already used').waitFor()
  await late.context().close()
  const plain = await stranger({ javaScriptEnabled: false })
  const [address, secret] = spare.split('#')
  await plain.goto(address)
  await plain.getByLabel('that nizectl login printed').fill(secret)
  await plain.getByRole('button', { name: 'Sign in with it' }).click()
  await plain.waitForURL('**/app/')
  await plain.context().close()
})

test('a client, by a code', async () => {
  const page = await stranger()
  await page.goto(authorize())
  await page.getByText('unverified name').waitFor()
  await page.getByText('The code is sent to a program on this computer').waitFor()
  assert.equal(await page.locator('main b, dd b').count(), 0) // its name is text
  await lookAround(page, 'signin-code')
  await lookIn(page, 'zh-CN', 'signin-code-zh')
  await lookIn(page, 'zh-TW', 'signin-code-zh-hant')

  // By keyboard: too early, wrong, right.
  await page.getByLabel('The six digits').focus()
  await page.keyboard.type('123456')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  assert.match(await page.getByRole('alert').innerText(), /was not confirmed yet/)
  await stand.look(page, 'signin-early')
  const number = await confirm(page)
  await page.getByLabel('The six digits').focus()
  await page.keyboard.type(number === '123456' ? '654321' : '123456')
  await page.keyboard.press('Enter')
  await page.getByText('That number is wrong').waitFor()
  await lookAround(page, 'signin-wrong')
  await page.getByLabel('The six digits').fill(number)
  await page.keyboard.press('Enter')
  await page.waitForURL(redirect + '**')
  await redeem(came.pop())
  await page.context().close()
})

test('a client, without scripts', async () => {
  const page = await stranger({ javaScriptEnabled: false })
  await page.goto(authorize())
  await page.getByLabel('The six digits').fill(await confirm(page))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(redirect + '**') // a refresh of the page's head
  await redeem(came.pop())
  await page.context().close()
})

test('what goes wrong is a page', async () => {
  const page = await stranger()
  for (const [name, more, status] of /** @type {[string, {}, number][]} */ ([['client', { client_id: 'nobody' }, 400], ['redirect', { redirect_uri: redirect + '/elsewhere' }, 400]])) {
    assert.equal((await page.goto(authorize(more)))?.status(), status)
    await stand.look(page, 'signin-bad-' + name)
  }
  await page.goto(authorize())
  await stand.ctl('login', 'deny', await page.locator('.code').innerText())
  await page.reload()
  await page.getByText('denied in the chat').waitFor()
  await stand.look(page, 'signin-denied')
  await page.goto(authorize())
  const number = await confirm(page)
  for (let tries = 0; tries < 3; tries++) {
    await page.getByLabel('The six digits').fill(number === '123456' ? '654321' : '123456')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText(tries < 2 ? 'That number is wrong' : 'wrong three times').waitFor()
  }
  await stand.look(page, 'signin-void')
  await page.context().close()
})

test('a browser, and what is signed in as somebody', async () => {
  const page = await stranger()
  await page.goto(origin + '/login')
  await lookAround(page, 'login')
  await lookIn(page, 'zh-CN', 'login-zh')
  await page.getByLabel('The six digits').fill(await confirm(page))
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL('**/app/')

  // A client, as who is signed in here: allowed with the keyboard, and denied.
  await page.goto(authorize({ scope: 'tools:toolbox:*' }))
  await page.getByText('You are signed in as').waitFor()
  await page.getByText('toolbox:*').waitFor()
  await lookAround(page, 'signin-session')
  await lookIn(page, 'zh-TW', 'signin-session-zh')
  await page.getByRole('button', { name: 'Allow' }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(redirect + '**')
  await redeem(came.pop())
  await page.goto(authorize())
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.waitForURL(redirect + '**')
  assert.equal(came.pop()?.get('error'), 'access_denied')

  // Its own place: three lists, a page at a time.
  await stand.ctl('tokens', 'create', 'laptop')
  await page.goto(origin + '/login')
  await page.getByText('This browser, from').waitFor()
  await page.getByText('laptop', { exact: true }).waitFor()
  await lookAround(page, 'sessions')
  await lookIn(page, 'zh-CN', 'sessions-zh')
  await stand.ctl('config', 'set', 'limits.user.tokens', '100')
  for (let n = 0; n < 50; n += 5) await Promise.all([0, 1, 2, 3, 4].map((more) => stand.ctl('tokens', 'create', `made-${n + more}`)))
  await page.reload()
  await stand.look(page, 'sessions-many')
  await page.getByRole('link', { name: 'Older ones' }).click()
  await page.getByText('This browser, from').waitFor()
  await stand.look(page, 'sessions-older')

  // The page of a login elsewhere, which needs nothing of the service yet.
  await stand.ctl('credentials', 'declare', 'mail', '--name', 'Mail', '--mode', 'user-oauth', '--authorization-url', 'https://auth.example.com/a', '--token-url', 'https://auth.example.com/t', '--client-id', 'nize', '--host', 'api.example.com')
  const flow = JSON.parse(await stand.ctl('credentials', 'connect', 'mail', '--json'))
  await page.goto(flow.url)
  await page.getByRole('button', { name: 'Continue to auth.example.com' }).waitFor()
  await lookAround(page, 'connect')
  await lookIn(page, 'zh-CN', 'connect-zh')
  await page.goto(flow.url.replace(/connect\/[^#]+/, 'connect/nothing'))
  await stand.look(page, 'connect-ended')
  await page.goto(origin + '/oauth/callback?state=x&code=y')
  await stand.look(page, 'connect-callback')

  await page.goto(origin + '/login')
  await page.getByRole('button', { name: 'Sign out', exact: true }).last().click()
  await page.locator('.code').waitFor()
  await page.context().close()
})
