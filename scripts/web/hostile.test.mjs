// Hostile views of a server in a real browser: each achieves nothing.
import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { dialing, dials, floods, leaves, tools, tries } from './hostile.mjs'
import { model } from './obedient.mjs'
import { Stand, ask, press, readable } from './stand.mjs'

const stand = new Stand()
const log = path.join(stand.dir, 'hostile.log')
/** What came to the address that they want to reach. @type {string[]} */
const hits = []
const evil = http.createServer((req, res) => { hits.push(req.url ?? ''); res.setHeader('Access-Control-Allow-Origin', '*').end('x') })
/** Packets and connections that came, whatever is in them. */
const met = { udp: 0, tcp: 0 }
evil.on('connection', () => met.tcp++)
const packets = dgram.createSocket('udp4').on('message', () => met.udp++)
let away = ''
before(async () => {
  await stand.begin()
  await model(stand)
  await new Promise((done) => evil.listen(0, '127.0.0.1', () => done(undefined)))
  away = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (evil.address()).port}/`
  await new Promise((done) => packets.bind(0, '127.0.0.1', () => done(undefined)))
  await stand.ctl('servers', 'add', 'hostile', '--', process.execPath, new URL('hostile.mjs', import.meta.url).pathname, away, log, String(packets.address().port))
  await stand.ctl('servers', 'edit', 'toolbox', '--approval', 'always')
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--approval', 'none', '--default')
})
after(() => {
  evil.close()
  packets.close()
  return stand.close()
})

test('40 hostile views achieve nothing', async () => {
  const names = Object.keys(tools)
  assert.ok(names.length >= 40, `there are ${names.length}`)
  // A window in which all views of a conversation are in sight: nothing scrolls, all are loaded.
  const page = await stand.signedIn({ viewport: { width: 1000, height: 5000 } })
  for (let i = 0; i < names.length; i += 5) {
    const several = names.slice(i, i + 5)
    await page.goto(`http://127.0.0.1:${stand.port}/app/`)
    await ask(page, [...several.map((name) => `hostile:${name} {}`), 'toolbox:note_add {"text":"not by a view"}'].join('\n'))
    await page.locator('.card').waitFor() // which is open for whoever would press it
    const address = page.url()
    assert.match(address, /\/app\/c\//)
    for (const name of several) {
      const frame = page.locator(`iframe[title^="${name},"]`)
      if (tools[name] in floods) await page.getByText(`The view of ${name} was stopped: it ${tools[name] === 'takes the keyboard' ? 'took the keyboard' : 'sent too much'}.`).waitFor()
      else if (tools[name] in leaves) await (await (await frame.elementHandle())?.contentFrame())?.waitForURL('chrome-error://**', { waitUntil: 'commit' })
      else await frame.contentFrame().locator('body[data-tried]').waitFor({ state: 'attached' })
    }
    await page.locator('#message').pressSequentially('a draft, by key')
    assert.equal(await page.inputValue('#message'), 'a draft, by key', 'a view took the keyboard')
    for (const name of several.filter((name) => tools[name] in tries)) {
      const frame = page.locator(`iframe[title^="${name},"]`)
      const body = frame.contentFrame().locator('body')
      assert.equal(await body.locator('p').first().textContent(), tools[name])
      assert.equal(await body.getAttribute('data-got'), null, tools[name])
      assert.ok(Number(await frame.getAttribute('height')) <= 800, tools[name])
    }
    assert.equal(page.url(), address, 'the page went elsewhere')
    assert.match(await page.title(), /nize$/)
    assert.equal(page.context().pages().length, 1)
    assert.equal(await page.locator('.view.full, dialog[open], .suggestion').count(), 0)
    assert.equal(await page.locator('.card').count(), 1, 'a card was answered, or one came')
  }

  // And the page goes on: the card takes a person's press, the field what is written.
  await readable(page)
  await press(page, 'Run').click()
  await page.locator('.settled[data-state="done"]').first().waitFor()
  await page.waitForSelector('[role=log][aria-busy=false]')
  await ask(page, 'Still there?')
  await page.locator('.said', { hasText: 'Still there?' }).waitFor()
  await page.waitForSelector('[role=log][aria-busy=false]')
  const { notes } = JSON.parse(fs.readFileSync(path.join(stand.dir, 'notes.json', 'notes.json'), 'utf8'))
  assert.equal(notes.length, 1, 'a card was answered by a view')
  assert.deepEqual(fs.readFileSync(log, 'utf8').trim().split('\n').sort(), [...names].sort(), 'a view called something')
  /** What the trail has of a view's requests. @param {string} name */
  const trail = async (name) => {
    const lines = await stand.ctl('audit', '--kind', 'view.request', '--tool', 'hostile:' + Object.keys(tools).find((tool) => tools[tool] === name), '--json')
    return lines.trim().split('\n').map((line) => JSON.parse(line).data).map((said) => [said.method, said.answer ?? said.more].join()).sort()
  }
  assert.deepEqual(await trail('methods that there are not'), [...['__proto__', 'approvals/approve', 'constructor', 'sampling/createMessage', 'ui/initialize/../x'].map((m) => m + ',method not found'), 'ui/initialize,ok'].sort())
  assert.deepEqual(await trail('a trail full of pings'), ['ping,more came in this minute', ...Array(20).fill('ping,ok'), 'ui/initialize,ok'])
  assert.deepEqual(await trail('a long message'), ['ui/initialize,ok', ...Array(2).fill('ui/message,a message is a text of at most 4 KiB')])
  assert.deepEqual(await trail('the whole screen'), ['ui/initialize,ok', 'ui/request-display-mode,this needs a person who presses something in the view'])
  assert.deepEqual(met, { udp: 0, tcp: 0 }, 'something left')
  await fetch(away + 'control')
  assert.deepEqual(hits, ['/control'], 'something left')
  stand.complaints = stand.complaints.filter((said) => !/Content Security Policy|sandbox|Permissions policy|Framing|Unsafe attempt|Refused|Blocked|Ignored|history|securityError|DOMException|storage|Failed to fetch/i.test(said)) // of what was refused
  await page.context().close()
})

// Chromium stops it by Connection-Allowlist; without that, as other browsers do, there is
// nothing to call. Each time it is somebody else, who may ask for so much a minute.
for (const [user, header, own] of /** @type {[string, boolean, boolean][]} */ ([['mia', true, false], ['ben', false, false], ['zoe', false, true]])) {
  test(`views reach no host by WebRTC, ${header ? 'with' : 'without'} Connection-Allowlist${own ? ', with origins of their own' : ''}`, async () => {
    met.udp = met.tcp = 0
    await stand.ctl('users', 'add', user, '--role', 'admin')
    if (own) {
      const at = `http://*.localhost:${stand.port}`
      fs.mkdirSync(path.join(stand.dir, '.config', 'nize'), { recursive: true })
      fs.writeFileSync(path.join(stand.dir, '.config', 'nize', 'nized.toml'), `http.widgets_origin = "${at}"\n`, { mode: 0o600 })
      stand.daemon.kill('SIGHUP')
      while (!(await stand.ctl('config', 'get', 'http.widgets_origin')).includes(at));
    }
    const page = await stand.signedIn({ viewport: { width: 1000, height: 5000 } }, user)
    let stripped = 0
    if (!header) {
      await page.route((url) => url.pathname.startsWith('/app/frames/'), async (route) => {
        const to = new URL(route.request().url())
        const host = to.host
        to.hostname = '127.0.0.1' // node knows no names below localhost
        const got = await route.fetch({ url: to.href, headers: { ...route.request().headers(), host } })
        const headers = got.headers()
        if (headers['connection-allowlist'] === '()') stripped++
        delete headers['connection-allowlist']
        await route.fulfill({ response: got, headers })
      })
    }
    const names = Object.keys(dialing)
    for (let i = 0; i < names.length; i += 11) {
      const several = names.slice(i, i + 11)
      await page.goto(`http://127.0.0.1:${stand.port}/app/`)
      await ask(page, several.map((name) => `hostile:${name} {}`).join('\n'))
      for (const name of several) {
        const body = page.locator(`iframe[title^="${name},"]`).contentFrame().locator('body[data-tried]')
        await body.waitFor({ state: 'attached' })
        if (dialing[name] in dials) assert.equal(await body.getAttribute('data-got'), null, dialing[name])
      }
    }
    assert.equal(stripped, header ? 0 : names.length)
    // What this page sends, which may, comes after what they could have sent.
    const control = dgram.createSocket('udp4')
    const came = new Promise((done) => control.once('message', done))
    await new Promise((done) => control.bind(0, '127.0.0.1', () => done(undefined)))
    await page.evaluate((port) => {
      const pc = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:' + port }] })
      pc.createDataChannel('x')
      pc.createOffer().then((offer) => pc.setLocalDescription(offer))
    }, control.address().port)
    await came
    control.close()
    assert.deepEqual(met, { udp: 0, tcp: 0 })
    stand.complaints = []
    await page.context().close()
  })
}
