// @ts-check
// Browsers and MCP clients that are signed in as this person.
import { html } from '../html.js'
import { remove, signIn } from '../api.js'
import { t, time } from '../words.js'
import { Part, named, useDeed, useList } from './list.js'

export function Sessions() {
  const list = useList('sessions')
  const { act, outcome } = useDeed(list.load)
  const end = async (/** @type {any} */ s) => {
    if (!s.this) return act(remove('sessions/' + s.id), t('Signed out.'))
    await act(remove('sessions/' + s.id).then(signIn), '')
  }
  return html`<${Part} id="sessions" title=${t('Signed in as you')} about=${t('Browsers, and MCP clients that you signed in to. What is signed out here ends at once.')}>
    ${list.items ? '' : list.note}
    <ul class="rows">${list.items?.map((s) => html`<li key=${s.id}>
      <div><strong>${s.this ? t('This browser') : s.name}</strong> <span class="dim">${s.kind === 'client' ? t('an MCP client') : s.this ? s.name : t('a browser')}</span>
        <p class="dim">${[s.from, t('since {time}', { time: time(s.created) }), s.last_used ? t('used {time}', { time: time(s.last_used) }) : ''].filter(Boolean).join(' · ')}</p></div>
      <button type="button" aria-label=${named(t('Sign out'), s.this ? t('This browser') : s.name)} onClick=${() => end(s)}>${t('Sign out')}</button>
    </li>`)}</ul>
    ${outcome}
  </${Part}>`
}
