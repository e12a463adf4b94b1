// Native tools on the chat page: the picture that one returns, and a message that a
// plan has no room for.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { Stand, ask, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
const point = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='
before(async () => {
  const dir = path.join(stand.dir, 'extensions', 'draw')
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'run'), `#!/bin/sh
cat >/dev/null
printf '%s' '{"content":[{"type":"text","text":"drawn"},{"type":"image","mimeType":"image/png","data":"${point}"}]}'
`, { mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'extension.json'), '{"name": "draw", "description": "Draws a picture of the sea.", "inputSchema": {"type": "object"}, "command": "./run"}', { mode: 0o600 })
  const weather = path.join(stand.dir, 'extensions', 'weather')
  fs.mkdirSync(weather, { recursive: true, mode: 0o700 })
  const told = { city: 'Tokyo <b>', url: 'https://weather.example/tokyo', degrees: 21.5, days: [{ day: 'Monday', rain: 12 }, { day: 'Tuesday \u0007', rain: 0 }] }
  fs.writeFileSync(path.join(weather, 'told.json'), JSON.stringify({ content: [{ type: 'text', text: JSON.stringify(told) }], structuredContent: told }), { mode: 0o600 })
  fs.writeFileSync(path.join(weather, 'run'), '#!/bin/sh\nexec cat told.json\n', { mode: 0o700 })
  fs.writeFileSync(path.join(weather, 'look.json'), JSON.stringify({
    title: 'Weather in {{.city}}', link: '{{.url}}', text: 'as it is\nright now', fields: [{ name: 'Temperature', value: '{{number 1 .degrees}} °C' }],
    table: { rows: 'days', columns: [{ name: 'Day', value: '{{.day}}' }, { name: 'Rain', value: '{{.rain}} mm' }] },
  }), { mode: 0o600 })
  fs.writeFileSync(path.join(weather, 'extension.json'), '{"name": "weather", "title": "Weather", "description": "The weather of a city.", "inputSchema": {"type": "object"}, "renderer": "look.json", "command": "./run"}', { mode: 0o600 })
  await stand.begin()
  await stand.ctl('agents', 'set', 'artist', '--allow', 'native:draw', '--allow', 'native:weather', '--default')
})
after(() => stand.close())

test('the picture of a native tool', async () => {
  const page = await stand.signedIn()
  await ask(page, 'Draw a picture of the sea')
  await readable(page)
  await press(page, 'Run').click()
  await page.waitForSelector(outcome)
  const picture = page.locator('.images img')
  await picture.waitFor({ state: 'attached' })
  assert.deepEqual(await picture.evaluate((img) => [img.complete && img.naturalWidth, img.alt]), [1, 'An image that the tool returned'])
  await stand.look(page, 'native-picture')
  await page.context().close()
})

test('a result as the renderer of its tool shows it', async () => {
  const page = await stand.signedIn()
  await ask(page, 'What is the weather of the city?')
  await readable(page)
  await press(page, 'Run').click()
  await page.waitForSelector(outcome)
  const shown = page.locator('.rendered')
  const looks = async () => {
    await shown.waitFor()
    assert.deepEqual(await shown.locator('a').evaluate((a) => [a.textContent, a.getAttribute('href'), a.getAttribute('rel')]), ['Weather in Tokyo <b>', 'https://weather.example/tokyo', 'noopener noreferrer nofollow'])
    assert.equal(await shown.locator('dl').innerText(), 'Temperature\n21.5 °C')
    assert.deepEqual(await shown.locator('tr').allInnerTexts(), ['Day\tRain', 'Monday\t12 mm', 'Tuesday \\u0007\t0 mm'])
    const [line, result] = await page.evaluate(() => ['.settled', '.rendered'].map((one) => document.querySelector(one)?.getBoundingClientRect().top ?? 0))
    assert.ok(line < result, 'it stands above the line of its call')
  }
  await looks()
  await stand.look(page, 'rendered')
  await page.reload()
  await page.waitForSelector(outcome)
  await looks()
  await page.context().close()
})

test('a plan that is used up', async () => {
  await stand.ctl('plans', 'add', 'small', '--name', 'Small', '--messages', '1')
  await stand.ctl('plans', 'assign', 'small', 'user:*')
  const page = await stand.signedIn()
  await ask(page, 'hello')
  await page.locator('.answer').waitFor()
  await ask(page, 'hello again')
  await page.getByText(/this message was not taken: all 1 messages a month of the plan Small are used up\. It resets on /i).waitFor()
  await page.getByRole('button', { name: 'Send again' }).waitFor()
  await stand.look(page, 'plan-used-up')
  await page.context().close()
})
