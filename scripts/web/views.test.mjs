// Views of nize's own tools in a real browser.
import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, test } from 'node:test'
import { Stand, ask } from './stand.mjs'

const stand = new Stand()
before(async () => {
  await stand.begin()
  await model()
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--allow', 'native:*', '--default')
})
after(() => stand.close())

/** A model that calls what it is told to: TOOL {ARGUMENTS}. */
async function model() {
  const server = http.createServer((req, res) => {
    if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"obedient","object":"model"}]}')
    let body = ''
    req.on('data', (more) => { body += more })
    req.on('end', () => {
      const { messages, tools } = JSON.parse(body)
      const last = messages[messages.length - 1]
      heard.push(messages)
      const [, tool, params] = last.role === 'user' && tools?.length ? /^([\w-]+:\S+) (\{.*\})$/m.exec(last.content) ?? [] : []
      const delta = tool ? { tool_calls: [{ index: 0, id: 'c' + heard.length, type: 'function', function: { name: 'execute_tool', arguments: JSON.stringify({ tool_id: tool, params: JSON.parse(params) }) } }] } : { content: 'Said.' }
      const say = (delta, end) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'obedient', choices: [{ index: 0, delta, finish_reason: end }] }) + '\n\n')
      res.setHeader('Content-Type', 'text/event-stream')
      say(delta, null)
      say({}, tool ? 'tool_calls' : 'stop')
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
const heard = []

/**
 * Asks for a call of a tool, and waits for its view.
 * @param {import('playwright-core').Page} page
 * @param {string} tool
 * @param {object} params
 */
async function show(page, tool, params = {}) {
  const before = await page.locator('.view iframe').count()
  await ask(page, `${tool} ${JSON.stringify(params)}`)
  await page.locator('.view iframe').nth(before).waitFor()
  const element = await page.locator('.view iframe').nth(before).elementHandle()
  return /** @type {import('playwright-core').Frame} */ (await element?.contentFrame())
}

test('views of native tools', async () => {
  const page = await stand.signedIn()
  const chart = await show(page, 'native:show-chart', { title: 'Signups </script><script>alert(1)</script>', unit: 'EUR', bars: [{ label: 'Mon', value: 12 }, { label: 'Tue', value: 31.5 }, { label: 'Wed', value: -4 }] })
  await chart.locator('rect').nth(2).waitFor()
  assert.equal(await chart.locator('h1').innerText(), 'Signups </script><script>alert(1)</script>')
  await page.waitForFunction(() => Number(document.querySelector('.view iframe').getAttribute('height')) < 160)
  const usage = await show(page, 'native:get-plan-usage')
  await usage.locator('h1', { hasText: 'Free' }).waitFor()
  await stand.look(page, 'views')
  await page.emulateMedia({ colorScheme: 'dark' })
  await chart.locator('body.dark').waitFor()
  await stand.look(page, 'views-dark')
  await page.reload()
  await page.frameLocator('.view iframe >> nth=0').locator('rect').nth(2).waitFor()
  await page.context().close()
})
