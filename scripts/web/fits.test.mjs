// Texts in their boxes: with words half as long again as English ones, no text leaves its
// box in any state of the page, on a desk and at 320 pixels; in Chinese nothing of nize's
// own stays English.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, ask, choose, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** Texts with longer words, as German has them. @param {string} words */
const longer = (words) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(words)).map(([key, text]) => [key, text.replace(/(?<![{\w])[A-Za-z]{4,}(?![}\w])/g, (w) => w + w.slice(-Math.ceil(w.length / 2)))])))

/** The elements whose text is wider than they are, unless they scroll or are cut on purpose. @param {import('playwright-core').Page} page */
const tooWide = (page) => page.evaluate(() => [...document.querySelectorAll('#app *')].filter((e) => {
  if (!e.clientWidth || e.scrollWidth <= e.clientWidth + 1 || e.closest('.visually-hidden, svg')) return false
  // These scroll up and down only.
  const parts = '.log, .approvals, .place, .sidebar, .threads, .empty, .begin, .choices-inner, main, dialog'
  if (e.matches(parts)) return true
  if (![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent?.trim())) return false
  for (let at = /** @type {Element|null} */ (e); at; at = at.parentElement) {
    const { overflowX, textOverflow } = getComputedStyle(at)
    if (textOverflow === 'ellipsis' || ['auto', 'scroll'].includes(overflowX) && !at.matches(parts)) return false
  }
  return true
}).map((e) => `${e.tagName.toLowerCase()}.${e.className}: ${e.textContent?.trim().slice(0, 60)}`))

/** What is data here: names of tools, servers, keys and products, and what was written. */
const data = /^(nize|root|toolbox|(· )?Toolbox|text|title|tags|JSON|CSV|Enter|Shift\+Enter|https:\/\/|Token|Chrome, Linux|OpenAI|Anthropic|Google Gemini|OpenRouter|DeepSeek|Groq|Azure OpenAI|Ollama|audit|access-control|response-truncation|nized \S+|toolbox:\w+|add a note: milk|milk|Add a note|offline)$/

/** English words in what the page shows, without what the model and tools say. @param {import('playwright-core').Page} page */
const english = (page) => page.evaluate(() => {
  /** @type {string[]} */
  const found = []
  const look = (/** @type {string} */ text) => { if (/[A-Za-z]{3,}/.test(text) && !/[\u4e00-\u9fff]/.test(text)) found.push(text.trim()) }
  const not = 'script, style, svg, code, pre, bdi, [lang=en], .markdown, .server-tools, .starters, .thread, .bubble'
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let n = walker.nextNode(); n; n = walker.nextNode()) if (!n.parentElement?.closest(not)) look(n.textContent ?? '')
  for (const e of document.querySelectorAll('[aria-label], [title], [placeholder]')) {
    if (!e.closest('.starters, .thread')) for (const name of ['aria-label', 'title', 'placeholder']) look(e.getAttribute(name) ?? '')
  }
  return [...new Set(found)]
})

/** @type {{name: string, at: string, ready: string, act?: (page: import('playwright-core').Page) => Promise<void>}[]} */
const states = [
  { name: 'empty', at: '', ready: '.starters' },
  { name: 'choices', at: '', ready: '.starters', act: async (page) => { await page.locator('.choices summary').click(); await page.waitForSelector('.choices fieldset') } },
  { name: 'approvals', at: 'approvals', ready: '.nothing' },
  { name: 'usage', at: 'usage', ready: '.totals' },
  { name: 'settings', at: 'settings', ready: '#models' },
  { name: 'servers', at: 'servers', ready: '.server-head', act: async (page) => { await page.locator('.server-head').first().click(); await page.waitForSelector('.server-tools') } },
  { name: 'keys', at: '', ready: '.starters', act: async (page) => { await page.locator('body').press('?'); await page.waitForSelector('dialog[open]') } },
]

for (const [device, viewport] of Object.entries({ desk: { width: 1280, height: 800 }, narrow: { width: 320, height: 700 } })) {
  test(`words of every length fit: ${device}`, async () => {
    const page = await stand.signedIn({ viewport })
    const plain = stand.words
    const seen = async (/** @type {string} */ name) => {
      stand.words = { ...plain, en: longer(plain.en) }
      await stand.speak(page, 'en')
      assert.deepEqual(await tooWide(page), [], name)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      assert.ok(wide <= 0, `${name} is ${wide} pixels wider than the window`)
      stand.words = plain
      await stand.speak(page, 'en')
    }
    for (const state of states) {
      await page.goto(`http://127.0.0.1:${stand.port}/app/${state.at}`)
      await page.waitForSelector(state.ready)
      await state.act?.(page)
      await seen(state.name)
    }
    await page.goto(`http://127.0.0.1:${stand.port}/app/`)
    await ask(page, 'add a note: milk')
    await readable(page)
    await seen('card')
    for (const [entry, panel] of [['Decline with a reason', '.panel textarea'], ['Never', '.panel select']]) {
      await choose(page, entry)
      await page.waitForSelector(panel)
      await seen(entry)
      await page.keyboard.press('Escape')
    }
    await press(page, 'More').click()
    await seen('menu')
    await page.keyboard.press('Escape')
    await press(page, 'Edit').click()
    await page.waitForSelector('.edit')
    await seen('edit')
    await page.getByRole('button', { name: 'Back', exact: true }).click()
    await press(page, 'Run').click()
    await page.waitForSelector(outcome)
    await seen('done')
    await page.context().close()
  })
}

test('in Chinese nothing of nize stays English', async () => {
  await stand.ctl('config', 'set', 'language', 'zh-Hans')
  const page = await stand.signedIn({ locale: 'zh-CN' })
  const only = async (/** @type {string} */ name) => assert.deepEqual((await english(page)).filter((text) => !data.test(text)), [], name)
  for (const state of states) {
    await page.goto(`http://127.0.0.1:${stand.port}/app/${state.at}`)
    await page.waitForSelector(state.ready)
    await state.act?.(page)
    await only(state.name)
  }
  await page.goto(`http://127.0.0.1:${stand.port}/app/`)
  await ask(page, 'add a note: milk')
  await readable(page)
  await page.locator('.menu-button').click()
  await only('card')
  await page.keyboard.press('Escape')
  await page.locator('.card .run').click()
  await page.waitForSelector(outcome)
  await page.locator('.settled .tool-line').click()
  await page.waitForSelector('.call-details .part')
  await only('done')
  await page.context().close()
  await stand.ctl('config', 'unset', 'language')
})
