// Views of nize's own tools, and those of servers that are written for window.openai, in a
// real browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { heard, model, rested, show } from './obedient.mjs'
import { Stand } from './stand.mjs'

const stand = new Stand()
before(async () => {
  await stand.begin()
  await model(stand)
  await stand.ctl('servers', 'add', 'views', '--', process.execPath, new URL('viewserver.mjs', import.meta.url).pathname)
  await stand.ctl('servers', 'edit', 'views', '--approval', 'never') // no agent's counts for what a view asks
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--allow', 'native:*', '--approval', 'none', '--default')
})
after(() => stand.close())

test('views of native tools', async () => {
  const page = await stand.signedIn()
  const chart = await show(page, 'native:show-chart', { title: 'Signups </script><script>alert(1)</script>', unit: 'EUR', bars: [{ label: 'Mon', value: 12 }, { label: 'Tue', value: 31.5 }, { label: 'Wed', value: -4 }] })
  await chart.locator('rect').nth(2).waitFor()
  assert.equal(await chart.locator('h1').innerText(), 'Signups </script><script>alert(1)</script>')
  await page.waitForFunction(() => Number(document.querySelector('.view iframe').getAttribute('height')) < 160)
  // window.openai, over the messages of MCP Apps.
  const told = await chart.evaluate(() => /** @type {any} */ (window).openai.callTool('get-plan-usage', {}))
  assert.ok(told.structuredContent, JSON.stringify(told))
  const said = chart.evaluate(() => /** @type {any} */ (window).openai.sendFollowUpMessage({ prompt: 'And next week?' }).then(() => 'sent', (err) => err.message))
  await page.locator('.suggestion', { hasText: 'And next week?' }).getByRole('button', { name: 'Dismiss' }).click()
  assert.equal(await said, 'the person said no')
  // What a view tells the model goes with the next message, once; what it keeps is there
  // when it is opened again.
  await chart.evaluate(() => /** @type {any} */ (window).openai.setWidgetState({ week: 2 }))
  await chart.evaluate(() => new Promise((done) => {
    addEventListener('message', ({ data }) => data.id === 'told' && done(undefined))
    parent.postMessage({ jsonrpc: '2.0', id: 'told', method: 'ui/update-model-context', params: { content: [{ type: 'text', text: 'Week 2 is chosen.' }] } }, '*')
  }))
  const usage = await show(page, 'native:get-plan-usage')
  await usage.locator('h1', { hasText: 'Free' }).waitFor()
  const framed = heard[heard.length - 1].filter((m) => m.role === 'user' && m.content.includes('<tool_result>\nWeek 2 is chosen.\n</tool_result>'))
  assert.equal(framed.length, 1, JSON.stringify(heard[heard.length - 1]))
  await stand.look(page, 'views')
  await page.emulateMedia({ colorScheme: 'dark' })
  await chart.locator('body.dark').waitFor()
  await stand.look(page, 'views-dark')
  const before = page.viewportSize()
  await chart.evaluate(() => addEventListener('message', ({ data }) => { /** @type {any} */ (window).room = data.params?.containerDimensions ?? /** @type {any} */ (window).room }))
  await page.setViewportSize({ width: 600, height: 700 })
  await chart.waitForFunction(() => /** @type {any} */ (window).room?.width === innerWidth && /** @type {any} */ (window).room.maxHeight === 800, undefined, { polling: 100 }) // a frame out of sight draws nothing
  await page.setViewportSize(before)
  await page.reload()
  const again = page.frameLocator('.view iframe >> nth=0').locator('rect').nth(2)
  assert.deepEqual(await again.evaluate(() => /** @type {any} */ (window).openai.widgetState), { week: 2 })
  await again.evaluate(() => parent.postMessage({ jsonrpc: '2.0', method: 'x'.repeat(2e5), params: {} }, '*'))
  await again.evaluate(() => parent.postMessage({ jsonrpc: '2.0', id: 'wide', method: 'ping', params: { text: '字'.repeat(1e5) } }, '*'))
  await page.getByText('was stopped: it sent too much.').waitFor()
  await page.context().close()
})

test('the plan of a person, as people write it', async () => {
  await stand.ctl('plans', 'add', 'pro', '--name', 'Pro', '--messages', '1000')
  await stand.ctl('plans', 'assign', 'pro', 'user:*')
  const name = JSON.parse(await stand.ctl('users', 'list', '--json'))[0].name
  await stand.ctl('models', 'price', 'house/obedient', '--in', '0.01', '--out', '0.01') // what has no price is refused under a budget in money
  await stand.ctl('budgets', 'set', 'user:' + name, '--daily', '5usd')
  const page = await stand.signedIn({ locale: 'en-GB' })
  const usage = await show(page, 'native:get-plan-usage')
  await usage.locator('h1', { hasText: 'Pro' }).waitFor()
  assert.match(await usage.locator('#ends').innerText(), /^Your plan · until \d+ \w+ \d{4}$/)
  const rows = await usage.locator('.row').allInnerTexts()
  assert.match(rows[0], /^Messages this month\s+\d of 1,000$/)
  assert.ok(rows.some((row) => row.startsWith(name + ' · Money a day') && /US\$0\.00 of US\$5\.00$/.test(row)), JSON.stringify(rows))
  assert.doesNotMatch(await usage.locator('body').innerText(), /user:|team:|\b01[0-9A-Z]{24}\b|000000|usd/)
  await stand.look(page, 'plan')
  await page.context().close()
  const other = await stand.signedIn({ locale: 'zh-TW' })
  const again = await show(other, 'native:get-plan-usage')
  await again.locator('.row', { hasText: '本月訊息' }).waitFor()
  await other.context().close()
})

test('window.openai of a server', async () => {
  const page = await stand.signedIn()
  const app = await show(page, 'views:app')
  await app.locator('body[data-ready]').waitFor({ state: 'attached' })
  assert.equal(await app.evaluate(() => typeof window.openai), 'undefined')

  const view = await show(page, 'views:sky', { q: 1 })
  await view.waitForFunction(() => window.news.length >= 3) // the input, the result, the context
  /** @param {number} height */
  const high = (height) => page.waitForFunction((height) => [...document.querySelectorAll('.view iframe')].some((f) => f.getAttribute('height') === String(height)), height)
  await high(444) // which its script says before nize listens
  const found = await view.evaluate(() => Object.fromEntries(Object.entries(window.found).map(([name, value]) => [name, typeof value === 'function' ? 'a function' : value])))
  assert.deepEqual(found, {
    theme: 'light',
    toolInput: { q: 1 },
    toolOutput: { given: { q: 1 } },
    toolResponseMetadata: { kept: 'from the model' },
    locale: 'en-US',
    maxHeight: 800,
    displayMode: 'inline',
    safeArea: { insets: { top: 0, right: 0, bottom: 0, left: 0 } },
    userAgent: { device: { type: 'desktop' }, capabilities: { hover: true, touch: false } },
    widgetState: null,
    setWidgetState: 'a function', callTool: 'a function', sendFollowUpMessage: 'a function', openExternal: 'a function',
    requestDisplayMode: 'a function', notifyIntrinsicHeight: 'a function',
  })
  const background = () => view.evaluate(() => getComputedStyle(document.body).backgroundColor)
  assert.equal(await background(), 'rgb(255, 255, 255)')

  /** What comes of it, or why nothing does. @param {string} name @param {any[]} args */
  const get = (name, ...args) => view.evaluate(([name, args]) => window.openai[name](...args).then((/** @type {any} */ yes) => yes, (/** @type {Error} */ err) => err.message), [name, args])
  /** The same once somebody presses in the view. @param {string} name @param {any} arg */
  const pressed = async (name, arg) => {
    await rested(page)
    await view.evaluate(([name, arg]) => {
      window.got = undefined
      window.press = () => window.openai[name](arg)
    }, [name, arg])
    await view.locator('button').click()
  }
  const got = () => view.waitForFunction(() => window.got !== undefined && [window.got], undefined, { polling: 100 }).then((h) => h.jsonValue()).then(([got]) => got)

  const called = await get('callTool', 'sky', { q: 2 })
  assert.deepEqual([called.structuredContent, called._meta], [{ given: { q: 2 } }, { kept: 'from the model' }])
  assert.equal(await get('callTool', 'nothing'), 'the server has no such tool for views')

  const said = get('sendFollowUpMessage', { prompt: 'More of it.' })
  await page.locator('.suggestion', { hasText: 'views suggests: More of it.' }).getByRole('button', { name: 'Send' }).click()
  assert.deepEqual(await said, {})
  await page.locator('.said', { hasText: 'More of it.' }).waitFor()

  await rested(page)
  assert.equal(await get('openExternal', { href: 'https://a.example/' }), 'this needs a person who presses something in the view')
  await pressed('openExternal', { href: 'https://a.example/x' })
  const dialog = page.locator('dialog', { hasText: 'https://a.example/x' })
  await dialog.getByRole('button', { name: 'Back' }).click()
  assert.equal(await got(), 'the person said no')

  await pressed('requestDisplayMode', { mode: 'fullscreen' })
  await page.locator('.view.full').waitFor()
  assert.deepEqual(await got(), { mode: 'fullscreen' })
  assert.equal(await view.evaluate(() => window.openai.displayMode), 'fullscreen')
  assert.deepEqual(await get('requestDisplayMode', { mode: 'inline' }), { mode: 'inline' })
  assert.equal(await view.evaluate(() => window.openai.displayMode), 'inline')

  for (const [asked, height] of [[333.2, 334], [5000, 800], [1, 40]]) {
    await view.evaluate((asked) => window.openai.notifyIntrinsicHeight(asked), asked)
    await high(height)
  }

  assert.match(await get('setWidgetState', 'x'.repeat(8191)), /8 KiB/)
  assert.equal(await get('setWidgetState', { page: 2 }), undefined)
  assert.deepEqual(await view.evaluate(() => window.openai.widgetState), { page: 2 })

  await view.evaluate(() => { window.news = [] })
  await page.emulateMedia({ colorScheme: 'dark' })
  await view.waitForFunction(() => window.news.some((n) => n.theme === 'dark') && window.openai.theme === 'dark', undefined, { polling: 100 })
  assert.equal(await background(), 'rgb(17, 24, 39)')
  await page.reload()
  const place = page.locator('.view-place').nth(1)
  await place.waitFor({ state: 'attached' })
  await place.scrollIntoViewIfNeeded()
  const again = await (await place.locator('iframe').elementHandle())?.contentFrame()
  await again?.locator('button').waitFor()
  assert.deepEqual(await again?.evaluate(() => [window.found.widgetState, window.found.theme]), [{ page: 2 }, 'dark'])
  await page.context().close()
})
