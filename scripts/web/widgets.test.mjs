// Views that have an origin of their server's own, in a real browser.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'
import { model, show } from './obedient.mjs'
import { Stand, patience } from './stand.mjs'

const stand = new Stand()
const names = ['views', 'others']
before(async () => {
  await stand.begin()
  await model(stand)
  for (const name of names) await stand.ctl('servers', 'add', name, '--', process.execPath, new URL('viewserver.mjs', import.meta.url).pathname)
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--allow', 'native:*', '--approval', 'none', '--default')
  await stand.end('SIGTERM')
  stand.env.NIZE_HTTP_WIDGETS_ORIGIN = `http://*.localhost:${stand.port}`
  await stand.start()
})
after(() => stand.close())

/** What a host answers that a browser would ask. @param {string} host @param {string} path @param {http.RequestOptions} [more] */
const answered = (host, path, more = {}) => new Promise((done, failed) => {
  const req = http.request({ host: '127.0.0.1', port: stand.port, path, ...more, headers: { Host: host, ...more.headers } }, (res) => {
    res.resume()
    done({ status: res.statusCode, cookies: res.headers['set-cookie'], policy: String(res.headers['content-security-policy']) })
  })
  req.on('error', failed).end()
})

test('each server has a host for its views', { timeout: 3 * patience }, async (t) => {
  // A browser that lets frames of other sites store something: the address of the page
  // is a number here, and no site is the same as that.
  const profile = path.join(stand.dir, 'profile')
  fs.mkdirSync(path.join(profile, 'Default'), { recursive: true })
  fs.writeFileSync(path.join(profile, 'Default', 'Preferences'), '{"profile":{"cookie_controls_mode":0,"block_third_party_cookies":false}}')
  const { cookies } = await (await stand.signedIn()).context().storageState()
  const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.CHROMIUM, args: ['--no-sandbox'], reducedMotion: 'reduce' })
  t.after(() => context.close())
  context.setDefaultTimeout(patience)
  await context.addCookies(cookies)
  const page = await context.newPage()
  /** The calls whose views were opened. @type {string[]} */
  const opened = []
  page.on('request', (req) => { if (req.url().includes('/app/v1/frames?')) opened.push(req.postDataJSON().call) })
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  const hosts = names.map((name) => `${createHash('sha256').update(name).digest('hex').slice(0, 32)}.localhost:${stand.port}`)
  const views = []
  for (const name of names) {
    const view = await show(page, name + ':app')
    await view.locator('body[data-ready]').waitFor({ state: 'attached' })
    views.push(view)
  }
  const [one, other] = views
  assert.deepEqual(await Promise.all(views.map((view) => view.evaluate(() => origin))), hosts.map((host) => 'http://' + host))
  await one.waitForFunction(() => /** @type {any} */ (window).told.length === 2)

  // Storage works, is there the next time, and is not the other's.
  await one.evaluate(() => { localStorage.mine = 'kept' })
  await one.evaluate(() => new Promise((done, failed) => Object.assign(indexedDB.open('x'), { onsuccess: () => done(1), onerror: () => failed(new Error('no database')) })))
  assert.equal(await other.evaluate(() => localStorage.mine), undefined)
  const again = await show(page, 'views:app')
  assert.equal(await again.evaluate(() => localStorage.mine), 'kept')

  // The parent and the sibling stay out of reach, and nize too.
  const tried = await one.evaluate(async (own) => {
    const out = async (what) => { try { return String(await what()) } catch (err) { return err.name } }
    return {
      parent: await out(() => parent.document.title),
      top: await out(() => { /** @type {any} */ (top).location = own + '/app/usage' }),
      sibling: await out(() => parent.frames[1].document.title),
      cookies: document.cookie,
      api: await out(() => fetch(own + '/app/v1/me', { credentials: 'include' })),
      here: await out(() => fetch('/app/v1/me')),
    }
  }, `http://127.0.0.1:${stand.port}`)
  assert.deepEqual(tried, { parent: 'SecurityError', top: 'SecurityError', sibling: 'SecurityError', cookies: '', api: 'TypeError', here: 'TypeError' })

  // The host has frames, by tickets of its own, and nothing that knows of a person.
  const headers = { Cookie: cookies.map((c) => `${c.name}=${c.value}`).join('; ') }
  for (const path of ['/', '/app/', '/app/v1/me', '/mcp', '/login', '/healthz', '/metrics', '/w/x', '//app/', '/app/assets/x/main.js', '/app/frames/', '/app/frames/x']) {
    for (const method of ['GET', 'POST', 'HEAD', 'OPTIONS']) assert.deepEqual(await answered(hosts[0], path, { method, headers }), { status: 404, cookies: undefined, policy: 'undefined' }, `${method} ${path}`)
  }
  assert.equal((await answered('x' + hosts[0].slice(1), '/')).status, 403)

  // A ticket of one server's is none at another's, nor at nize's own.
  const frame = await page.evaluate((call) => fetch('/app/v1/frames', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ call }) }).then((answer) => answer.json()), opened[0])
  assert.equal(frame.origin, 'http://' + hosts[0])
  for (const host of [hosts[1], `127.0.0.1:${stand.port}`]) assert.equal((await answered(host, '/app/frames/' + frame.ticket)).status, 404)
  const served = await answered(hosts[0], '/app/frames/' + frame.ticket, { headers })
  assert.deepEqual([served.status, served.cookies], [200, undefined])
  assert.match(served.policy, new RegExp(`^sandbox allow-scripts allow-forms allow-same-origin; .*; frame-ancestors http://127.0.0.1:${stand.port}$`))
  assert.equal((await answered(hosts[0], '/app/frames/' + frame.ticket)).status, 404)
  stand.complaints = stand.complaints.filter((said) => !/Content Security Policy|Unsafe attempt|Refused/i.test(said))
  await stand.look(page, 'widgets')
})
