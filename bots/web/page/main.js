// @ts-check
// The start: reads the signed-in person and their language, and then draws the page.
import { render } from 'preact'
import { html } from './html.js'
import { get, signIn } from './api.js'
import { App } from './app.js'
import { self } from './self.js'
import { withStyle } from './places.js'
import { lastTheme, setTheme } from './theme.js'
import { fitting, loadWords, setZone, t } from './words.js'

const root = /** @type {HTMLElement} */ (document.getElementById('app'))

async function begin() {
  lastTheme()
  if (location.pathname.startsWith('/w/')) {
    const { Link, prepare } = await withStyle('link', import('./link/link.js'))
    await prepare()
    root.replaceChildren()
    return render(html`<${Link} path=${location.pathname} />`, root)
  }
  const guess = fitting(navigator.language)
  try {
    const [me] = await Promise.all([get('me'), loadWords(guess)])
    if (me.language && fitting(me.language) !== guess) await loadWords(fitting(me.language))
    setTheme(me.theme)
    setZone(me.zone ?? '')
    self.id = me.id
    root.replaceChildren()
    const draw = () => render(html`<${App} me=${{ ...me }} />`, root)
    draw()
    addEventListener('nize-words', draw)
  } catch (/** @type {any} */ err) {
    if (err.status === 401) return signIn()
    root.replaceChildren()
    render(html`<main class="empty"><h1>nize</h1><p class="problem" role="alert">${err.status ? err.message : t('nize could not be reached.')}</p><p><button type="button" onClick=${() => location.reload()}>${t('Try again')}</button></p></main>`, root)
  }
}

begin()
