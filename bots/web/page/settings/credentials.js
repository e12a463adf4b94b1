// @ts-check
// A person's own credentials: entered here, never shown again.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { post, put, remove } from '../api.js'
import { t } from '../words.js'
import { Part, named, useDeed, useList } from './list.js'

export function Credentials() {
  const list = useList('credentials')
  const { act, outcome } = useDeed(list.load)
  const [open, setOpen] = useState('') // the credential whose form is open
  const [flow, setFlow] = useState(/** @type {any} */ (null))
  useEffect(() => { // the person returns from signing in elsewhere
    const back = () => { if (!document.hidden) list.load() }
    document.addEventListener('visibilitychange', back)
    return () => document.removeEventListener('visibilitychange', back)
  }, [list.load])
  const signIn = async (/** @type {any} */ c) => {
    const begun = await act(post(`credentials/${encodeURIComponent(c.service)}/login`), '')
    setFlow(begun?.url ? { ...begun, service: c.service } : null) // no address if the company's provider has signed them in
  }
  const give = async (/** @type {any} */ c, /** @type {string} */ secret) => {
    if (await act(put('credentials', { service: c.service, name: c.name, secret }), t('Connected.'))) setOpen('')
  }
  const take = (/** @type {any} */ c) => act(remove(`credentials?service=${encodeURIComponent(c.service)}&name=${encodeURIComponent(c.name)}`), t('Removed.'))
  return html`<${Part} id="credentials" title=${t('Credentials')} about=${t('What servers and tools use in your name. A value is sealed, goes to its service alone, and is never shown again.')}>
    ${list.items ? '' : list.note}
    ${list.items?.length === 0 ? html`<p class="dim">${t('Nothing asks for one.')}</p>` : ''}
    <ul class="rows">${list.items?.map((c) => {
      const id = c.service + '/' + c.name
      return html`<li key=${id}>
        <div><strong>${c.title}</strong> ${c.login ? '' : html`<code>${c.name}</code>`} <span>${c.connected ? t('connected') : t('not connected')}</span>
          ${c.team ? html`<p class="dim">${t('for your whole team')}</p>` : ''}
          ${c.about ? html`<p class="dim lines">${c.about}</p>` : ''}
          ${open === id ? html`<${Give} title=${c.title} id=${'secret-' + id} give=${(/** @type {string} */ s) => give(c, s)} back=${() => setOpen('')} />` : ''}
          ${flow?.service === c.service && !c.connected ? html`<p><a href=${flow.url} target="_blank" rel="noopener noreferrer">${t('Go on to sign in')}</a> <span class="dim">${t('within ten minutes, in this browser')}</span></p>` : ''}</div>
        <div class="buttons">
          ${c.login ? html`<button type="button" aria-label=${named(c.connected ? t('Sign in again') : t('Sign in'), c.title)} onClick=${() => signIn(c)}>${c.connected ? t('Sign in again') : t('Sign in')}</button>`
            : open === id ? '' : html`<button type="button" aria-label=${named(c.connected ? t('Replace') : t('Connect'), c.title)} onClick=${() => setOpen(id)}>${c.connected ? t('Replace') : t('Connect')}</button>`}
          ${c.connected ? html`<button type="button" aria-label=${named(t('Remove'), c.title)} onClick=${() => take(c)}>${t('Remove')}</button>` : ''}
        </div>
      </li>`
    })}</ul>
    ${outcome}
  </${Part}>`
}

/** @param {{title: string, id: string, give: (secret: string) => void, back: () => void}} props */
function Give({ title, id, give, back }) {
  const [secret, setSecret] = useState('')
  return html`<form class="give" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); if (secret) give(secret) }}>
    <label for=${id}>${t('Key for {name}', { name: title })}</label>
    <input type="password" id=${id} autocomplete="off" required value=${secret} onInput=${(/** @type {any} */ e) => setSecret(e.currentTarget.value)} />
    <div class="buttons"><button type="submit" class="run" aria-disabled=${!secret}>${t('Save')}</button><button type="button" onClick=${back}>${t('Back')}</button></div>
  </form>`
}
