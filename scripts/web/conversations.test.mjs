// Conversations, the composer and long histories in a real browser.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { Conversation, Gap } from './page/conversation.js'
import { Stand, ask, outcome, press, readable } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

/** A picture that is one. */
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')

/** @param {import('playwright-core').Page} page @param {string} title */
const item = (page, title) => page.locator('.threads li').filter({ hasText: title })

/** Waits until nothing works in the conversation. @param {import('playwright-core').Page} page */
const idle = (page) => page.waitForSelector('[role=log][aria-busy=false] .answer')

test('the page does with each event what it tells', () => {
  const c = new Conversation('T')
  const ids = () => c.messages.map((m) => m.id).join(' ')
  c.apply('thread', { thread: {}, from: 0, messages: [{ id: 'a', kind: 'person', text: 'A' }, { id: 'b', kind: 'text', text: 'B' }] })
  c.apply('append', { id: 'b', at: 1, text: '😀' })
  c.apply('append', { id: 'b', at: 3, text: '!' })
  assert.equal(c.messages[1].text, 'B😀!')
  assert.throws(() => c.apply('append', { id: 'b', at: 3, text: '?' }), Gap)
  assert.throws(() => c.apply('append', { id: 'c', at: 0, text: '?' }), Gap)
  c.apply('message', { id: 'd', kind: 'person', text: 'D' })
  c.apply('gone', { id: 'a' })
  assert.equal(ids(), 'b d')
  c.apply('gone', { id: 'a' })
  c.apply('state', { state: 'working' })
  c.apply('title', { id: 'T', title: 'of it' })
  c.apply('waiting', { ids: ['x'] })
  assert.deepEqual([ids(), c.state, c.thread.title, c.waiting], ['b d', 'working', 'of it', ['x']])
})

for (const [device, viewport] of Object.entries({ desk: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } })) {
  test(`a conversation longer than the window scrolls, the page does not: ${device}`, async () => {
    const [id] = await stand.history(60)
    const page = await stand.signedIn({ viewport })
    await page.goto(`http://127.0.0.1:${stand.port}/app/c/${id}`)
    await page.locator('.answer').last().waitFor()
    const log = page.getByRole('log')
    assert.ok(await log.evaluate((e) => e.scrollHeight > 3 * e.clientHeight), 'it is shorter than three screens')
    /** Where the parts of the page stand, and that the window shows all of them. @param {string} after */
    const still = async (after) => {
      // The scrolling that an input leads to is over once two frames show the same.
      await page.evaluate(() => new Promise((done) => {
        let last = NaN
        const frame = () => {
          const now = scrollY + (document.querySelector('[role=log]')?.scrollTop ?? 0)
          if (now === last) return done(undefined)
          last = now
          requestAnimationFrame(() => requestAnimationFrame(frame))
        }
        frame()
      }))
      assert.deepEqual(await page.evaluate(() => {
        const field = document.querySelector('#message').getBoundingClientRect()
        const side = document.querySelector(innerWidth > 768 ? '.sidebar' : '.top').getBoundingClientRect()
        return [scrollY, document.documentElement.scrollHeight - innerHeight, side.top, field.top > 0 && field.bottom <= innerHeight]
      }), [0, 0, 0, true], after)
    }
    const wheel = async (/** @type {number} */ by) => {
      await page.mouse.move(viewport.width * 0.6, viewport.height / 2)
      await page.mouse.wheel(0, by)
    }
    const to = (/** @type {'end'|'beginning'} */ where) => page.waitForFunction((where) => {
      const e = document.querySelector('[role=log]')
      return where === 'end' ? e.scrollHeight - e.scrollTop - e.clientHeight < 2 : e.scrollTop < 2
    }, where)
    await to('end')
    await still('when it opens')
    await wheel(400)
    await still('wheel at its end')
    await wheel(-600)
    await page.getByRole('button', { name: 'Latest' }).waitFor()
    await still('wheel up')
    for (const focus of [() => log.focus(), () => page.evaluate(() => { if (document.activeElement instanceof HTMLElement) document.activeElement.blur() })]) {
      await focus()
      await page.keyboard.press('End')
      await still('End')
      await page.keyboard.press('Home')
      await still('Home')
    }
    await log.focus()
    await page.keyboard.press('End')
    await to('end')
    await page.locator('.said').last().evaluate((e) => e.scrollIntoView({ block: 'start' }))
    await still('scrolled into view')
    await stand.look(page, 'long-' + device)
    await page.context().close()
  })
}

test('renamed, searched, forgotten', async () => {
  const page = await stand.signedIn()
  for (const text of ['What can you do?', 'Tell me about the Übung']) {
    await page.locator('.new').click()
    await ask(page, text)
    await idle(page)
    await item(page, text).waitFor()
  }
  const li = item(page, 'Tell me about')
  await li.getByRole('button', { name: 'More about' }).click()
  await li.getByRole('button', { name: 'Rename' }).click()
  await stand.look(page, 'rename')
  await page.getByLabel('Title').fill('Übung macht den Meister')
  await page.getByLabel('Title').press('Enter')
  await item(page, 'Übung macht').waitFor()
  assert.match(await page.title(), /^Übung macht/)

  await page.locator('body').press('s')
  await page.getByLabel('Search conversations').pressSequentially('übung MEISTER')
  await item(page, 'What can you do').waitFor({ state: 'detached' })
  assert.equal(await page.locator('.threads li').count(), 1)
  await page.getByLabel('Search conversations').fill('what CAN you do') // as its title, and it was said
  await item(page, 'What can you do').waitFor()
  await page.getByLabel('Search conversations').fill('the tell übung')
  await item(page, 'Übung macht').locator('.found mark', { hasText: 'Übung' }).waitFor()
  await stand.look(page, 'search-found')
  await page.getByLabel('Search conversations').fill('nothing like it')
  await page.getByText('Nothing found.').waitFor()
  await stand.look(page, 'search-nothing')
  await page.getByLabel('Search conversations').fill('')
  await item(page, 'What can you do').waitFor()

  const other = await page.context().newPage() // has it open, too
  await other.goto(page.url())
  await other.locator('.answer').first().waitFor()
  await page.bringToFront()
  await item(page, 'Übung macht').getByRole('button', { name: 'More about' }).click()
  await page.getByRole('button', { name: 'Forget…' }).click()
  await page.locator('dialog[open]').getByText('erased for everybody').waitFor()
  await stand.look(page, 'forget')
  await page.getByRole('button', { name: 'Back' }).click()
  await item(page, 'Übung macht').getByRole('button', { name: 'More about' }).click()
  await page.getByRole('button', { name: 'Forget…' }).click()
  await page.getByRole('button', { name: 'Erase it' }).click()
  await item(page, 'Übung macht').waitFor({ state: 'detached' })
  assert.equal(new URL(page.url()).pathname, '/app/')
  await other.getByText('There is no such conversation.').waitFor()
  await page.context().close()
})

test('files by button, drop and paste; what is too much is said before', async () => {
  const page = await stand.signedIn()
  await page.setInputFiles('input[type=file]', [{ name: 'pixel.png', mimeType: 'image/png', buffer: png }, { name: 'program.bin', mimeType: '', buffer: Buffer.from([0, 1, 2, 0]) }])
  const bring = (kind, name, target) => page.evaluate(([kind, name, target]) => {
    const data = new DataTransfer()
    data.items.add(new File(['the words of ' + name], name, { type: 'text/plain' }))
    const at = document.querySelector(target)
    if (kind === 'paste') return at.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
    at.dispatchEvent(new DragEvent('dragover', { dataTransfer: data, bubbles: true, cancelable: true }))
    at.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
  }, [kind, name, target])
  await bring('drop', 'dropped.txt', 'main')
  await bring('paste', 'pasted.txt', '#message')
  await page.locator('.composer .files li').nth(3).waitFor()
  const large = path.join(stand.dir, 'large.bin')
  fs.writeFileSync(large, Buffer.alloc((20 << 20) + 1, 65))
  await page.setInputFiles('input[type=file]', large)
  await page.getByText('large.bin is too large').waitFor()
  await page.fill('#message', 'Look at these')
  await stand.look(page, 'files-chosen')
  await page.press('#message', 'Enter')
  assert.equal(await page.locator('.said').count(), 0, 'sent what is too large')
  await page.getByRole('button', { name: 'Leave out large.bin' }).click()
  await page.press('#message', 'Enter')
  await page.locator('.said .files img').waitFor()
  await idle(page)
  assert.equal(await page.locator('.said').count(), 1)
  assert.equal(await page.locator('.said .files li').count(), 4)
  await page.locator('.said .problem').getByText('program.bin').waitFor()
  await stand.look(page, 'files-sent')
  await page.reload()
  await page.locator('.said .files img').waitFor()
  assert.equal(await page.locator('.composer .files').count(), 0)

  // Files alone, and what is too much.
  await page.setInputFiles('input[type=file]', Array.from({ length: 11 }, (_, n) => ({ name: `${n}.txt`, mimeType: 'text/plain', buffer: Buffer.from('x' + n) })))
  await page.getByText('At most 10 files go with one message.').waitFor()
  await page.getByRole('button', { name: 'Leave out' }).first().click()
  await page.getByText('At most 10 files').waitFor({ state: 'detached' })
  for (let n = 0; n < 10; n++) await page.getByRole('button', { name: 'Leave out' }).first().click()
  await page.setInputFiles('input[type=file]', { name: 'alone.txt', mimeType: 'text/plain', buffer: Buffer.from('alone') })
  await page.press('#message', 'Enter')
  await page.locator('.said').nth(1).getByText('alone.txt').waitFor()
  assert.doesNotMatch(await page.locator('.said').nth(1).innerText(), /\(file\)/)
  await idle(page)
  await page.setInputFiles('input[type=file]', { name: 'later.png', mimeType: 'image/png', buffer: png })
  await page.fill('#message', 'And this')
  await page.press('#message', 'Enter')
  await page.locator('.said').nth(2).locator('.files img').waitFor() // the stream goes on meanwhile
  await idle(page)
  await page.fill('#message', 'ü'.repeat(33_000))
  await page.getByText('at most 64 KiB').waitFor()
  await page.context().close()
})

test('agent, model, servers and streaming of a conversation', async () => {
  await stand.ctl('agents', 'set', 'brief', '--system-prompt', 'Be brief.')
  await stand.ctl('servers', 'add', 'spare', '--', 'nize-toolbox', '--notes', path.join(stand.dir, 'spare.json'))
  const page = await stand.signedIn()
  await page.locator('.choices summary').click()
  await page.locator('.choices .server').nth(1).waitFor()
  await page.locator('.choices').getByText('ready').first().waitFor()
  await stand.look(page, 'choices')
  await page.getByRole('combobox', { name: 'Agent' }).selectOption('brief')
  await page.getByRole('checkbox', { name: /spare/ }).click()
  await page.locator('.choices summary').getByText('toolbox').waitFor()
  await ask(page, 'What time is it in Oslo?')
  await readable(page)
  await page.locator('.choices summary').getByText('Agent brief').waitFor()
  const id = new URL(page.url()).pathname.split('/').pop()
  const stored = async () => (await (await page.request.get(`http://127.0.0.1:${stand.port}/app/v1/chat/threads/${id}`)).json()).thread
  assert.deepEqual((await stored()).servers, ['toolbox'])
  await page.locator('.choices summary').click()
  await page.getByRole('checkbox', { name: /toolbox/ }).click()
  await page.getByText('At least one server stays.').waitFor()
  await page.getByRole('checkbox', { name: /spare/ }).click()
  await page.locator('.choices summary').getByText('all servers').waitFor()
  await page.getByRole('combobox', { name: 'Answers' }).selectOption('off')
  await page.waitForFunction(async (id) => (await (await fetch(`/app/v1/chat/threads/${id}`)).json()).thread.streaming === 'off', id)
  assert.equal((await stored()).servers, undefined)
  await page.context().close()
})

test('offline and back: nothing is lost, nothing twice; ↑ while it is not answered', async () => {
  const page = await stand.signedIn()
  await ask(page, 'What time is it in Cairo?')
  await readable(page)
  await page.fill('#message', 'a draft')
  await page.context().setOffline(true)
  await page.waitForSelector('.banner')
  await page.press('#message', 'Enter')
  await page.getByText('nize could not be reached.').waitFor()
  await page.fill('#message', 'another draft')
  await stand.look(page, 'offline')
  await page.context().setOffline(false)
  await page.waitForSelector('.banner', { state: 'detached' })
  await page.reload() // what was not sent is still there
  await page.getByText('This was not sent.').waitFor()
  assert.equal(await page.inputValue('#message'), 'another draft')
  await readable(page)
  await page.getByRole('button', { name: 'Send again' }).click()
  await page.getByText('This was not sent.').waitFor({ state: 'detached' })
  await page.waitForFunction(() => document.querySelectorAll('.said').length === 2)
  await page.reload()
  await page.locator('.said').nth(1).waitFor()
  assert.equal(await page.locator('.said').count(), 2)
  assert.equal(await page.getByText('a draft', { exact: true }).count(), 1)
  await page.context().close()
})

test('↑ writes the last message anew while it is not answered', async () => {
  const page = await stand.signedIn()
  await page.setInputFiles('input[type=file]', { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('a note') })
  await ask(page, 'What time is it in Quito?')
  await readable(page)
  await page.focus('#message')
  await page.keyboard.press('ArrowUp')
  assert.equal(await page.inputValue('#message'), 'What time is it in Quito?')
  await stand.look(page, 'instead')
  await page.keyboard.press('Escape')
  assert.equal(await page.inputValue('#message'), '')
  await page.keyboard.press('ArrowUp')
  await page.fill('#message', 'What time is it in Accra?')
  await page.keyboard.press('Enter')
  await page.locator('.card .arguments').getByText('Accra').waitFor()
  const stands = async () => {
    await page.waitForFunction(() => document.querySelectorAll('.said').length === 1)
    assert.match(await page.locator('.said').innerText(), /Accra[^]*note\.txt/)
    // What nize had begun goes with the message that it was for, a moment later.
    await page.waitForFunction(() => !document.querySelector('.settled, .log .notice'))
  }
  await stands()
  await item(page, 'Accra').waitFor()
  assert.equal(await item(page, 'Quito').count(), 0, 'the conversation is called by what was asked first')
  await readable(page)
  await page.reload()
  await readable(page)
  await stands()
  await press(page, 'Run').click()
  await page.waitForSelector(outcome)
  await idle(page)
  await page.getByText(/\(from \w+:current_time\)/).waitFor()
  await page.focus('#message')
  await page.keyboard.press('ArrowUp')
  assert.equal(await page.inputValue('#message'), '', 'it was answered')
  await page.context().close()
})

test('10,000 messages open as quickly as 200, and are read upwards', async () => {
  const [long, short] = await stand.history(10_000, 200)
  const page = await stand.signedIn()
  await page.addInitScript(() => { // between the data and what is painted of it
    const decode = TextDecoderStream.prototype
    const apply = Object.getOwnPropertyDescriptor(decode, 'readable').get
    Object.defineProperty(decode, 'readable', { get() {
      return apply.call(this).pipeThrough(new TransformStream({ transform(chunk, out) {
        if (chunk.includes('event: thread')) globalThis.nizeData ??= performance.now()
        out.enqueue(chunk)
      } }))
    } })
    new MutationObserver((_, watch) => {
      if (document.querySelectorAll('.answer').length < 25) return
      watch.disconnect()
      requestAnimationFrame(() => setTimeout(() => { globalThis.nizePainted = performance.now() }))
    }).observe(document, { childList: true, subtree: true })
  })
  for (const [name, id] of [['200', short], ['10,000', long]]) {
    await page.goto(`http://127.0.0.1:${stand.port}/app/c/${id}`)
    await page.waitForFunction(() => globalThis.nizePainted)
    const [took, all] = await page.evaluate(() => [globalThis.nizePainted - globalThis.nizeData, globalThis.nizePainted])
    console.log(`# a thread of ${name} messages: painted ${took.toFixed(0)} ms after its data, ${all.toFixed(0)} ms after the page was asked for`)
  }
  assert.equal(await page.locator('.said, .answer').count(), 50)
  await page.getByText('Answer 10000').waitFor()
  await page.getByRole('button', { name: 'Show what was said before' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.said, .answer').length >= 100) // being there reads on, too
  assert.ok(await page.getByText('Question 9951 of many?').evaluate((e) => e.getBoundingClientRect().top > -200), 'the view jumped')
  for (let n = 150; n <= 500; n += 50) {
    await page.locator('.log').evaluate((e) => { e.scrollTop = 0 })
    await page.waitForFunction((n) => document.querySelectorAll('.said, .answer').length >= n, n)
  }
  const texts = await page.locator('.said .prose').allInnerTexts()
  assert.equal(new Set(texts).size, texts.length, 'something stands twice')
  await stand.look(page, 'history')
  await page.getByRole('button', { name: 'Latest' }).click()
  assert.ok(await page.getByText('Answer 10000').isVisible())
  await page.context().close()
})

test('Slack and the page show one conversation and one decision', async () => {
  const slack = await stand.slack()
  await stand.ctl('servers', 'share', 'toolbox', '--with', 'all')
  const { channel } = await slack.act({ do: 'dm' })
  const { thread } = await slack.act({ do: 'say', channel, text: 'What time is it in Tokyo?' })
  const card = await slack.until(channel, thread, (m) => /call-run/.test(JSON.stringify(m.blocks ?? [])))
  const ann = JSON.parse(await stand.ctl('users', 'list', '--json')).find((u) => u.identities.some((i) => i.endsWith('U0ANN')))
  const page = await stand.signedIn({}, ann.id)
  await item(page, 'What time is it in Tokyo').getByRole('link').click()
  await page.locator('.card').waitFor()
  await page.getByText('This conversation is held on Slack.').waitFor()
  await stand.look(page, 'held-in-slack')
  const other = await page.context().newPage()
  await other.goto(page.url())
  await other.locator('.card').waitFor()
  const link = await page.getByRole('link', { name: 'Open in Slack' }).getAttribute('href')
  assert.match(link, /\/archives\//)
  const press = card.blocks.flatMap((b) => b.elements ?? []).find((e) => e.action_id === 'call-run')
  await slack.act({ do: 'press', channel, ts: card.ts, action: press.action_id })
  for (const tab of [page, other]) {
    await tab.bringToFront()
    await tab.waitForSelector(outcome)
    assert.equal(await tab.locator('.card').count(), 0)
    assert.equal(await tab.locator('#message').count(), 0)
  }
  await page.context().close()
})

test('zh-Hant, forced colours, 400 % zoom', async () => {
  const page = await stand.signedIn({ locale: 'zh-TW', forcedColors: 'active', viewport: { width: 320, height: 256 } })
  await page.locator('.choices summary').click()
  await page.locator('.choices .server').first().waitFor()
  await stand.look(page, 'zoom-choices')
  await page.locator('.choices summary').click()
  await ask(page, 'What time is it in Taipei?')
  await page.waitForSelector('.card .run')
  await page.locator('.card .buttons').scrollIntoViewIfNeeded()
  await stand.look(page, 'zoom-card')
  await page.getByRole('button', { name: /選單/ }).click()
  await page.locator('.threads .more').first().click()
  await page.getByRole('button', { name: '忘記…' }).click()
  await page.waitForSelector('dialog[open]')
  await stand.look(page, 'zoom-forget')
  await page.context().close()
})
