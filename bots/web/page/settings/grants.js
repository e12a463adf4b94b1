// @ts-check
// Standing answers to the calls of a tool.
import { html } from '../html.js'
import { remove } from '../api.js'
import { t, time } from '../words.js'
import { Part, named, useDeed, useList } from './list.js'

export function Grants() {
  const list = useList('grants')
  const { act, outcome } = useDeed(list.load)
  return html`<${Part} id="grants" title=${t('What runs without asking')} about=${t('Your standing answers. A tool that has changed since asks again.')}>
    ${list.items ? '' : list.note}
    ${list.items?.length === 0 ? html`<p class="dim">${t('None: every call that may change something asks you first.')}</p>` : ''}
    <ul class="rows">${list.items?.map((g) => html`<li key=${g.id}>
      <div><strong>${g.tool}</strong> <span>${g.deny ? t('never runs') : g.void ? t('allows nothing now: the tool changed since, or is gone') : t('runs without asking')}</span>
        <p class="dim">${[forWhom(g), g.repository ? t('in {place}', { place: g.host ? g.host + ':' + g.repository : g.repository }) : '', g.exact ? t('with certain arguments only') : g.pattern ? '' : t('with any arguments'), g.expires ? t('until {time}', { time: time(g.expires) }) : t('until it is revoked')].filter(Boolean).join(' · ')}</p>
        ${g.pattern ? html`<p class="dim">${t('where the arguments fit:')} <code>${JSON.stringify(g.pattern)}</code></p>` : ''}</div>
      ${g.own ? html`<button type="button" aria-label=${named(t('Revoke'), g.tool)} onClick=${() => act(remove('grants/' + encodeURIComponent(g.id)), t('Revoked.'))}>${t('Revoke')}</button>` : html`<span class="dim">${t('An admin said so.')}</span>`}
    </li>`)}</ul>
    ${outcome}
  </${Part}>`
}

/** @param {any} g */
function forWhom(g) {
  if (g.scope === 'everywhere') return t('for everybody')
  if (g.scope === 'conversation') return t('in one conversation')
  if (g.scope === 'channel') return t('in one channel')
  return t('for you')
}
