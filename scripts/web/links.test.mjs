// Links from chats to the views of results, in a real browser: who is not signed in,
// who asked, and somebody else.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { Stand, patience } from './stand.mjs'

const stand = new Stand()
/** The paths of links, to what everybody may see and to what is for one. */
const links = { greeting: '', plan: '' }

before(async () => {
  process.env.NIZE_PUBLIC_URL = 'https://nize.example'
  await stand.begin()
  const dir = path.join(stand.dir, 'extensions', 'greet')
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'run'), `#!/bin/sh\nread -r line\nprintf '%s' '{"content":[{"type":"text","text":"Hello"}],"structuredContent":{"who":"Dora"}}'\n`, { mode: 0o700 })
  fs.writeFileSync(path.join(dir, 'view.html'), `<h1>Hello <span></span></h1><p></p><button>Again</button><script>
document.querySelector('span').textContent = window.openai.toolOutput.who
document.body.className = window.openai.theme
document.body.style.color = window.openai.theme === 'dark' ? '#fff' : '#000'
addEventListener('message', (e) => { if (e.data.id === 'mine') document.querySelector('p').textContent = JSON.stringify(e.data.error ?? e.data.result) })
document.querySelector('button').addEventListener('click', () => parent.postMessage({ jsonrpc: '2.0', id: 'mine', method: 'tools/call', params: { name: 'greet', arguments: { name: 'Eve' } } }, '*'))
</script>`)
  fs.writeFileSync(path.join(dir, 'extension.json'), JSON.stringify({ name: 'greet', description: 'Greets somebody by name.', inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }, template: 'view.html', command: './run' }))
  await stand.end('SIGTERM')
  await stand.start()
  await stand.ctl('agents', 'set', 'greeter', '--allow', 'native:*', '--default')
  const link = async (text) => /https:\/\/nize\.example(\/w\/\S+)/.exec((await stand.both('chat', '--approve', 'all', '-m', text)).stderr)?.[1] ?? ''
  links.greeting = await link('Greet somebody by name: "Dora"')
  links.plan = await link('Get my plan information and usage statistics')
  delete process.env.NIZE_PUBLIC_URL // the page is asked at this machine's own address
  await stand.end('SIGTERM')
  await stand.start()
  assert.match(links.greeting, /^\/w\//)
  assert.match(links.plan, /^\/w\//)
})
after(() => stand.close())

/**
 * Opens a link.
 * @param {import('playwright-core').BrowserContext} context
 * @param {string} link
 */
async function open(context, link) {
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  page.on('pageerror', (err) => stand.complaints.push(err.message))
  page.on('request', (r) => { if (/\/w\//.test(r.headers().referer ?? '')) stand.found.push('the page says where it stands: ' + r.url()) })
  await page.goto(`http://127.0.0.1:${stand.port}${link}`)
  return page
}

/** Presses what a view offers. @param {import('playwright-core').Page} page */
async function press(page) {
  const view = page.frameLocator('.view iframe')
  await view.getByRole('heading', { name: 'Hello Dora' }).waitFor()
  await view.getByRole('button', { name: 'Again' }).click()
  return view
}

/** Presses, and reads what the view is told. @param {import('playwright-core').Page} page */
async function told(page) {
  const view = await press(page)
  await view.locator('p:not(:empty)').waitFor()
  return view.locator('p').innerText()
}

test('who is not signed in sees a view that does not act', async () => {
  const context = await stand.browser.newContext({ viewport: { width: 1200, height: 800 } })
  const page = await open(context, links.greeting)
  assert.match(await told(page), /-32000.*sign in to use this/)
  assert.match(await page.locator('dl').innerText(), /Server\s*native\s*Asked by\s*root\s*Time/)
  assert.equal(await page.title(), 'greet – nize')
  await stand.look(page, 'link')
  await page.getByRole('button', { name: 'Larger' }).press('Enter')
  await page.locator('.view.full').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.view:not(.full)').waitFor()
  const gone = await open(context, links.greeting.slice(0, -1) + (links.greeting.endsWith('A') ? 'B' : 'A'))
  await gone.getByRole('heading', { name: 'There is nothing behind this link.' }).waitFor()
  await stand.look(gone, 'link-gone')
  const plan = await open(context, links.plan)
  await plan.getByRole('heading', { name: 'This result is for one person.' }).waitFor()
  await stand.look(plan, 'link-private')
  await plan.getByRole('button', { name: 'Sign in' }).click()
  await plan.waitForURL('**/login**')
  const secret = /#(\S+)/.exec(await stand.ctl('login'))[1]
  await plan.fill('[data-fragment]', secret)
  await plan.locator('form:has([data-fragment]) button').click()
  await plan.waitForURL('**' + links.plan)
  await plan.frameLocator('.view iframe').getByRole('heading', { name: 'Free' }).waitFor()
  await context.close()
})

test('who asked, somebody else, a phone in the dark in Chinese', async () => {
  const own = await stand.signedIn()
  const page = await open(own.context(), links.greeting)
  const view = await press(page) // it waits for a yes, which only the conversation takes
  await stand.look(page, 'link-own')
  const chat = await open(own.context(), links.greeting)
  await chat.getByRole('link', { name: 'Open the conversation' }).click()
  await chat.waitForURL('**/app/c/*')
  await chat.locator('.card', { hasText: 'asked for by the view of native:greet' }).getByRole('button', { name: 'Decline', exact: true }).click()
  await view.getByText('-32000').waitFor()
  await chat.locator('.view iframe').waitFor()
  await own.context().close()

  const mia = JSON.parse(await stand.ctl('users', 'add', 'mia', '--json')).id
  const other = await stand.signedIn({ viewport: { width: 320, height: 640 }, colorScheme: 'dark', locale: 'zh-CN' }, mia)
  const phone = await open(other.context(), links.greeting)
  assert.match(await told(phone), /-32000.*only who asked/)
  await phone.getByText('提问者').waitFor()
  await stand.look(phone, 'link-phone')
  const plan = await open(other.context(), links.plan)
  await plan.getByRole('heading', { name: '此链接没有可显示的内容。' }).waitFor()
  await other.context().close()
})

test('a forgotten conversation', async () => {
  const page = await stand.signedIn()
  for (const row of JSON.parse(await stand.ctl('chat', 'list', '--json'))) await stand.ctl('chat', 'forget', row.id, '--yes')
  const gone = await open(page.context(), links.greeting)
  await gone.getByRole('heading', { name: 'There is nothing behind this link.' }).waitFor()
  await page.context().close()
})
