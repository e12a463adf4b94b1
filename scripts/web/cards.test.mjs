// Cards, results and notifications of the chat page, with an MCP server whose tools
// take every kind of argument, and a model that makes the calls of a script.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Stand, ask, choose, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
const log = path.join(stand.dir, 'runs')

/** What the model asks for, by what a person says: tools and their arguments as JSON. @type {Record<string, [string, string][]>} */
const script = {}
/** What it was told that its calls came to. @type {string[]} */
const told = []

/** The model answers once this is there. @type {Promise<void>} */
let gate = Promise.resolve()
/** Closes the gate until what it returns is called. */
function hold() {
  let release = () => {}
  gate = new Promise((done) => { release = () => done() })
  return release
}

/** A model that does what the script says, and answers once it has the results. */
const model = http.createServer(async (req, res) => {
  if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"actor","object":"model"}]}')
  let body = ''
  for await (const more of req) body += more
  await gate
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
  await stand.ctl('servers', 'add', 'depot', '--', process.execPath, fileURLToPath(new URL('server.mjs', import.meta.url)), log)
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
  await page.getByText('Enter a value.').waitFor()
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
  await page.getByText('Invalid JSON').waitFor()
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

test('what a server asks is a form: misfits stand at their fields, defaults are sent, Decline and Cancel are told apart', async () => {
  const page = await stand.signedIn()
  const field = (name) => page.locator('.edit-form').locator('input, select, textarea').and(page.getByLabel(name)).first()
  let heard = told.length
  /** Waits until the model is told of an answer, which has all parts. @param {string[]} parts */
  const answered = async (...parts) => {
    while (told.length === heard) await page.waitForTimeout(20)
    const said = told[heard++].replaceAll('\\', '')
    for (const part of parts) assert.ok(said.includes(part), `${part} is not in ${said}`)
    await idle(page)
  }
  const card = page.locator('.card')
  /** Runs a tool until it asks. @param {string} said @param {string} tool @param {string} asks */
  const asked = async (said, tool, asks) => {
    await propose(page, said, [tool, '{}'])
    await readable(page)
    await press(page, 'Run').click()
    await card.getByText(asks).first().waitFor()
    await readable(page)
  }
  await asked('book it', 'book', 'Where to?')
  assert.match(await card.innerText(), /depot/)
  assert.match(await card.innerText(), /Don’t give it passwords|Don't give it passwords/)
  assert.equal(await press(page, 'Run').count(), 0, 'a question can be run')
  assert.equal(await card.getByRole('button', { name: 'Edit' }).count(), 0)
  await stand.look(page, 'question-card')
  await press(page, 'Answer').click()
  await field('City').waitFor()
  assert.equal(await field('Seats').inputValue(), '2')
  await field('City').fill('X')
  await page.getByRole('button', { name: 'Send the answer' }).click()
  await page.locator('.edit-form .problem').first().waitFor()
  assert.match((await page.locator('.edit-form .field:has(> .problem)').allInnerTexts()).join(), /City[\s\S]*at least 2 characters/)
  await stand.look(page, 'question-form')
  await page.setViewportSize({ width: 320, height: 640 })
  await stand.look(page, 'question-form-phone')
  await page.setViewportSize({ width: 1200, height: 800 })
  await field('City').fill('Zürich')
  await field('Seats').fill('3')
  await field('Class').selectOption('Business')
  await page.getByRole('button', { name: 'Send the answer' }).click()
  await answered('"action":"accept"', '"city":"Zürich"', '"seats":3', '"class":"j"')

  for (const [name, action] of [['Decline', 'decline'], ['Cancel', 'cancel']]) {
    await asked('book it', 'book', 'Where to?')
    await card.getByRole('button', { name, exact: true }).click()
    await answered(`"action":"${action}"`)
  }

  // A page to visit: the whole address, its host on the button, and a press that opens it.
  await asked('visit it', 'visit', 'https://air.example/in?state=a')
  const open = card.getByRole('link', { name: 'Open air.example' })
  assert.equal(await open.getAttribute('href'), 'https://air.example/in?state=a<b')
  assert.equal(await open.getAttribute('rel'), 'noopener noreferrer')
  await stand.look(page, 'question-address')
  const [opened] = await Promise.all([page.context().waitForEvent('page'), open.click()])
  await opened.close()
  await answered('"action":"accept"')
  await page.context().close()
})

test('Run all counts once each card was on the screen, and runs each once', async () => {
  const page = await stand.signedIn()
  await page.setViewportSize({ width: 1000, height: 560 })
  await propose(page, 'three echoes', ...[1, 2, 3].map((n) => /** @type {[string, string]} */ (['echo', `{"n":${n},"text":"${'a longer line '.repeat(60)}"}`])))
  await page.locator('.card').nth(2).waitFor()
  const all = page.locator('.card').first().getByRole('button', { name: 'Run all 3' })
  for (const n of [2, 0, 1]) {
    const card = page.locator('.card').nth(n)
    if (n === 1) {
      assert.equal(await all.getAttribute('aria-disabled'), 'true', 'a card was never seen')
      await page.locator('.card').first().getByText('All of them run together').waitFor()
    }
    // Each end is seen once a frame was painted with it.
    for (const [end, block] of [['h3', 'start'], ['.run', 'end'], ['.buttons', 'end']]) await card.locator(end).evaluate((e, block) => new Promise((seen) => {
      e.scrollIntoView({ block })
      requestAnimationFrame(() => requestAnimationFrame(seen))
    }), block)
    await card.locator('.run[aria-disabled="false"]').waitFor()
  }
  await page.waitForFunction(() => document.querySelectorAll('.card')[0].querySelectorAll('button[aria-disabled="true"]').length === 0)
  await stand.look(page, 'run-all')
  await all.dblclick()
  await page.locator(outcome).nth(2).waitFor()
  await idle(page)
  assert.deepEqual(runs('echo').map((a) => JSON.parse(a).n).sort(), [1, 2, 3])
  // Of what is left after one was decided.
  await page.setViewportSize({ width: 1000, height: 1800 })
  await propose(page, 'three more', ...[1, 2, 3].map((n) => /** @type {[string, string]} */ (['echo', `{"more":${n}}`])))
  await page.getByRole('button', { name: 'Run all 3' }).nth(2).waitFor()
  await readable(page)
  await press(page, 'Decline').first().click()
  await page.locator('.card').nth(1).getByRole('button', { name: 'Run all 2' }).click()
  await page.locator(outcome).nth(4).waitFor()
  await idle(page)
  assert.equal(runs('echo').length, 5)
  await page.context().close()
})

test('a card taller than the window says what was not seen; a no needs no reading', async () => {
  const page = await stand.signedIn({ viewport: { width: 390, height: 640 } })
  const tall = () => propose(page, 'a tall one', ['echo', `{"text":"${'a longer line of it '.repeat(120)}"}`])
  await tall()
  const link = page.locator('.card').getByRole('button', { name: /^Scroll up: [1-9]\d* lines not seen yet$/ })
  await link.waitFor()
  assert.equal(await press(page, 'Run').getAttribute('aria-disabled'), 'true')
  assert.equal(await press(page, 'Run').getAttribute('aria-describedby'), await page.locator('.card .unread').getAttribute('id'))
  assert.equal(await press(page, 'Decline').getAttribute('aria-disabled'), 'false')
  await stand.look(page, 'card-unread')
  await press(page, 'Decline').click()
  await page.waitForSelector('.settled[data-state="cancelled"]')
  await idle(page)

  await tall()
  await link.click()
  await page.waitForFunction(() => document.querySelector('.card h3')?.getBoundingClientRect().top >= 0)
  await page.locator('.card .buttons').scrollIntoViewIfNeeded()
  await readable(page)
  assert.equal(await link.count(), 0)
  await press(page, 'Run').click()
  await page.locator(outcome).waitFor()
  await page.context().close()
})

test('a reason reaches the model', async () => {
  const page = await stand.signedIn()
  await propose(page, 'echo it please', ['echo', '{"n":4}'])
  await readable(page)
  await choose(page, 'Decline with a reason')
  await page.getByLabel('Why not? The model reads it.').fill('Use the small one "A" instead.')
  await stand.look(page, 'reason')
  await press(page, 'Decline').click()
  await page.waitForSelector('.settled[data-state="cancelled"]')
  await idle(page)
  assert.match(told[told.length - 1], /Use the small one/)
  await page.context().close()
})

test('always and never hold until they are revoked', async () => {
  const page = await stand.signedIn()
  const grants = async () => JSON.parse(await stand.ctl('approvals', 'grants', 'list', '--json'))
  const revoke = async () => {
    const all = await grants()
    for (const g of all.items ?? all) await stand.ctl('approvals', 'grants', 'revoke', g.id)
  }
  const before = runs('echo').length
  await propose(page, 'echo for good', ['echo', '{"n":5}'])
  await readable(page)
  await choose(page, 'Allow with limits…')
  await page.getByLabel('With which arguments').or(page.locator('.panel select').nth(1)).first().waitFor()
  assert.equal(await page.locator('.panel select').count(), 3)
  await page.locator('.panel select').nth(1).selectOption('any')
  await page.locator('.panel select').nth(2).selectOption('ever')
  await stand.look(page, 'always')
  await page.locator('.panel').getByRole('button', { name: 'Allow and run' }).click()
  await page.locator('.settled [role=status]').getByText('depot:echo').waitFor()
  await idle(page)
  await stand.look(page, 'kept')
  await propose(page, 'echo once more', ['echo', '{"n":6}'])
  await page.locator('.answer').nth(1).waitFor() // the first one's line says done, too
  await idle(page)
  assert.equal(runs('echo').length, before + 2)
  await propose(page, 'echo at once', ['echo', '{"n":21}'], ['echo', '{"n":22}'], ['echo', '{"n":23}'])
  await page.getByRole('button', { name: /^3 steps/ }).click() // one line, which opens to those of all
  await page.locator('.tool-list .tool-line').nth(2).waitFor()
  await idle(page)
  assert.equal(await page.locator('.card').count(), 0)
  await stand.look(page, 'steps')
  await revoke()
  await propose(page, 'echo never', ['echo', '{"n":7}'])
  await readable(page)
  await choose(page, 'Never')
  await page.locator('.panel').getByRole('button', { name: 'Never' }).click()
  await page.waitForSelector('.settled[data-state="refused"]')
  await idle(page)
  await propose(page, 'echo in vain', ['echo', '{"n":8}'])
  await page.locator('.tool.failed', { hasText: 'a standing answer denies it' }).last().waitFor()
  await idle(page)
  assert.equal(runs('echo').length, before + 5)
  await revoke()
  assert.equal(((await grants()).items ?? []).length, 0)
  await page.context().close()
})

test('what was kept is said, also if that arrives before its line listens', async () => {
  const page = await stand.signedIn()
  await propose(page, 'for an hour', ['echo', '{"n":31}'])
  await readable(page)
  await page.route('**/v1/approvals/*', async (route) => {
    if (route.request().method() !== 'POST') return route.continue()
    const answer = await route.fetch()
    await page.waitForSelector('.settled')
    await route.fulfill({ response: answer })
  })
  // From now on effects come late, as in a window that isn't painted.
  await page.evaluate(() => {
    const later = window.setTimeout
    window.requestAnimationFrame = () => 0
    window.setTimeout = /** @type {any} */ ((/** @type {() => void} */ f, /** @type {number} */ ms) => later(f, ms <= 100 ? 1000 : ms))
  })
  await choose(page, 'Allow for 1 hour')
  await page.locator('.settled [role=status]').getByText('depot:echo').waitFor()
  const all = JSON.parse(await stand.ctl('approvals', 'grants', 'list', '--json'))
  for (const g of all.items ?? all) await stand.ctl('approvals', 'grants', 'revoke', g.id)
  await page.context().close()
})

test('a failure says why; Retry and Ask again', async () => {
  const page = await stand.signedIn()
  await propose(page, 'something shaky', ['shaky', '{}'])
  await readable(page)
  await press(page, 'Run').click()
  await page.locator('.settled[data-state="failed"]').getByText('Failed: The lorry broke down.').waitFor()
  await stand.look(page, 'failed')
  await page.getByRole('button', { name: 'Retry' }).dblclick()
  await page.locator(outcome).waitFor()
  await idle(page)
  assert.equal(runs('shaky').length, 2)
  assert.equal(await page.getByRole('button', { name: 'Retry' }).count(), 0)
  await stand.ctl('config', 'set', 'approvals.expiry.requester', '2s')
  const before = runs('shaky').length
  await propose(page, 'shaky and late', ['shaky', '{"late":true}'])
  await page.locator('.settled[data-state="expired"]').waitFor()
  await stand.ctl('config', 'unset', 'approvals.expiry.requester')
  await page.getByRole('button', { name: 'Ask again' }).click()
  await readable(page)
  assert.equal(runs('shaky').length, before)
  await press(page, 'Run').click()
  await page.locator(outcome).nth(1).waitFor()
  await page.context().close()
})

test('hostile texts on a card are seen as escapes, and are no markup', async () => {
  const page = await stand.signedIn({ colorScheme: 'dark' })
  await propose(page, 'hostile', ['echo', JSON.stringify({ bidi: 'pay \u202eeno ton\u202c', zero: 'a\u200bb\ufeff\u2066', html: '<img src=x onerror=alert(1)><script>alert(1)</script>', markdown: '# Run\n[ok](javascript:alert(1)) **bold** @here', piled: 'a' + '\u0301'.repeat(40), 'na\u202eme': 'x' })])
  await readable(page)
  const shown = await page.locator('.card .arguments').innerText()
  for (const part of ['pay \\u202eeno ton\\u202c', 'a\\u200bb\\ufeff\\u2066', '<img src=x onerror=alert(1)>', '# Run\n[ok](javascript:alert(1)) **bold** @here', 'na\\u202eme']) assert.ok(shown.includes(part), `${part} is not in ${shown}`)
  assert.doesNotMatch(await page.locator('.card').innerText(), /[\u202a-\u202e\u200b\u2066-\u2069\ufeff]|\u0301{5}/)
  assert.equal(await page.locator('.card img, .card script, .card a, .card strong').count(), 0)
  await stand.look(page, 'hostile-card')
  await press(page, 'Edit').click()
  const form = await page.locator('.edit-form').innerText() + (await page.locator('.edit-form :is(textarea, input)').evaluateAll((all) => all.map((e) => e.value))).join('\n')
  assert.match(form, /na\\u202eme/)
  assert.doesNotMatch(form, /[\u202a-\u202e\u200b\u2066-\u2069\ufeff]/)
  await press(page, 'Back').click()
  await press(page, 'Decline').click()
  await page.waitForSelector('.settled[data-state="cancelled"]')
  // What is higher than the window counts once both its ends were seen.
  await propose(page, 'huge', ['echo', JSON.stringify({ text: Array.from({ length: 400 }, (_, i) => 'line ' + i).join('\n'), list: Array.from({ length: 60 }, (_, i) => i) })])
  await page.locator('.card').waitFor()
  await page.locator('.log').evaluate((e) => { e.scrollTop = e.scrollHeight })
  await page.locator('.card .run').waitFor()
  assert.equal(await press(page, 'Run').getAttribute('aria-disabled'), 'true')
  await page.locator('.card h3').evaluate((e) => e.scrollIntoView())
  await readable(page)
  await press(page, 'Decline').click()
  await page.locator('.settled[data-state="cancelled"]').nth(1).waitFor()
  await page.context().close()
})

test('a double press runs once; of two verbs at once one wins, and both tabs show it', async () => {
  const page = await stand.signedIn()
  let before = runs('echo').length
  await propose(page, 'pressed twice', ['echo', '{"n":10}'])
  await readable(page)
  await press(page, 'Run').dblclick()
  await page.locator(outcome).waitFor()
  await idle(page)
  assert.equal(runs('echo').length, before + 1)
  const other = await page.context().newPage()
  await other.goto(page.url())
  before++
  await propose(page, 'two verbs', ['echo', '{"n":11}'])
  await readable(page)
  await other.bringToFront()
  await readable(other)
  // By place, since the later one's button may be gone already.
  const at = await Promise.all([press(page, 'Run'), press(other, 'Decline')].map((button) => button.boundingBox()))
  await Promise.all([page, other].map((tab, i) => tab.mouse.click(at[i].x + at[i].width / 2, at[i].y + at[i].height / 2)))
  const state = async (/** @type {import('playwright-core').Page} */ tab) => {
    await tab.bringToFront()
    const line = tab.locator('.settled').nth(1)
    await tab.waitForFunction(() => ['done', 'cancelled'].includes(document.querySelectorAll('.settled')[1]?.getAttribute('data-state') ?? ''))
    return line.getAttribute('data-state')
  }
  const one = await state(page)
  assert.equal(await state(other), one)
  assert.equal(runs('echo').length, before + (one === 'done' ? 1 : 0))
  await page.context().close()
})

test('an answer that arrives late puts no older card over a newer one', async () => {
  const page = await stand.signedIn()
  await propose(page, 'late answers', ['gated', '{"n":12}'])
  await readable(page)
  for (const at of [page.url(), '/app/approvals']) {
    const other = await page.context().newPage()
    await other.goto(new URL(at, page.url()).href)
    const call = await other.locator('.card').getAttribute('data-call')
    /** @type {(route: import('playwright-core').Route) => void} */
    let asked = () => {}
    const route = new Promise((/** @type {(route: import('playwright-core').Route) => void} */ done) => { asked = done })
    await other.route('**/v1/approvals/*', (route) => route.request().method() === 'POST' ? asked(route) : route.continue())
    await press(other, 'Decline').click()
    const declined = await route
    await page.bringToFront()
    await press(page, 'Run').click()
    await page.waitForSelector('.settled[data-state="running"]')
    const answer = await declined.fetch()
    assert.equal(answer.status(), 409)
    await other.bringToFront()
    fs.writeFileSync(log + '.go', '')
    const line = other.locator(`.settled[data-call="${call}"]`)
    await line.and(other.locator(outcome)).waitFor()
    const read = other.waitForResponse((r) => r.request() === declined.request())
    await declined.fulfill({ response: answer })
    await (await read).finished()
    await other.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
    assert.equal(await line.getAttribute('data-state'), 'done', at)
    fs.rmSync(log + '.go')
    await other.close()
    await page.bringToFront()
    if (at === page.url()) {
      await idle(page)
      await propose(page, 'late answers', ['gated', '{"n":13}'])
      await readable(page)
    }
  }
  await page.context().close()
})

test('kill -9 with an edit open: what was typed is still there, and runs', async () => {
  const page = await stand.signedIn()
  await propose(page, 'before the end', ['order', '{"to":"Bob","amount":12,"how":"ship"}'])
  await readable(page)
  await press(page, 'Edit').click()
  await page.locator('.edit-form').getByLabel('to').first().fill('Zoe')
  await stand.end('SIGKILL')
  await page.waitForSelector('.banner')
  await press(page, 'Run with these').click()
  await page.locator('.edit').getByText('nize could not be reached.').waitFor()
  await stand.start()
  await page.waitForSelector('.banner', { state: 'detached' })
  assert.equal(await page.locator('.edit-form').getByLabel('to').first().inputValue(), 'Zoe')
  await press(page, 'Run with these').click()
  await page.locator(outcome).waitFor()
  assert.ok(runs('order').at(-1)?.includes('"to":"Zoe"'))
  await page.context().close()
})

test('a result of 200 KB is a tree, quickly, by keyboard', async () => {
  const page = await stand.signedIn()
  await propose(page, 'a long one', ['long', '{}'])
  await readable(page)
  await press(page, 'Run').click()
  await page.locator(outcome).waitFor()
  await idle(page)
  await page.locator('.settled .tool-line').click()
  const tree = page.getByRole('tree', { name: 'Result' })
  await tree.waitFor()
  const lines = tree.getByRole('treeitem')
  assert.equal(await lines.count(), 200)
  await tree.getByText('9007199254740993').waitFor()
  await lines.first().focus()
  const focused = (/** @type {string} */ begins) => page.waitForFunction((begins) => document.activeElement?.textContent?.trim().startsWith(begins), begins)
  await focused('0: { 4 }')
  await page.keyboard.press('ArrowRight')
  await focused('id: 0')
  await page.keyboard.press('ArrowLeft')
  await focused('0: { 4 }')
  await page.keyboard.press('ArrowLeft')
  await tree.locator('[role=treeitem]:first-child[aria-expanded=false]').waitFor()
  await page.keyboard.press('ArrowDown')
  await focused('1: ')
  await page.keyboard.press('Home')
  await focused('0: { 4 }')
  await page.keyboard.press('Enter')
  await tree.locator('[role=treeitem]:first-child[aria-expanded=true]').waitFor()
  await stand.look(page, 'tree')
  const part = page.locator('.part', { has: tree })
  const took = await part.getByRole('button', { name: /^Show more: 2,?000/ }).evaluate((b) => new Promise((done) => {
    const from = performance.now()
    b.click()
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - from)))
  }))
  console.log(`2,000 lines of the tree were drawn in ${Math.round(Number(took))} ms`)
  await lines.nth(1999).waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), part.getByRole('button', { name: 'Download' }).click()])
  const text = fs.readFileSync(await file.path(), 'utf8')
  assert.ok(text.length > 200_000 && text.includes('9007199254740993'), String(text.length))
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await part.getByRole('button', { name: 'Copy' }).click()
  await part.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text)
  await page.getByRole('button', { name: 'Raw' }).nth(1).click()
  assert.ok((await page.locator('.part pre').innerText()).split('\n').length <= 201)
  await page.context().close()
})

test('notifications are off until they are switched on, and have no content', async () => {
  const page = await stand.signedIn()
  await page.context().grantPermissions(['notifications'])
  await page.addInitScript(() => {
    // What is notified, and a page that says that nobody sees it.
    const shown = /** @type {any} */ (window).shown = []
    class Told {
      static permission = 'default'
      static requestPermission = async () => Told.permission = 'granted'
      constructor(title, options) { shown.push(title + ': ' + options.body) }
      close() {}
    }
    Object.defineProperty(window, 'Notification', { value: Told })
    let hidden = false
    Object.defineProperty(document, 'hidden', { get: () => hidden })
    Object.assign(window, { hide: (/** @type {boolean} */ now) => { hidden = now; document.dispatchEvent(new Event('visibilitychange')) } })
  })
  await page.reload()
  const hide = (/** @type {boolean} */ now) => page.evaluate((now) => /** @type {any} */ (window).hide(now), now)
  const shown = () => page.evaluate(() => /** @type {any} */ (window).shown)
  let release = hold()
  await propose(page, 'quietly', ['echo', '{"secret":"s3"}'])
  await hide(true)
  release()
  await page.locator('.card').waitFor()
  await page.waitForFunction(() => document.title.startsWith('(1)'))
  await hide(false)
  assert.deepEqual(await shown(), [])
  await readable(page)
  await press(page, 'Decline').click()
  await page.locator('.answer').waitFor()
  await idle(page)
  await page.getByRole('button', { name: 'Notifications: off' }).click()
  await page.getByRole('button', { name: 'Notifications: on' }).waitFor()
  await page.waitForFunction(async () => (await navigator.locks.query()).held?.some((l) => l.name === 'nize-events'))
  release = hold()
  await propose(page, 'loudly', ['echo', '{"secret":"s4"}'])
  await hide(true)
  release()
  await page.waitForFunction(() => /** @type {any} */ (window).shown.includes('nize: A call needs your approval.'))
  await page.locator('[aria-live=polite]', { hasText: 'A call needs your approval.' }).waitFor({ state: 'attached' })
  await hide(false)
  await readable(page)
  release = hold()
  await press(page, 'Run').click()
  await page.locator(outcome).waitFor()
  await hide(true)
  release()
  await page.waitForFunction(() => /** @type {any} */ (window).shown.includes('nize: nize has answered.'))
  await hide(false)
  assert.equal((await shown()).length, 2)
  await page.context().close()
})

test('an edit of a text is a diff; an edited call leaves one line', async () => {
  const page = await stand.signedIn()
  await propose(page, 'edit the file', ['echo', JSON.stringify({ path: 'main.go', edits: [{ old_string: 'one\ntwo', new_string: 'one\n2\nthree' }], note: 'Dear Bob,\nsee you' })])
  await readable(page)
  const lines = (/** @type {string} */ kind) => page.locator(`.card .diff .op-${kind}`).evaluateAll((all) => all.map((e) => e.lastChild?.textContent?.trimEnd()))
  assert.deepEqual([await lines('same'), await lines('out'), await lines('in')], [['one'], ['two'], ['2', 'three']])
  assert.equal(await page.locator('.card .row.text pre').innerText(), 'Dear Bob,\nsee you')
  await stand.look(page, 'diff')
  // The menu by keys.
  await press(page, 'More').focus()
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'menuitem')
  await page.keyboard.press('End')
  await page.waitForFunction(() => document.activeElement?.textContent === 'Details')
  await stand.look(page, 'menu')
  await page.keyboard.press('Escape')
  await page.waitForFunction(() => document.activeElement?.textContent === 'More')
  await choose(page, 'Details')
  await page.locator('.card .more', { hasText: 'needs approval' }).waitFor()
  await press(page, 'Edit').click()
  await page.getByLabel('Arguments as JSON').fill('{"path":"other.go"}')
  await press(page, 'Run with these').click()
  await page.waitForSelector(outcome)
  await idle(page)
  const one = async () => assert.match((await page.locator('.log .tool').allInnerTexts()).join('|'), /^✓\s*depot:echo\s+Done\s+edited and approved by root\s+[\d.]+ m?s$/)
  await one()
  await page.reload()
  await page.waitForSelector(outcome)
  await one()
  await page.context().close()
})

test('allowed for this conversation, and in no other', async () => {
  const page = await stand.signedIn()
  await propose(page, 'echo here', ['echo', '{"here":1}'])
  await readable(page)
  await choose(page, 'Allow for this conversation')
  await page.waitForSelector(outcome)
  await idle(page)
  const before = runs('echo').length
  await propose(page, 'echo here again', ['echo', '{"here":2}'])
  await page.locator('.answer').nth(1).waitFor()
  await idle(page)
  assert.equal(runs('echo').length, before + 1)
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await page.waitForSelector('#message')
  await propose(page, 'echo elsewhere', ['echo', '{"here":3}'])
  await readable(page)
  await press(page, 'Decline').click()
  await page.waitForSelector('.settled[data-state="cancelled"]')
  assert.equal(runs('echo').length, before + 1)
  const grants = JSON.parse(await stand.ctl('approvals', 'grants', 'list', '--json'))
  for (const g of grants.items ?? grants) await stand.ctl('approvals', 'grants', 'revoke', g.id)
  await page.context().close()
})
