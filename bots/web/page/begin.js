// @ts-check
// The page before the first message: what nize is, and what this person could ask for.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { get } from './api.js'
import { icon, mark } from './icon.js'
import { language, t } from './words.js'

/**
 * @param {object} props
 * @param {any} props.me
 * @param {(text: string) => void} props.write puts a text into the message field
 * @param {(path: string) => void} props.go
 */
export function Begin({ me, write, go }) {
  const [begin, setBegin] = useState(/** @type {{items: any[], model: boolean}|null} */ (null))
  useEffect(() => {
    let left = false
    get('chat/starters').then((b) => left || setBegin(b), () => {}) // suggestions are optional
    return () => { left = true }
  }, [language()])
  const admin = me.role === 'admin'
  return html`<div class="empty">
    <div class="begin">
      ${mark()}
      <h1>${t('What can I do for you?')}</h1>
      <p class="dim">${t('nize finds the right tool, shows what it would run, and waits for your approval.')}</p>
      ${begin?.items.length ? html`<ul class="starters" aria-label=${t('Suggestions')}>${begin.items.map((s) => html`<li key=${s.tool}><button type="button" onClick=${() => write(s.title)}><strong><bdi>${s.title}</bdi></strong>${s.about && s.about !== s.title ? html`<span><bdi>${s.about}</bdi></span>` : ''}<small>${icon('wrench')}<bdi>${s.server}</bdi></small></button></li>`)}</ul>` : ''}
      ${begin && !begin.items.length ? html`<p class="begin-note">${icon('wrench')}<span>${admin ? t('No tool is there yet. Add a server: {command}', { command: 'nizectl servers add' }) : t('No tool is shared with you yet. Ask an admin to share a server.')}</span></p>` : ''}
      ${begin && !begin.model ? html`<p class="begin-note">${icon('cpu')}<span>${t('No language model is set up, so a simple planner answers.')} ${admin
        ? html`<a href="/app/settings#models" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); go('/app/settings#models') }}>${t('Add a provider')}</a>`
        : t('An admin runs {command}', { command: 'nizectl providers add' })}</span></p>` : ''}
    </div>
  </div>`
}
