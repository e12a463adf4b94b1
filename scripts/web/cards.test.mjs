// Cards, results and notifications of the chat page, with an MCP server whose tools
// take every kind of argument, and a model that makes the calls of a script.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { Stand, ask, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
const log = path.join(stand.dir, 'runs')

/** What the model asks for, by what a person says: tools and their arguments as JSON. @type {Record<string, [string, string][]>} */
const script = {}
/** What it was told that its calls came to. @type {string[]} */
const told = []

/** A model that does what the script says, and answers once it has the results. */
const model = http.createServer(async (req, res) => {
  if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"actor","object":"model"}]}')
  let body = ''
  for await (const more of req) body += more
  const messages = JSON.parse(body).messages
  const last = messages[messages.length - 1]
  const line = JSON.stringify(last.content)
  const calls = last.role === 'tool' ? undefined : Object.entries(script).find(([said]) => line.includes(said))?.[1]
  if (last.role === 'tool') told.push(line)
  res.setHeader('Content-Type', 'text/event-stream')
  /** @param {any} delta @param {string|null} end */
  const say = (delta, end) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'actor', choices: [{ index: 0, delta, finish_reason: end }] }) + '\n\n')
  if (calls) say({ tool_calls: calls.map(([tool, args], index) => ({ index, id: 'c' + index + '-' + messages.length, type: 'function', function: { name: 'execute_tool', arguments: `{"tool_id":"depot:${tool}","params":${args}}` } })) }, null)
  else say({ content: 'Noted.' }, null)
  say({}, calls ? 'tool_calls' : 'stop')
  res.end('data: [DONE]\n\n')
})

before(async () => {
  fs.writeFileSync(log, '')
  await stand.begin()
  await stand.ctl('servers', 'add', 'depot', '--', process.execPath, path.resolve('server.mjs'), log)
  await new Promise((done) => model.listen(0, '127.0.0.1', () => done(undefined)))
  await stand.ctl('providers', 'add', 'acting', '--no-key', '--base-url', `http://127.0.0.1:${model.address().port}/v1`)
  await stand.ctl('models', 'set', 'actor', 'acting/actor')
  await stand.ctl('models', 'default', 'actor')
})
after(async () => {
  model.closeAllConnections()
  model.close()
  await stand.close()
})

/** The runs of a tool, as the server got them. @param {string} tool */
const runs = (tool) => fs.readFileSync(log, 'utf8').split('\n').filter((l) => l.startsWith(tool + ' ')).map((l) => l.slice(tool.length + 1))

/**
 * Says something for which the model makes calls.
 * @param {import('playwright-core').Page} page
 * @param {string} said
 * @param {...[string, string]} calls
 */
async function propose(page, said, ...calls) {
  script[said] = calls
  await ask(page, said)
}

/** The end of a turn. @param {import('playwright-core').Page} page */
const idle = (page) => page.waitForSelector('[role=log][aria-busy=false]')

test('a form for every kind of argument, in step with the JSON; what does not fit is said at its field', async () => {
  const page = await stand.signedIn()
  await propose(page, 'order some', ['order', '{"to":"Bob","amount":9007199254740993,"how":"ship","place":{"city":"Bern","lines":[{"text":"x","width":1.10}]},"note":"a\\u202eb"}'])
  await readable(page)
  await stand.look(page, 'order-card')
  await press(page, 'Edit').click()
  const json = page.getByLabel('Arguments as JSON')
  const field = (name) => page.locator('.edit-form').locator('input, select, textarea').and(page.getByLabel(name)).first()
  await json.waitFor()
  assert.equal(await field('amount').inputValue(), '9007199254740993')
  assert.equal(await field('how').evaluate((e) => e.selectedOptions[0].text), 'ship')
  assert.match(await page.locator('.edit-form textarea.code').first().inputValue(), /\\u202e/, 'hidden characters are edited as escapes')
  // Each kind, by the form; the JSON follows.
  await page.getByRole('button', { name: '+ urgent' }).click()
  await field('urgent').selectOption('true')
  await field('to').fill('A')
  await field('how').selectOption('plane')
  await page.getByRole('button', { name: '+ on', exact: true }).click()
  await field('on').fill('2026-12-24')
  await page.getByRole('button', { name: '+ price' }).click()
  await field('price').fill('1.')
  await press(page, 'Run with these').click()
  await page.getByText('This is no value yet.').waitFor()
  await field('price').fill('1234567890.12345678901234567890')
  await page.getByRole('button', { name: '+ tags' }).click()
  await page.getByRole('button', { name: '+ one more: tags' }).click()
  await field('tags 1').fill('much too long')
  await page.getByRole('button', { name: '+ one more: lines' }).click()
  await page.getByRole('button', { name: '+ other' }).click()
  await field('other').fill('[1e3]')
  assert.match(await json.inputValue(), /"price": 1234567890\.12345678901234567890,/)
  assert.match(await json.inputValue(), /"urgent": true,/)
  // And the form follows the JSON.
  await json.fill((await json.inputValue()).replace('"city": "Bern"', '"city": "Köln"'))
  assert.equal(await field('city').inputValue(), 'Köln')
  await json.fill((await json.inputValue()) + '}')
  await page.getByText('This is no JSON').waitFor()
  await json.fill((await json.inputValue()).slice(0, -1))
  // nize says what does not fit, and each stands at its field.
  await press(page, 'Run with these').click()
  await page.locator('.edit-form .problem').first().waitFor()
  const said = await page.locator('.edit-form .field:has(> .problem)').allInnerTexts()
  assert.equal(said.length, 3, said.join('\n---\n'))
  assert.match(said.join('\n'), /to \(needed\)[\s\S]*at least 2 characters/)
  assert.match(said.join('\n'), /tags 1[\s\S]*at most 8 characters/)
  assert.match(said.join('\n'), /lines 2[\s\S]*text: is required/)
  assert.equal(await field('to').getAttribute('aria-invalid'), 'true')
  await stand.look(page, 'edit-form')
  await page.setViewportSize({ width: 320, height: 640 })
  await stand.look(page, 'edit-form-phone')
  await page.setViewportSize({ width: 1200, height: 800 })
  assert.deepEqual(runs('order'), [])
  await field('to').fill('Ann')
  await page.getByRole('button', { name: 'Leave out tags 1' }).click()
  await page.getByRole('button', { name: 'Leave out lines 2' }).click()
  await press(page, 'Run with these').click()
  await page.waitForSelector(outcome)
  await idle(page)
  const ran = runs('order')
  assert.equal(ran.length, 1)
  for (const part of ['"amount":9007199254740993', '"price":1234567890.1234567890123456789', '"other":[1e3]', '"city":"Köln"', '"on":"2026-12-24"', '"urgent":true', '"how":"plane"', '"to":"Ann"', '"tags":[]', '"width":1.1']) assert.ok(ran[0].includes(part), `${part} is not in ${ran[0]}`)
  await page.context().close()
})
