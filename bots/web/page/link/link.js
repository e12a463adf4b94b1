// @ts-check
// The page of a link: one result in the view of its tool, for people who got the URL.
// Without signing in they can see it, but nothing in it can act.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get, postTo, signIn } from '../api.js'
import { withStyle } from '../places.js'
import { setTheme } from '../theme.js'
import { theme } from '../view/context.js'
import { fitting, loadWords, locale, setZone, t, time } from '../words.js'

/** Error messages for views that may not act. @type {Record<string, string>} */
const refusals = { '': 'sign in to use this', other: 'only who asked for this can use it' }

/** There is no composer here, so a view's suggestions are dropped. @type {import('../frame.js').Page} */
const host = { suggest: async () => false }

/** Reads the signed-in person, if any, and their language. */
export async function prepare() {
  const me = await get('me').catch(() => ({}))
  await loadWords(fitting(me.language || navigator.language))
  if (me.theme) setTheme(me.theme)
  setZone(me.zone ?? '')
}

/** Returns the text of a result. @param {any} result */
const textOf = (result) => (result.content ?? []).map((/** @type {any} */ part) => part.text ?? '').join('\n')

/** @param {{path: string}} props of the URL */
export function Link({ path }) {
  const [shown, setShown] = useState(/** @type {any} */ (null))
  const [Frame, setFrame] = useState(/** @type {any} */ (null))
  const [problem, setProblem] = useState('')
  const [over, setOver] = useState('')
  useEffect(() => {
    Promise.all([postTo(path + '/frame', { theme: theme(), locale: locale() }), withStyle('view', import('../view/view.js'))]).then(([view, module]) => {
      setFrame(() => module.Shown)
      setShown(view)
    }, (err) => setProblem(err.status === 401 ? 'private' : err.status === 404 ? 'gone' : err.status ? err.message : t('nize could not be reached.')))
  }, [])
  const tool = shown?.tool.title || shown?.tool.name
  const title = shown ? tool : problem === 'gone' ? t('There is nothing behind this link.') : problem === 'private' ? t('This result is for one person.') : 'nize'
  useEffect(() => { document.title = title === 'nize' ? title : title + ' – nize' }, [title])
  if (problem === 'gone') return html`<main class="empty"><h1>${title}</h1><p>${t('It has expired, the result was erased, or the address is not whole.')}</p></main>`
  if (problem === 'private') return html`<main class="empty"><h1>${title}</h1><p>${t('Sign in as who asked for it.')}</p><p><button type="button" class="run" onClick=${signIn}>${t('Sign in')}</button></p></main>`
  if (problem) return html`<main class="empty"><h1>nize</h1><p class="problem" role="alert">${problem}</p><p><button type="button" onClick=${() => location.reload()}>${t('Try again')}</button></p></main>`
  if (!shown) return html`<main class="empty"><p class="dim">${t('Loading…')}</p></main>`
  const refusal = shown.viewer === 'requester' ? '' : refusals[shown.viewer] ?? refusals.other
  return html`<main class="link">
    <h1><bdi>${tool}</bdi></h1>
    <dl>
      <div><dt>${t('Server')}</dt><dd><bdi>${shown.server}</bdi></dd></div>
      <div><dt>${t('Asked by')}</dt><dd><bdi>${shown.requester}</bdi></dd></div>
      <div><dt>${t('Time')}</dt><dd><time datetime=${shown.at}>${time(shown.at)}</time></dd></div>
    </dl>
    ${over === 'flood' ? html`<p class="dim">${t('The view of {tool} was stopped: it sent too much.', { tool })}</p>`
      : over === 'silent' ? html`<p class="dim">${t('The view of {tool} did not start. This is the plain result:', { tool })}</p><pre tabindex="0" role="group" aria-label=${t('Result')}>${textOf(shown.result)}</pre>`
      : over ? html`<p class="dim">${t('The view of {tool} is closed.', { tool })} <button type="button" class="quiet" onClick=${() => location.reload()}>${t('Open again')}</button></p>`
      : html`<${Frame} call=${shown.call} frame=${shown} host=${host} refusal=${refusal} end=${setOver} />`}
    ${shown.viewer === 'requester' && shown.thread ? html`<p class="dim"><a href=${'/app/c/' + shown.thread}>${t('Open the conversation')}</a></p>`
      : shown.viewer === '' ? html`<p class="dim">${t('You are not signed in, so what it asks nize for is refused.')} <button type="button" class="quiet" onClick=${signIn}>${t('Sign in')}</button></p>` : ''}
  </main>`
}
