// Views that have an origin of their server's own, in a real browser.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'
import { model, rested, show } from './obedient.mjs'
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

test('what a view is told of its host, and may do', { timeout: 3 * patience }, async () => {
  await stand.ctl('servers', 'trust', 'views', 'copies', '--yes')
  const page = await stand.signedIn({ locale: 'en-GB', timezoneId: 'Asia/Tokyo', acceptDownloads: true })
  await page.clock.install()
  await page.reload()
  const view = await show(page, 'views:copies', { a: 1 })
  await view.locator('body[data-ready]').waitFor({ state: 'attached' })

  // Each field of what it is answered.
  const ask = (/** @type {string} */ method, /** @type {object} */ params = {}) => /** @type {Promise<any>} */ (view.evaluate(`ask('${method}', ${JSON.stringify(params)})`))
  const { result: { hostContext, ...host } } = await ask('ui/initialize')
  assert.deepEqual(host, {
    protocolVersion: '2026-01-26',
    hostInfo: { name: 'nize', version: '1' },
    hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, downloadFile: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} }, sandbox: { csp: {}, permissions: { clipboardWrite: {} } } },
  })
  const { styles: { variables }, containerDimensions, ...told } = hostContext
  assert.deepEqual(told, {
    toolInfo: { tool: { name: 'copies', inputSchema: { type: 'object' } } },
    theme: 'light', displayMode: 'inline', availableDisplayModes: ['inline', 'fullscreen'],
    locale: 'en-GB', timeZone: 'Asia/Tokyo', userAgent: await page.evaluate(() => navigator.userAgent), platform: 'web',
    deviceCapabilities: { touch: false, hover: true }, safeAreaInsets: { top: 0, right: 0, bottom: 0, left: 0 },
  })
  assert.equal(containerDimensions.maxHeight, 800)
  const ours = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--color-text-primary').trim())
  assert.equal(variables['--color-text-primary'], ours)
  for (const name of ['color-background-primary', 'color-background-inverse', 'color-border-primary', 'color-ring-primary', 'font-sans', 'font-mono', 'border-radius-md']) assert.ok(variables['--' + name], name)

  // It may write to the clipboard, since that was accepted; another may not.
  const frame = page.locator('iframe[title="copies, shown by views"]')
  assert.equal(await frame.getAttribute('allow'), 'clipboard-write')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await rested(page)
  await frame.click()
  await view.evaluate(() => navigator.clipboard.writeText('from the view'))
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'from the view')
  const plain = await show(page, 'views:app')
  assert.equal(await page.locator('iframe[title="app, shown by views"]').getAttribute('allow'), '')
  await plain.locator('body[data-ready]').waitFor({ state: 'attached' })

  // A file, under a name that leads nowhere.
  await rested(page)
  await frame.click()
  const saved = ask('ui/download-file', { contents: [{ type: 'resource', resource: { uri: 'file:///x/..%2f..\\.profile "a".txt', text: 'what it holds' } }] })
  const file = page.waitForEvent('download')
  await page.locator('dialog').getByRole('button', { name: 'Save file' }).click()
  assert.deepEqual((await saved).result, {})
  const download = await file
  assert.equal(download.suggestedFilename(), '_2f.._.profile _a_.txt')
  assert.equal(fs.readFileSync(await download.path(), 'utf8'), 'what it holds')

  // While it waits for a yes it hears every 20 s that nize is there.
  await stand.ctl('servers', 'edit', 'views', '--approval', 'always')
  await view.evaluate("tell('tools/call', { name: 'app', _meta: { progressToken: 'p' } }, 'waits')")
  await page.locator('.card').waitFor()
  const progress = () => view.evaluate(() => /** @type {any} */ (window).told.filter((m) => m.method === 'notifications/progress').map((m) => m.params))
  assert.deepEqual(await progress(), [])
  await page.clock.fastForward(20_000)
  await view.waitForFunction(() => /** @type {any} */ (window).told.some((m) => m.method === 'notifications/progress'))
  assert.deepEqual(await progress(), [{ progressToken: 'p', progress: 1 }])
  await page.locator('.card').scrollIntoViewIfNeeded() // the press in the frame may have scrolled away from it
  await page.locator('.card').getByRole('button', { name: 'Decline', exact: true }).click()
  await stand.ctl('servers', 'edit', 'views', '--approval', 'never')

  // One that says nothing for ten seconds gives way to the plain result.
  await show(page, 'views:silent')
  const silent = page.locator('iframe[title="silent, shown by views"]')
  await page.clock.fastForward(9000)
  assert.equal(await silent.count(), 1)
  await page.clock.fastForward(1000)
  await page.getByText('The view of silent did not start. This is the plain result:').waitFor()
  assert.equal(await silent.count(), 0)
  await page.locator('.view.ended', { hasText: 'plain' }).waitFor()
  await page.context().close()
})
