// What can be done from the empty page and about messages: suggestions, copy, a branch,
// going on after a stop, going on here with a conversation of the terminal.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand, ask } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

const idle = (page) => page.waitForSelector('[role=log][aria-busy=false] .answer .acts.last')
const texts = (page) => page.locator('.bubble .prose').allInnerTexts()

test('the empty page: what one could ask for, and that there is no model', async () => {
  const page = await stand.signedIn()
  const starters = page.locator('.starters button')
  await starters.nth(2).waitFor()
  assert.equal(await starters.count(), 3)
  await page.getByText('No language model is set up').waitFor()
  await stand.look(page, 'begin')
  const title = await starters.first().locator('strong').innerText()
  await starters.first().click()
  await page.waitForFunction((title) => document.activeElement?.id === 'message' && document.querySelector('textarea').value === title, title) // it is written, not sent
  await page.context().close()
})

test('a message is edited and run again in a branch, and the old one stays', async () => {
  const page = await stand.signedIn()
  await ask(page, 'What can you do?')
  await idle(page)
  await ask(page, 'Tell me about Oslo')
  await page.locator('.bubble').nth(1).waitFor()
  await idle(page)
  const old = page.url()
  await page.reload()
  await idle(page)
  await page.locator('.said').nth(1).hover()
  await page.locator('.said').nth(1).getByRole('button', { name: 'Edit and run again' }).click()
  await stand.look(page, 'rewrite')
  await page.getByLabel('Your message').fill('Tell me about Bergen')
  await page.getByRole('button', { name: 'Run again', exact: true }).click()
  await page.waitForURL((url) => url.href !== old && url.pathname.startsWith('/app/c/'))
  await page.getByText('Tell me about Bergen').first().waitFor()
  await idle(page)
  assert.deepEqual(await texts(page), ['What can you do?', 'Tell me about Bergen'])
  await page.goto(old)
  await idle(page)
  assert.deepEqual(await texts(page), ['What can you do?', 'Tell me about Oslo'])
  await page.getByRole('button', { name: 'Repeat in a new conversation' }).last().click()
  await page.waitForURL((url) => url.href !== old)
  await idle(page)
  assert.deepEqual(await texts(page), ['What can you do?', 'Tell me about Oslo'])
  await page.context().close()
})

test('what can’t be read, or seen by the model, is said before it is sent', async () => {
  const page = await stand.signedIn()
  const add = (name, mimeType, buffer) => page.setInputFiles('input[type=file]', { name, mimeType, buffer })
  await add('program.bin', 'application/octet-stream', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 0, 0, 0]))
  await page.locator('.composer .files .problem').getByText('program.bin').waitFor()
  assert.equal(await page.locator('.said').count(), 0)
  await add('notes.txt', 'text/plain', Buffer.from('hello'))
  await page.locator('.composer .files li').nth(1).waitFor()
  await stand.look(page, 'unreadable')
  assert.equal(await page.locator('.composer .files li').nth(1).locator('.problem').count(), 0)
  await page.context().close()
})

test('a conversation of the terminal goes on here, with what was said', async () => {
  await stand.ctl('chat', '-m', 'What can you do?').catch(() => {}) // how it ends is the model's
  const page = await stand.signedIn()
  await page.locator('.threads li a', { hasText: 'terminal' }).first().click()
  await page.getByRole('button', { name: 'Continue here' }).waitFor()
  await stand.look(page, 'elsewhere')
  const old = page.url()
  await page.getByRole('button', { name: 'Continue here' }).click()
  await page.waitForURL((url) => url.href !== old)
  await page.waitForSelector('#message')
  assert.deepEqual(await texts(page), ['What can you do?'])
  await ask(page, 'And in Oslo?')
  await page.locator('.bubble').nth(1).waitFor()
  await idle(page)
  await page.context().close()
})

test('an answer that was stopped can go on', async () => {
  const model = await stand.model(['It begins', ' and would go on', ' for long'])
  const page = await stand.signedIn()
  await ask(page, 'A long story')
  await page.locator('.answer').getByText('It begins').waitFor()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  const goOn = page.getByRole('button', { name: 'Continue', exact: true })
  await goOn.waitFor()
  await page.reload()
  await goOn.waitFor() // the store knows it as well
  await stand.look(page, 'stopped')
  const asked = model.says(['And so it went.'])
  await goOn.click()
  await asked
  await page.locator('.answer').getByText('And so it went.').waitFor()
  assert.deepEqual(await texts(page), ['A long story', 'Go on where you stopped.'])
  assert.equal(await goOn.count(), 0)
  await page.context().close()
})
