// Views of nize's own tools in a real browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { heard, model, show } from './obedient.mjs'
import { Stand } from './stand.mjs'

const stand = new Stand()
before(async () => {
  await stand.begin()
  await model(stand)
  await stand.ctl('agents', 'set', 'all', '--allow', '*', '--allow', 'native:*', '--default')
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
  await chart.waitForFunction(() => /** @type {any} */ (window).room?.width === innerWidth && /** @type {any} */ (window).room.maxHeight === 800)
  await page.setViewportSize(before)
  await page.reload()
  const again = page.frameLocator('.view iframe >> nth=0').locator('rect').nth(2)
  assert.deepEqual(await again.evaluate(() => /** @type {any} */ (window).openai.widgetState), { week: 2 })
  await again.evaluate(() => parent.postMessage({ jsonrpc: '2.0', method: 'x'.repeat(2e5), params: {} }, '*'))
  await again.evaluate(() => parent.postMessage({ jsonrpc: '2.0', id: 'wide', method: 'ping', params: { text: '字'.repeat(1e5) } }, '*'))
  await page.getByText('was stopped: it sent too much.').waitFor()
  await page.context().close()
})
