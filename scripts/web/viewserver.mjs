// An MCP server over stdio whose tools have plain views, for tests that act in them. What
// is written to a file of the directory says how the call of slow ends that names it.
import fs from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'

/** What a view of MCP Apps does at least; it keeps what it is told, and can ask. */
const app = `<!doctype html><title>app</title><body><script>
var told = []
const waiting = {}
const tell = (method, params, id) => parent.postMessage({ jsonrpc: '2.0', id, method, params }, '*')
const ask = (method, params) => new Promise((done) => { const id = 'q' + told.length + Math.random(); waiting[id] = done; tell(method, params, id) })
addEventListener('message', ({ data }) => {
  if (data.method === 'ui/resource-teardown') {
    console.info('goodbye')
    addEventListener('keydown', () => console.info('a key'))
    document.body.tabIndex = 0
    if (window.stays === 'loud') setInterval(() => { if (!document.hasFocus()) console.info('a take'); window.focus(); document.body.focus() }, 20)
    if (!window.stays) ask('ping').then(() => parent.postMessage({ jsonrpc: '2.0', id: data.id, result: {} }, '*'))
  } else if (data.method) told.push(data)
  else waiting[data.id]?.(data)
})
ask('ui/initialize', { protocolVersion: '2026-01-26', appInfo: { name: 'x', version: '1' }, appCapabilities: {} }).then(() => {
  tell('ui/notifications/initialized', {})
  document.body.dataset.ready = 1
})
</script>`

/** A view that is written for window.openai: what its script finds, and what it hears of later. */
const sky = `<!doctype html><html lang="en"><title>sky</title><body><button>Press</button><script>
openai.notifyIntrinsicHeight(444)
var found = { ...openai }
var news = []
addEventListener('openai:set_globals', ({ detail }) => news.push(detail.globals))
document.querySelector('button').onclick = () => window.press().then((yes) => { window.got = yes }, (err) => { window.got = err.message })
</script></html>`

const reply = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n')
/** @type {{name: string, _meta: object}[]} */
const tools = ['app', 'slow', 'silent', 'copies'].map((name) => ({ name, _meta: { ui: { resourceUri: 'ui://views/' + name } } }))
tools.push({ name: 'sky', _meta: { 'openai/outputTemplate': 'ui://views/sky' } })
/** The views that are another, or may do more. @type {Record<string, object>} */
const views = {
  'ui://views/silent': { text: '<p>nothing' },
  'ui://views/sky': { mimeType: 'text/html+skybridge', text: sky },
  'ui://views/copies': { text: app, _meta: { ui: { permissions: { clipboardWrite: {} } } } },
}
/** What ends a call, by its file. @type {Record<string, (how: string) => void>} */
const ends = {}
const [, , dir] = process.argv
if (dir) {
  fs.watch(dir, (_, name) => {
    const how = fs.readFileSync(path.join(dir, name ?? ''), 'utf8')
    if (how) ends[name ?? '']?.(how)
  })
}
createInterface(process.stdin).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'initialize') return reply(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'views', version: '1' } })
  if (method === 'tools/list') return reply(id, { tools: tools.map((tool) => ({ inputSchema: { type: 'object' }, annotations: { readOnlyHint: true }, ...tool })) })
  if (method === 'resources/list') return reply(id, { resources: [] })
  if (method === 'resources/templates/list') return reply(id, { resourceTemplates: [] })
  if (method === 'tools/call' && params.name === 'slow') {
    ends[params.arguments.file] = (how) => {
      if (how === 'fail') process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'it failed' } }) + '\n')
      else reply(id, { content: [{ type: 'text', text: how }], structuredContent: { how } })
    }
    return
  }
  if (method === 'tools/call') return reply(id, { content: [{ type: 'text', text: 'plain' }], structuredContent: { given: params.arguments }, _meta: { kept: 'from the model' } })
  if (method === 'resources/read') return reply(id, { contents: [{ uri: params.uri, mimeType: 'text/html;profile=mcp-app', ...views[params.uri] ?? { text: app } }] })
  reply(id, {})
})
