// Calls that were never made, in a real browser: they have failed, with their sentence,
// while somebody watches and after the page was loaded again.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { model } from './obedient.mjs'
import { Stand, ask, press, readable } from './stand.mjs'

const stand = new Stand()
before(async () => {
  await stand.begin()
  await model(stand)
})
after(() => stand.close())

/** The lines about tools, without how long they took. @param {import('playwright-core').Page} page */
const lines = (page) => page.locator('.log .tool-line').evaluateAll((all) => all.map((line) => ['.tool-name', '.tool-state', '.tool-brief'].map((part) => line.querySelector(part)?.textContent).join(' | ')))

const unmade = `toolbox:note_add {"titel":"x"}
toolbox:nothing {"a":1}
raw execute_tool {"tool_id":"toolbox:note_add"
raw made_up {}`

const want = [
  /^execute_tool \| Failed \| The arguments were not valid JSON/,
  /^made_up \| Failed \| There is no function "made_up"/,
  /^toolbox:note_add \| Failed \| arguments don't fit toolbox:note_add: .*did you mean \/title\?/,
  /^toolbox:nothing \| Failed \| tool "toolbox:nothing" not found/,
]

test('calls that were never made have failed, also after a reload', async () => {
  const page = await stand.signedIn()
  await ask(page, unmade)
  await page.getByText('Said.').waitFor()
  await page.waitForSelector('[role=log][aria-busy=false]')
  for (const when of ['live', 'loaded again']) {
    const shown = (await lines(page)).toSorted() // they end at the same time
    assert.equal(shown.length, want.length, `${when}: ${shown}`)
    want.forEach((line, i) => assert.match(shown[i], line, when))
    assert.equal(await page.locator('.log .spinner').count(), 0, when)
    assert.equal(await page.locator('.log .tool-line[aria-expanded]').count(), 0, when + ': there is nothing to open')
    await stand.look(page, 'unmade-' + when.replace(' ', '-'))
    await page.reload()
    await page.getByText('Said.').waitFor()
  }
  await page.context().close()
})

test('beside a card that waits, nothing runs', async () => {
  const page = await stand.signedIn()
  await ask(page, `toolbox:note_add {"title":"a","text":"b"}\n${unmade}`)
  await readable(page)
  await page.reload()
  await readable(page)
  assert.equal(await page.locator('.log .tool').count(), 4)
  assert.equal(await page.locator('.log .spinner').count(), 0)
  assert.equal(await page.locator('.log .tool.failed').count(), 4, 'they have failed, whatever waits beside them')
  await stand.look(page, 'unmade-beside-a-card')
  await press(page, 'Run').click()
  await page.getByText('Said.').waitFor()
  await page.reload()
  await page.getByText('Said.').waitFor()
  assert.equal(await page.locator('.log .spinner').count(), 0)
  assert.equal(await page.locator('.log .tool.failed').count(), 4)
  await page.context().close()
})
