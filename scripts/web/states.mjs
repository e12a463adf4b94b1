// What scripts/pictures runs if it is asked for states: every state of the page that a
// person meets, at full size, to be looked at before a release. Each is taken in light and
// in dark, on a phone, and in Chinese.
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Stand, ask, choose, outcome, press, readable, shots } from './stand.mjs'

const stand = new Stand()
const code = '```go\nfunc (p *Pool) Close() error {\n\tp.mu.Lock()\n\tdefer p.mu.Unlock()\n\tfor name, conn := range p.conns {\n\t\tif err := conn.Close(); err != nil {\n\t\t\treturn fmt.Errorf("closing the connection to the upstream server %q after its last call ended: %w", name, err)\n\t\t}\n\t}\n\treturn nil\n}\n```'
const table = '| Issue | Title | Owner | Opened | Votes |\n| --- | --- | --- | --- | ---: |\n| #198 | Checkout hangs on Safari after the third step | mia | 12 May | 41 |\n| #214 | The invoice shows the wrong currency | bo | 3 June | 17 |\n| #231 | Search forgets its filters | — | 9 June | 3 |'
const closing = (n) => ['tracker:close_issues', { project: 'shop', issues: [n], reason: 'duplicate', duplicate_of: 214 }]
const before = 'package pool\n\n// Close ends all connections.\nfunc (p *Pool) Close() {\n\tfor _, c := range p.conns {\n\t\tc.Close()\n\t}\n}\n'
const after = 'package pool\n\n// Close ends all connections and returns their first error.\nfunc (p *Pool) Close() (err error) {\n\tfor _, c := range p.conns {\n\t\terr = cmp.Or(err, c.Close())\n\t}\n\treturn err\n}\n'

/** What a person says, what the model says, and what it calls. @type {[string, string, ...[string, any][]][]} */
const script = [
  ['Refund', 'I propose this refund.', ['tracker:refund', { customer: 'mia@example.com', amount: '49.90', currency: 'EUR' }]],
  ['Answer Mia', 'This is the answer that I would send.', ['tracker:reply', { issue: 214, text: Array.from({ length: 60 }, (_, n) => `${n + 1}. Dear Mia, your checkout hung in step ${n + 1}; we have found the cause and mended it.`).join('\n') }]],
  ['Mend the pool', 'I would return the first error.', ['tracker:edit_file', { path: 'internal/pool/pool.go', old_string: before, new_string: after }]],
  ['Close three', 'These three are duplicates of #214.', closing(231), closing(240), closing(252)],
  ['Fails', 'I try it.', ['tracker:shaky', { project: 'shop' }]],
  ['wrong arguments', 'I try it with the wrong arguments.', ['tracker:refund', { customer: 5 }]],
  ['Search', 'I look.', ['tracker:search_issues', { project: 'shop', query: 'Safari' }]],
  ['Picture', 'Here is the chart.', ['tracker:chart', {}]],
  ['Show me', `This is how it is closed:\n\n${code}\n\nand these are **open**:\n\n${table}\n\n- the first is the oldest\n- the *second* is the dearest\n\n> Nobody reads what stands in a footnote.\n\nSee [the board](https://example.com/board) and \`make test\`.`],
  ['Stream', 'I think about it'],
]
const model = http.createServer(async (req, res) => {
  if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"gpt-5-mini","object":"model"}]}')
  let body = ''
  for await (const more of req) body += more
  const messages = JSON.parse(body).messages
  const last = messages[messages.length - 1]
  const found = last.role === 'tool' ? undefined : script.find(([said]) => JSON.stringify(last.content).includes(said))
  const calls = found?.slice(2) ?? []
  res.setHeader('Content-Type', 'text/event-stream')
  const say = (delta, end, more = {}) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-mini', choices: [{ index: 0, delta, finish_reason: end }], ...more }) + '\n\n')
  say({ content: found ? found[1] : 'That is done.' }, null)
  if (found?.[0] === 'Stream') return // it goes on for ever
  calls.forEach(([tool, params], index) => say({ tool_calls: [{ index, id: `c${messages.length}-${index}`, type: 'function', function: { name: 'execute_tool', arguments: JSON.stringify({ tool_id: tool, params }) } }] }, null))
  say({}, calls.length ? 'tool_calls' : 'stop')
  res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: body.length >> 2, completion_tokens: 180 } }) + '\n\n')
  res.end('data: [DONE]\n\n')
})

/** Takes a state in each form. @param {import('playwright-core').Page} page @param {string} name */
async function take(page, name) {
  const one = (form) => page.screenshot({ path: path.join(shots, `${name}-${form}.png`), animations: 'disabled', caret: 'hide' })
  const size = page.viewportSize()
  await one('light')
  await page.emulateMedia({ colorScheme: 'dark' })
  await one('dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 390, height: 844 })
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
  await one('phone')
  await page.setViewportSize(size)
  await stand.speak(page, 'zh-Hans')
  await one('chinese')
  await stand.speak(page, 'en')
}

try {
  await stand.begin()
  await new Promise((done) => model.listen(0, '127.0.0.1', () => done(undefined)))
  const at = `http://127.0.0.1:${stand.port}`
  const view = { viewport: { width: 1280, height: 800 }, colorScheme: /** @type {const} */ ('light') }
  const open = (page, place = '') => page.goto(`${at}/app/${place}`)

  // The first minutes: no model, no server, nobody signed in.
  const stranger = await (await stand.browser.newContext(view)).newPage()
  await stranger.goto(at + '/login')
  await stranger.waitForSelector('form')
  await take(stranger, '01-login')
  const link = /http\S+/.exec(await stand.ctl('login'))[0]
  await stranger.goto(link)
  await stranger.locator('form:has([data-fragment]) button').waitFor()
  await take(stranger, '02-login-link')
  const page = await stand.signedIn(view)
  await take(page, '03-new')

  await stand.ctl('servers', 'add', 'tracker', '--trust-annotations', '--', process.execPath, fileURLToPath(new URL('tracker.mjs', import.meta.url)))
  await stand.ctl('servers', 'add', 'broken', '--', 'node-of-another-machine', '--serve').catch(() => {})
  await stand.ctl('providers', 'add', 'acme', '--no-key', '--base-url', `http://127.0.0.1:${model.address().port}/v1`)
  await stand.ctl('models', 'set', 'smart', 'acme/gpt-5-mini')
  await stand.ctl('models', 'default', 'smart')
  await stand.ctl('models', 'price', 'acme/gpt-5-mini', '--in', '0.25', '--out', '2')

  const idle = (/** @type {import('playwright-core').Page} */ p) => p.waitForSelector('[role=log][aria-busy=false] > :nth-child(2)')
  await open(page)
  await ask(page, 'Refund Mia for the broken lamp')
  await readable(page)
  await take(page, '04-card-short')
  await press(page, 'More').first().click()
  await take(page, '05-card-menu')
  await page.keyboard.press('Escape')
  await press(page, 'Run').click()
  await page.waitForSelector(outcome)
  await idle(page)
  await take(page, '06-decided')
  await open(page)
  await ask(page, 'Refund Bo')
  await readable(page)
  await choose(page, 'Decline with a reason')
  await take(page, '07-decline-reason')
  await open(page)
  await ask(page, 'Answer Mia about #214')
  await page.waitForSelector('.card .run')
  await take(page, '08-card-tall')
  await open(page)
  await ask(page, 'Mend the pool')
  await page.waitForSelector('.card .run')
  await take(page, '09-card-edit')
  await open(page)
  await ask(page, 'Close three duplicates')
  await page.waitForSelector('.card:nth-of-type(1) .run')
  await page.waitForFunction(() => document.querySelectorAll('.card .run').length === 3)
  await take(page, '10-three-cards')
  await open(page)
  await ask(page, 'Fails once')
  await readable(page)
  await press(page, 'Run').click()
  await page.waitForSelector('.settled[data-state="failed"]')
  await take(page, '11-failed')
  await open(page)
  await ask(page, 'with wrong arguments')
  await idle(page)
  await take(page, '12-wrong-arguments')
  await open(page)
  await ask(page, 'Search for Safari')
  await idle(page)
  await take(page, '13-read-tool')
  await open(page)
  await ask(page, 'Picture of the week')
  await idle(page)
  await take(page, '14-picture')
  await open(page)
  await ask(page, 'Show me code and a table')
  await idle(page)
  await take(page, '15-long-answer')
  await open(page)
  await ask(page, 'Stream something')
  await page.getByText('I think about it').waitFor()
  await take(page, '16-streaming')
  for (const [n, place, ready] of /** @type {[string, string, string][]} */ ([['17', 'approvals', '.card'], ['18', 'servers', 'main h1, main h2'], ['19', 'usage', '.bars svg'], ['20', 'settings', 'main h1, main h2']])) {
    await open(page, place)
    await page.waitForSelector(ready)
    await page.waitForTimeout(1500) // its lists are read
    await take(page, `${n}-${place}`)
  }
  await open(page, 'settings')
  await page.waitForTimeout(1500)
  const groups = page.locator('main nav a')
  for (let n = 1; n < await groups.count(); n++) {
    await groups.nth(n).click()
    await page.waitForTimeout(500)
    await take(page, `21-settings-${n + 1}`)
  }
  const bo = JSON.parse(await stand.ctl('users', 'add', 'bo', '--json'))
  const other = await stand.signedIn(view, bo.id)
  await other.goto(at + '/app/approvals')
  await other.waitForTimeout(1500)
  await take(other, '22-approvals-empty')
} finally {
  model.closeAllConnections()
  model.close()
  await stand.shut()
}
