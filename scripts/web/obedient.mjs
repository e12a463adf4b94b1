// A model that does what it is told, for tests of views.
import http from 'node:http'
import { ask } from './stand.mjs'

/** A model that calls what it is told to, one a line: TOOL {ARGUMENTS}, or raw FUNCTION ARGUMENTS as they stand. @param {import('./stand.mjs').Stand} stand */
export async function model(stand) {
  const server = http.createServer((req, res) => {
    if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"obedient","object":"model"}]}')
    let body = ''
    req.on('data', (more) => { body += more })
    req.on('end', () => {
      const { messages, tools } = JSON.parse(body)
      const last = messages[messages.length - 1]
      heard.push(messages)
      const told = last.role === 'user' && tools?.length ? [...last.content.matchAll(/^([\w-]+:\S+) (\{.*\})$/gm)] : []
      const raw = last.role === 'user' && tools?.length ? [...last.content.matchAll(/^raw (\S+) (.*)$/gm)].map(([, name, args]) => ({ name, arguments: args })) : []
      const calls = [...told.map(([, tool, params]) => ({ name: 'execute_tool', arguments: JSON.stringify({ tool_id: tool, params: JSON.parse(params) }) })), ...raw]
      const delta = calls.length ? { tool_calls: calls.map((fn, index) => ({ index, id: `c${heard.length}-${index}`, type: 'function', function: fn })) } : { content: 'Said.' }
      const say = (delta, end) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'obedient', choices: [{ index: 0, delta, finish_reason: end }] }) + '\n\n')
      res.setHeader('Content-Type', 'text/event-stream')
      say(delta, null)
      say({}, calls.length ? 'tool_calls' : 'stop')
      res.end('data: [DONE]\n\n')
    })
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)))
  stand.server = server
  await stand.ctl('providers', 'add', 'house', '--no-key', '--base-url', `http://127.0.0.1:${server.address().port}/v1`)
  await stand.ctl('models', 'set', 'obedient', 'house/obedient')
  await stand.ctl('models', 'default', 'obedient')
}

/** What the model was told, request by request. @type {any[][]} */
export const heard = []

/**
 * Asks for a call of a tool, and waits for its view.
 * @param {import('playwright-core').Page} page
 * @param {string} tool
 * @param {object} params
 */
export async function show(page, tool, params = {}) {
  const before = await page.locator('.view-place').count()
  await ask(page, `${tool} ${JSON.stringify(params)}`)
  const place = page.locator('.view-place').nth(before)
  await place.waitFor({ state: 'attached' })
  await place.scrollIntoViewIfNeeded()
  const element = await place.locator('iframe').elementHandle()
  return /** @type {import('playwright-core').Frame} */ (await element?.contentFrame())
}

/**
 * Waits until what was pressed on the page has passed: the pointer that a driver moves
 * comes into a frame unseen, so the page takes a press in it for a finger's.
 * @param {import('playwright-core').Page} page
 */
export const rested = (page) => page.waitForFunction(() => !navigator.userActivation.isActive)
