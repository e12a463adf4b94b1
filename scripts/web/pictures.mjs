// What scripts/pictures runs: a nized with a small tracker of issues and a model that
// follows a script, driven until there is something to see, in a browser and in tmux.
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Stand, ask, readable, shots } from './stand.mjs'
import { recording } from './recording.mjs'

const run = promisify(execFile)
const bin = process.env.NIZE_BIN
const stand = new Stand()

const question = 'Close the duplicates of #214 in shop'
const answers = {
  found: 'I found three open duplicates of **#214 Checkout hangs on Safari**: #231, #240 and #252. I propose to close them.',
  done: 'Done: #231, #240 and #252 are closed as duplicates of #214.',
}

/** What the model calls, by what a person said, and says with it. @type {[string, string, [string, any]?][]} */
const script = [
  [question, answers.found, ['tracker:close_issues', { project: 'shop', issues: [231, 240, 252], reason: 'duplicate', duplicate_of: 214 }]],
  ['Ship order 4711', 'I propose to send the order by train.', ['tracker:ship_order', { order: 4711, carrier: 'train', notify: 'bo@example.com' }]],
  ['Refund Mia', 'I propose this refund.', ['tracker:refund', { customer: 'mia@example.com', amount: '49.90', currency: 'EUR' }]],
  ['What is open', 'Twelve issues are open in shop; the oldest is #198.'],
  ['Summarise', 'Checkout hangs on Safari since the last release; three people reported it again.'],
]

/** A model that speaks as it is written, and counts its tokens. */
const model = http.createServer(async (req, res) => {
  if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"gpt-5-mini","object":"model"}]}')
  let body = ''
  for await (const more of req) body += more
  const messages = JSON.parse(body).messages
  const last = messages[messages.length - 1]
  const line = JSON.stringify(last.content)
  const found = last.role === 'tool' ? undefined : script.find(([said]) => line.includes(said))
  res.setHeader('Content-Type', 'text/event-stream')
  const say = (delta, end, more = {}) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-mini', choices: [{ index: 0, delta, finish_reason: end }], ...more }) + '\n\n')
  say({ content: found ? found[1] : answers.done }, null)
  if (found?.[2]) say({ tool_calls: [{ index: 0, id: 'c' + messages.length, type: 'function', function: { name: 'execute_tool', arguments: JSON.stringify({ tool_id: found[2][0], params: found[2][1] }) } }] }, null)
  say({}, found?.[2] ? 'tool_calls' : 'stop')
  res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: body.length >> 2, completion_tokens: 180 + line.length } }) + '\n\n')
  res.end('data: [DONE]\n\n')
})

/** @param {import('playwright-core').Page} page @param {string} name */
const picture = (page, name) => page.screenshot({ path: path.join(shots, name + '.png'), animations: 'disabled', caret: 'hide' })

/** A window of a size that a README shows well, with sharp letters. */
const view = { viewport: { width: 1000, height: 800 }, deviceScaleFactor: 1.35 }

/** A page of a pretended platform on which Ann asks, until the card is there. @param {string} platform */
async function pretended(platform) {
  const double = spawn(path.join(bin, 'nizectl'), ['--json', '--socket', path.join(stand.dir, 's'), 'dev', platform, '--connect'], { env: { ...process.env, HOME: stand.dir }, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const { page: address } = await new Promise((ready, failed) => {
      let said = ''
      double.once('exit', (code) => failed(new Error(`dev ${platform} ended with ${code}`)))
      double.stdout.on('data', (more) => {
        said += more
        try { ready(JSON.parse(said)) } catch {} // there is more to come
      })
    })
    double.removeAllListeners('exit')
    const context = await stand.browser.newContext({ viewport: { width: 1160, height: 720 }, deviceScaleFactor: 1.2, colorScheme: 'light' })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    await page.goto(address)
    const field = page.locator('#text')
    await page.waitForFunction(() => /** @type {HTMLTextAreaElement} */ (document.getElementById('text')).value.includes('claim'))
    await field.press('Enter') // the line is there: it makes Ann an admin
    await page.waitForFunction(() => document.getElementById('linked')?.textContent)
    await field.fill(`@nize ${question}`)
    await field.press('Enter')
    // The card is in the thread. A click on what is drawn again meanwhile is lost.
    const replies = page.getByText(/^\d repl(y|ies)$/)
    for (let n = 0; !(await page.locator('#pane').isVisible()) && n < 30; n++) {
      await replies.click()
      await page.locator('#pane').waitFor({ timeout: 2000 }).catch(() => {})
    }
    await page.getByRole('button', { name: 'Run', exact: true }).first().waitFor()
    await page.getByText(answers.found.slice(0, 20)).last().waitFor()
    await picture(page, platform)
    await context.close()
  } finally {
    const ended = new Promise((done) => double.once('exit', done))
    double.kill('SIGINT')
    await ended
  }
}

/** A chat in tmux, as its frames. */
async function terminal() {
  const socket = path.join(stand.dir, 'tmux')
  const [columns, rows] = [92, 20]
  const env = { PATH: bin + path.delimiter + process.env.PATH, HOME: stand.dir, NIZE_SOCKET: path.join(stand.dir, 's'), TERM: 'xterm-256color', COLORTERM: 'truecolor', LANG: 'C.UTF-8', PS1: '$ ', TZ: 'UTC' }
  const tmux = (...args) => run('tmux', ['-S', socket, '-f', '/dev/null', ...args], { env })
  await tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), ...Object.entries(env).flatMap(([k, v]) => ['-e', `${k}=${v}`]), 'bash', '--norc', '--noprofile')
  await tmux('set', '-g', 'status', 'off')
  const frames = []
  const screen = async () => (await tmux('capture-pane', '-e', '-p', '-N')).stdout
  const keep = async (ms) => {
    const { stdout } = await tmux('display-message', '-p', '#{cursor_x} #{cursor_y}')
    const [x, y] = stdout.trim().split(' ').map(Number)
    frames.push({ screen: await screen(), x, y, ms })
  }
  const type = async (text, each = 45) => {
    for (const key of text) {
      await tmux('send-keys', '-l', key)
      await new Promise((done) => setTimeout(done, 15))
      await keep(each)
    }
  }
  const until = async (want) => {
    for (let last = '', n = 0; n < 600; n++) {
      const now = await screen()
      if (now !== last) await keep(120)
      last = now
      if (want.test(now)) return
      await new Promise((done) => setTimeout(done, 50))
    }
    throw new Error(`the terminal does not show ${want}:\n${await screen()}`)
  }
  try {
    await new Promise((done) => setTimeout(done, 500))
    await keep(600)
    await type('nizectl chat')
    await tmux('send-keys', 'Enter')
    await until(/\/help/)
    await keep(700)
    await type(question, 35)
    await keep(400)
    await tmux('send-keys', 'Enter')
    await until(/\by\b.*run|\[y\]|y run/i)
    await keep(4500)
    frames[frames.length - 1].still = true
    await new Promise((done) => setTimeout(done, 2500)) // a key that comes before the card can be read doesn't count
    await tmux('send-keys', 'y')
    await until(/are closed as duplicates/)
    await keep(4000)
  } finally {
    await tmux('kill-server').catch(() => {}) // of this socket alone
  }
  fs.writeFileSync(path.join(shots, 'terminal.svg'), recording(frames, columns, rows))
}

try {
  await stand.begin()
  await new Promise((done) => model.listen(0, '127.0.0.1', () => done(undefined)))
  await stand.ctl('servers', 'add', 'tracker', '--trust-annotations', '--', process.execPath, fileURLToPath(new URL('tracker.mjs', import.meta.url)))
  await stand.ctl('providers', 'add', 'acme', '--no-key', '--base-url', `http://127.0.0.1:${model.address().port}/v1`)
  await stand.ctl('models', 'set', 'smart', 'acme/gpt-5-mini')
  await stand.ctl('models', 'default', 'smart')
  await stand.ctl('models', 'price', 'acme/gpt-5-mini', '--in', '0.25', '--out', '2')

  const mia = JSON.parse(await stand.ctl('users', 'add', 'mia', '--role', 'admin', '--json'))
  const page = await stand.signedIn({ ...view, colorScheme: 'light' }, mia.id)
  const begin = () => page.goto(`http://127.0.0.1:${stand.port}/app/`)
  for (const said of ['What is open in shop?', 'Summarise #214 for support']) { // some use before
    await begin()
    await ask(page, said)
    await page.waitForSelector('[role=log][aria-busy=false] .message:nth-child(2), [role=log][aria-busy=false] > :nth-child(2)')
  }
  for (const said of ['Ship order 4711', 'Refund Mia for the broken lamp']) { // calls that wait
    await begin()
    await ask(page, said)
    await readable(page)
  }
  await begin()
  await ask(page, question)
  await readable(page)
  await picture(page, 'card-light')
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'card-dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(`http://127.0.0.1:${stand.port}/app/approvals`)
  await readable(page)
  await picture(page, 'approvals')
  await page.goto(`http://127.0.0.1:${stand.port}/app/usage`)
  await page.waitForSelector('.bars svg')
  await page.getByLabel('Range').selectOption({ label: '7 days' })
  await page.getByLabel('Table by').selectOption({ label: 'Conversation' })
  await page.getByText('Summarise #214 for support').last().waitFor()
  await page.setViewportSize({ width: 1000, height: 960 })
  await picture(page, 'usage')
  for (const platform of ['slack', 'discord']) await pretended(platform)
  await terminal()
} finally {
  model.closeAllConnections()
  model.close()
  await stand.shut()
}
