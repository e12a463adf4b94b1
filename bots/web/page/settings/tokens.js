// @ts-check
// Tokens for MCP clients: created here, shown once, revoked.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { post, remove } from '../api.js'
import { t, time } from '../words.js'
import { Snippets } from './snippets.js'
import { Part, named, useDeed, useList } from './list.js'

const day = 24 * 3600

export function Tokens() {
  const list = useList('tokens')
  const { act, outcome } = useDeed(list.load)
  const [name, setName] = useState('')
  const [days, setDays] = useState('90')
  const [tools, setTools] = useState('')
  const [made, setMade] = useState(/** @type {any} */ (null))
  const [copied, setCopied] = useState(false)
  const make = async (/** @type {Event} */ e) => {
    e.preventDefault()
    if (!name) return
    const scopes = tools.split(/[\s,]+/).filter(Boolean).map((p) => 'tools:' + p)
    const answer = await act(post('tokens', { name, expires: Number(days) * day + 's', scopes }), t('Made.'))
    setMade(answer ?? null)
    setCopied(false)
    if (answer) {
      setName('')
      setTools('')
    }
  }
  const active = list.items?.filter((k) => k.state === 'active')
  return html`<${Part} id="tokens" title=${t('Tokens for MCP clients')} about=${t('With a token an MCP client uses your tools in your name, under the same rules, at {address}.', { address: location.origin + '/mcp' })}>
    ${list.items ? '' : list.note}
    ${active?.length === 0 ? html`<p class="dim">${t('None.')}</p>` : ''}
    <ul class="rows">${active?.map((k) => html`<li key=${k.id}>
      <div><strong>${k.name}</strong> <code>${k.prefix}…</code>
        <p class="dim">${[k.revoked ? t('rotated, works until {time}', { time: time(k.revoked) }) : t('until {time}', { time: time(k.expires) }), k.last_used ? t('used {time}', { time: time(k.last_used) }) : t('never used'), ...(k.scopes ?? [])].join(' · ')}</p></div>
      <button type="button" aria-label=${named(t('Revoke'), k.name)} onClick=${() => act(remove('tokens/' + encodeURIComponent(k.name)), t('Revoked.'))}>${t('Revoke')}</button>
    </li>`)}</ul>
    ${made ? html`<div class="made"><p id="made-label"><strong>${t('The token {name}. It is shown this once; keep it now.', { name: made.name })}</strong></p>
      <input type="text" readonly aria-labelledby="made-label" value=${made.token} onFocus=${(/** @type {any} */ e) => e.currentTarget.select()} />
      <div class="buttons"><button type="button" onClick=${() => navigator.clipboard.writeText(made.token).then(() => setCopied(true), () => {})}>${copied ? t('Copied') : t('Copy')}</button>
        <button type="button" onClick=${() => setMade(null)}>${t('I have kept it')}</button></div>
      <${Snippets} token=${made.token} /></div>` : ''}
    ${outcome}
    <form class="make" onSubmit=${make}>
      <div><label for="token-name">${t('Name of a new token')}</label><input type="text" id="token-name" required maxlength="63" pattern="[A-Za-z0-9._\\-]+" value=${name} onInput=${(/** @type {any} */ e) => setName(e.currentTarget.value)} /></div>
      <div><label for="token-days">${t('For')}</label><select id="token-days" value=${days} onChange=${(/** @type {any} */ e) => setDays(e.currentTarget.value)}>${['7', '30', '90', '365'].map((d) => html`<option key=${d} value=${d}>${t('{n} days', { n: d })}</option>`)}</select></div>
      <div><label for="token-tools">${t('Only these tools')}</label><input type="text" id="token-tools" aria-describedby="token-tools-help" value=${tools} onInput=${(/** @type {any} */ e) => setTools(e.currentTarget.value)} />
        <p class="dim" id="token-tools-help">${t('such as toolbox:*; empty is all of yours')}</p></div>
      <div class="buttons"><button type="submit" aria-disabled=${!name}>${t('Make a token')}</button></div>
    </form>
  </${Part}>`
}
