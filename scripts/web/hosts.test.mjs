// Views of tools in hosts that are not nize's page: a real one, of the official client
// and bridge of MCP Apps, connects to nize as an MCP client and shows them.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Stand } from './stand.mjs'

const stand = new Stand()
const here = path.dirname(fileURLToPath(import.meta.url))
const modules = path.join(here, 'node_modules')
const imports = Object.fromEntries([
  ['@modelcontextprotocol/client', '@modelcontextprotocol/client/dist/index.mjs'],
  ['@modelcontextprotocol/client/_shims', '@modelcontextprotocol/client/dist/shimsBrowser.mjs'],
  ['@modelcontextprotocol/core', '@modelcontextprotocol/core/dist/index.mjs'],
  ['@modelcontextprotocol/core/internal', '@modelcontextprotocol/core/dist/internal.mjs'],
  ['@modelcontextprotocol/ext-apps/app-bridge', '@modelcontextprotocol/ext-apps/dist/src/app-bridge.js'],
  ['eventsource', 'eventsource/dist/index.js'], ['eventsource-parser', 'eventsource-parser/dist/index.js'], ['eventsource-parser/stream', 'eventsource-parser/dist/stream.js'],
  ['pkce-challenge', 'pkce-challenge/dist/index.browser.js'], ['zod/v4', 'zod/v4/index.js'],
].map(([name, file]) => [name, '/modules/' + file]))
const shell = `<!doctype html><html lang="en"><title>Host</title><link rel="icon" href="data:,"><style>iframe { width: 100%; border: 1px solid }</style>
<main><h1>Host</h1></main><script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="/host.mjs"></script>`
const vanilla = 'basic-vanillajs'
const monitor = 'system-monitor'

/** The host's own server: its page, and nize behind it, with the host's token. @type {http.Server} */
let host
let address = ''

/** A view of an extension, that shows its result when it is whole, and asks for another. */
const template = `<h1 id="was"></h1><button id="more">More</button><output id="now"></output><script>
  const { toolOutput, callTool, setWidgetState } = window.openai
  document.addEventListener('DOMContentLoaded', () => { document.getElementById('was').textContent = 'It was ' + toolOutput.sum })
  document.getElementById('more').onclick = async () => {
    const { structuredContent } = await callTool('add', { to: toolOutput.sum })
    await setWidgetState({ sum: structuredContent.sum })
    document.getElementById('now').textContent = 'It is ' + window.openai.widgetState.sum
  }
</script>`

before(async () => {
  const dir = path.join(stand.dir, 'extensions', 'add')
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'view.html'), template, { mode: 0o600 })
  fs.writeFileSync(path.join(dir, 'run'), `#!/bin/sh
to=$(grep -o '"to":[0-9]*' | head -1 | tr -dc 0-9)
printf '{"content":[{"type":"text","text":"added"}],"structuredContent":{"sum":%d}}' $((to + 1))
`, { mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'extension.json'), '{"name": "add", "description": "Adds one.", "inputSchema": {"type": "object", "properties": {"to": {"type": "integer"}}}, "command": "./run", "template": "view.html"}', { mode: 0o600 })
  await stand.begin()
  await stand.ctl('config', 'set', 'approvals.mode', 'none', '--yes')
  for (const name of [vanilla, monitor]) {
    await stand.ctl('servers', 'add', name, '--', process.execPath, path.join(modules, '@modelcontextprotocol', 'server-' + name, 'dist', 'index.js'), '--stdio')
    await stand.ctl('servers', 'edit', name, '--approval', 'never')
  }
  const made = await stand.ctl('tokens', 'create', 'host', '--scope', 'expose:all', '--scope', 'expose:native')
  const token = /nize_\S+/.exec(made)?.[0]
  host = http.createServer((req, res) => {
    const at = new URL(req.url ?? '/', 'http://host').pathname
    if (at === '/mcp') {
      const headers = { ...req.headers, authorization: `Bearer ${token}`, host: `127.0.0.1:${stand.port}` }
      delete headers.origin
      const on = http.request({ host: '127.0.0.1', port: stand.port, path: '/mcp', method: req.method, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(res)
      })
      on.on('error', () => res.destroy())
      res.on('close', () => on.destroy())
      return req.pipe(on)
    }
    if (at === '/') return res.setHeader('Content-Type', 'text/html').end(shell)
    const file = at === '/host.mjs' ? path.join(here, 'host.mjs') : path.join(modules, at.replace('/modules/', ''))
    res.setHeader('Content-Type', 'text/javascript')
    fs.createReadStream(file).on('error', () => res.writeHead(404).end()).pipe(res)
  })
  await new Promise((done) => host.listen(0, '127.0.0.1', () => done(undefined)))
  address = `http://127.0.0.1:${host.address().port}/`
})
after(() => {
  host?.closeAllConnections()
  host?.close()
  return stand.close()
})

/** A host's page, and the tools that it lists. */
async function opened(announces, mode) {
  const page = await stand.browser.newPage({ viewport: { width: 900, height: 1400 } })
  page.on('pageerror', (err) => stand.complaints.push(err.message))
  await page.goto(address)
  await page.waitForFunction(() => window.loaded)
  const tools = await page.evaluate(([announces, mode]) => window.begin(announces, mode), [announces, mode])
  return { page, tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])) }
}

/** @type {[string, 'legacy'|{pin: string}][]} */
const wires = [['2025-11-25', 'legacy'], ['2026-07-28', { pin: '2026-07-28' }]]
for (const [version, mode] of wires) {
  test(`views in a host on ${version}`, async () => {
    const { page, tools } = await opened(true, mode)
    const usage = tools['native__get-plan-usage']
    assert.equal(usage._meta.ui.resourceUri, 'ui://native/get-plan-usage')
    assert.deepEqual(tools[monitor + '__poll-system-stats']._meta.ui.visibility, ['app'])

    const show = (tool, args = {}) => page.evaluate(([tool, args]) => window.show(tool, args), [tool, args])
    const within = (tool) => page.frameLocator(`iframe[name="${tool.name}"]`)

    // A template finds the result before its scripts run, and hears of what comes later.
    const { structuredContent } = await show(usage)
    await within(usage).locator('#plan', { hasText: structuredContent.planName }).waitFor()
    assert.equal(await within(usage).locator('body').getAttribute('class'), 'dark')
    await page.waitForFunction(() => parseInt(document.querySelector('iframe')?.style.height ?? '') > 20)
    await stand.look(page, `host-${version}-dark`)
    await page.evaluate(() => window.lighten())
    await within(usage).locator('body:not(.dark)').waitFor()

    // That of an extension, which calls a tool by the name that it has there.
    const add = tools['native__add']
    await show(add, { to: 1 })
    await within(add).locator('#was', { hasText: 'It was 2' }).waitFor()
    await within(add).locator('#more').click()
    await within(add).locator('#now', { hasText: 'It is 3' }).waitFor()

    // A server's own view; it calls a tool by the name that this has there.
    const time = tools[vanilla + '__get-time']
    await show(time)
    const shown = within(time).locator('#server-time', { hasText: /^20..-/ })
    await shown.waitFor()
    const first = await shown.innerText()
    await within(time).locator('#get-time-btn').click()
    await within(time).locator('#server-time').filter({ hasNotText: first }).waitFor()

    // One that calls a tool which is for views alone.
    const info = tools[monitor + '__get-system-info']
    await show(info)
    await within(info).locator('#memory-percent', { hasText: /^\d+%$/ }).waitFor()
    await within(info).locator('#poll-toggle-btn').click() // or it asks for ever
    await stand.look(page, 'host-' + version)
    await page.close()
  })

  test(`a client without views on ${version}`, async () => {
    const { page, tools } = await opened(false, mode)
    assert.equal(tools[monitor + '__poll-system-stats'], undefined)
    for (const tool of Object.values(tools)) assert.equal(tool._meta?.ui, undefined, tool.name)
    await page.close()
  })
}
