// What the tests of the chat page stand on: a real nized with the toolbox and the
// offline planner in a directory of its own, a browser, and axe.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { chromium } from 'playwright-core'

const run = promisify(execFile)
const bin = process.env.NIZE_BIN
const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Where screenshots go. */
export const shots = process.env.NIZE_SHOTS ?? fs.mkdtempSync(path.join(os.tmpdir(), 'nize-web-'))
fs.mkdirSync(shots, { recursive: true })

const languages = ['en', 'zh-Hans', 'zh-Hant']

/** Everything of this takes at most so long, in ms; only what is broken does. */
export const patience = 60_000

export class Stand {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'nw-'))
  port = 0
  /** What nized finds in its environment besides. @type {Record<string, string>} */
  env = {}
  /** The page's words by language. @type {Record<string, string>} */
  words = {}
  /** What the pages complained about. @type {string[]} */
  complaints = []
  /** What is wrong with how they look. @type {string[]} */
  found = []

  async begin() {
    fs.chmodSync(this.dir, 0o700)
    await this.start()
    await this.ctl('config', 'set', 'limits.user.messages', '0') // a file of tests says more in five minutes than a person may
    await this.ctl('servers', 'add', 'toolbox', '--', 'nize-toolbox', '--notes', path.join(this.dir, 'notes.json'))
    for (const lang of languages) this.words[lang] = await (await fetch(`http://127.0.0.1:${this.port}/app/phrases/${lang}.json`)).text()
    this.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
  }

  /** Starts nized, on the same port as before. */
  async start() {
    const env = { ...process.env, ...this.env, HOME: this.dir, PATH: bin + path.delimiter + process.env.PATH }
    for (const name of ['OPENAI_API_KEY', 'NIZE_BIN', 'NIZE_SHOTS', 'NIZE_HISTORY']) delete env[name]
    this.daemon = spawn(path.join(bin, 'nized'), ['--data-dir', this.dir, '--socket', path.join(this.dir, 's'), '--listen', `127.0.0.1:${this.port}`], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    this.port = await new Promise((ready, failed) => {
      let said = ''
      this.daemon.once('exit', (code) => failed(new Error(`nized ended with ${code}: ${said}`)))
      this.daemon.stderr.on('data', (more) => {
        said += more
        const at = /"nized is ready".*?"listen":"127\.0\.0\.1:(\d+)"/.exec(said) ?? /nized is ready.*?listen=127\.0\.0\.1:(\d+)/.exec(said)
        if (at) ready(Number(at[1]))
      })
    })
    this.daemon.removeAllListeners('exit')
  }

  /**
   * Makes conversations of so many messages each while nized is down, and says their ids.
   * @param {number[]} counts
   */
  async history(...counts) {
    const admin = JSON.parse(await this.ctl('users', 'list', '--json'))[0]
    await this.end('SIGTERM')
    const { stdout } = await run(process.env.NIZE_HISTORY, [this.dir, admin.id, ...counts.map(String)])
    await this.start()
    return stdout.trim().split('\n')
  }

  /** Ends nized by a signal. @param {NodeJS.Signals} signal */
  async end(signal) {
    const gone = new Promise((done) => this.daemon.once('exit', done))
    this.daemon.kill(signal)
    await gone
  }

  /** What nizectl answers. @param {string[]} args */
  async ctl(...args) {
    return (await this.both(...args)).stdout
  }

  /** What nizectl answers, and what it says besides. @param {string[]} args */
  async both(...args) {
    const running = run(path.join(bin, 'nizectl'), ['--socket', path.join(this.dir, 's'), ...args], { env: { ...process.env, HOME: this.dir, PATH: bin + path.delimiter + process.env.PATH } })
    running.child.stdin?.end() // there is nothing to read
    return running
  }

  /**
   * A browser in which the first admin is signed in: by nizectl login the first
   * time, since nobody may sign in again and again.
   * @param {import('playwright-core').BrowserContextOptions} [options]
   * @param {string} [user] somebody else, by their id
   */
  async signedIn(options = {}, user = '') {
    const context = await this.browser.newContext({ storageState: user ? undefined : this.state, viewport: { width: 1200, height: 800 }, reducedMotion: 'reduce', ...options })
    context.setDefaultTimeout(patience)
    context.on('page', (page) => {
      page.on('pageerror', (err) => this.complaints.push(err.message))
      page.on('console', (m) => {
        // Requests that find nobody are said there too.
        if (m.type() === 'error' && !/ERR_|Failed to load resource/.test(m.text())) this.complaints.push(m.text())
      })
    })
    const page = await context.newPage()
    if (this.state && !user) {
      await page.goto(`http://127.0.0.1:${this.port}/app/`)
      await page.waitForSelector('#message')
      return page
    }
    await page.goto(/http\S+/.exec(await this.ctl('login', ...(user ? ['--user', user] : [])))[0])
    await page.locator('form:has([data-fragment]) button').click()
    await page.waitForURL('**/app/')
    await page.waitForSelector('#message')
    if (!user) this.state = await context.storageState()
    return page
  }

  /**
   * Keeps a picture of a state, and what axe finds in it: as it is, and in the other
   * theme and the other languages.
   * @param {import('playwright-core').Page} page
   * @param {string} name
   */
  async look(page, name) {
    await page.screenshot({ path: path.join(shots, name + '.png') })
    await this.examine(page, name)
    const own = await page.evaluate(() => document.documentElement.lang)
    const dark = await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches)
    for (const [i, lang] of languages.filter((l) => l !== own).entries()) {
      await page.emulateMedia({ colorScheme: dark === (i === 0) ? 'light' : 'dark' })
      await this.speak(page, lang)
      await this.examine(page, `${name} in ${lang}`)
    }
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
    await this.speak(page, own)
  }

  /**
   * Changes the language of the chat page, also where nized can't be reached; others stay
   * as they are. What the page would read again then is not asked for: a session has 300
   * requests a minute.
   * @param {import('playwright-core').Page} page
   * @param {string} lang
   */
  speak(page, lang) {
    return page.evaluate(async ([lang, words]) => {
      const main = /** @type {HTMLScriptElement|null} */ (document.querySelector('script[type=module][src$="/main.js"]'))
      if (!main || !document.getElementById('app')) return
      const { loadWords } = await import(main.src.replace(/main\.js$/, 'words.js'))
      const ask = window.fetch
      window.fetch = async (at, init) => {
        if (String(at).startsWith('/app/phrases/')) return new Response(words)
        const list = !init?.method && /\/v1\/(config|grants|credentials|tokens|sessions|servers|agents|models|providers|chat\/starters)\?/.test(String(at))
        return list ? new Promise(() => {}) : ask(at, init)
      }
      await loadWords(lang)
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
      window.fetch = ask
    }, [lang, this.words[lang]])
  }

  /** @param {import('playwright-core').Page} page @param {string} name */
  async examine(page, name) {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wide > 0) this.found.push(`${name}: it is ${wide} pixels wider than the window`)
    const tall = await page.evaluate(() => document.querySelector('#app .page') ? document.documentElement.scrollHeight - innerHeight : 0)
    if (tall > 0) this.found.push(`${name}: the whole page scrolls by ${tall} pixels`)
    this.found.push(...(await violations(page)).map((v) => `${name}: ${v}`))
  }

  /**
   * Makes a model of what this is told to say, which it says in pieces: each time
   * that more is called, one more. Told of something else to say, it says that from the
   * next time on that it is asked, for which the promise waits.
   * @param {string[]} pieces
   */
  async model(pieces) {
    /** @type {() => void} */
    let next = () => {}
    let asked = (/** @type {any} */ _) => {}
    const server = http.createServer((req, res) => {
      if (req.method !== 'POST') return res.setHeader('Content-Type', 'application/json').end('{"object":"list","data":[{"id":"parrot","object":"model"}]}')
      req.resume()
      res.setHeader('Content-Type', 'text/event-stream')
      const say = (delta, end) => res.write('data: ' + JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'parrot', choices: [{ index: 0, delta, finish_reason: end ?? null }] }) + '\n\n')
      let n = 0
      next = () => {
        if (n < pieces.length) say({ content: pieces[n++] })
        if (n === pieces.length) {
          say({}, 'stop')
          res.end('data: [DONE]\n\n')
        }
      }
      next()
      asked(null)
    })
    await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)))
    this.server = server
    await this.ctl('providers', 'add', 'parrots', '--no-key', '--base-url', `http://127.0.0.1:${server.address().port}/v1`)
    await this.ctl('models', 'set', 'parrot', 'parrots/parrot')
    await this.ctl('models', 'default', 'parrot')
    return {
      more: () => next(),
      says: (/** @type {string[]} */ others) => new Promise((done) => { pieces = others; asked = done }),
    }
  }

  /** A pretended Slack on which nized works, and what its Ann does and sees there. */
  async slack() {
    this.double = spawn(path.join(bin, 'nizectl'), ['--json', '--socket', path.join(this.dir, 's'), 'dev', 'slack', '--connect'], { env: { ...process.env, HOME: this.dir }, stdio: ['ignore', 'pipe', 'inherit'] })
    const { page } = await new Promise((ready, failed) => {
      let said = ''
      this.double.once('exit', (code) => failed(new Error(`dev slack ended with ${code}`)))
      this.double.stdout.on('data', (more) => {
        said += more
        try { ready(JSON.parse(said)) } catch {} // there is more to come
      })
    })
    this.double.removeAllListeners('exit')
    const [site, key] = page.split('/#')
    const ask = async (path, body) => {
      const answer = await fetch(site + path, { method: body ? 'POST' : 'GET', headers: { 'X-Key': key, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) })
      const said = await answer.json()
      if (said.error) throw new Error(said.error)
      return said
    }
    return {
      act: (deed) => ask('/dev/act', { user: 'U0ANN', ...deed }),
      /** Waits for a message of a thread. */
      until: async (channel, thread, ok) => {
        for (let since = -1; ;) {
          const now = await ask(`/dev/state?user=U0ANN&channel=${channel}&thread=${thread}&since=${since}`)
          const found = [...now.thread, ...now.messages].find(ok)
          if (found) return found
          since = now.revision
        }
      },
    }
  }

  /** Says what axe found in what was looked at, and what the pages complained about. */
  async close() {
    await this.shut()
    assert.deepEqual(this.found, [], 'axe')
    assert.deepEqual(this.complaints, [], 'complaints of the pages')
  }

  async shut() {
    this.server?.closeAllConnections()
    this.server?.close()
    await this.browser?.close()
    this.double?.kill('SIGINT')
    if (this.daemon?.exitCode === null) await this.end('SIGTERM')
    fs.rmSync(this.dir, { recursive: true, force: true })
  }
}

/**
 * What axe finds on a page. It runs beside the page's policy, not under it.
 * @param {import('playwright-core').Page} page
 */
async function violations(page) {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('Runtime.evaluate', { expression: axe })
  const { result, exceptionDetails } = await cdp.send('Runtime.evaluate', {
    expression: `axe.run(document, {runOnly: ['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']}).then(r => JSON.stringify(r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join('; '))))`,
    awaitPromise: true, returnByValue: true,
  })
  await cdp.detach()
  if (exceptionDetails) throw new Error(exceptionDetails.text)
  return JSON.parse(result.value)
}

/** @param {import('playwright-core').Page} page @param {string} text */
export async function ask(page, text) {
  await page.fill('#message', text)
  await page.press('#message', 'Enter')
}

/** A button of the card. @param {import('playwright-core').Page} page @param {string} name */
export const press = (page, name) => page.locator('.card').getByRole('button', { name, exact: true })

/** Chooses an entry of the card's menu. @param {import('playwright-core').Page} page @param {string} name */
export async function choose(page, name) {
  await press(page, 'More').first().click()
  await page.getByRole('menuitem', { name, exact: true }).click()
}

/** Waits until the buttons of the card count. @param {import('playwright-core').Page} page */
export const readable = (page) => page.waitForSelector('.card .run[aria-disabled="false"]')

/** A call that has run. */
export const outcome = '.settled[data-state="done"]'
