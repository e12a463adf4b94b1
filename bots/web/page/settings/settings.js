// @ts-check
// A person's own settings, and what gives them, or programs in their name, access.
import { useEffect } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'
import { Credentials } from './credentials.js'
import { Field } from './field.js'
import { Grants } from './grants.js'
import { Hooks } from './hooks.js'
import { useList } from './list.js'
import { Models } from './models.js'
import { Servers } from './servers.js'
import { Sessions } from './sessions.js'
import { Tokens } from './tokens.js'

/** The reader's own come first; what few people change comes last. */
const own = ['language', 'theme', 'timezone', 'chat.agent', 'chat.model', 'streaming']

/** @param {{me: any}} props */
export function Settings({ me }) {
  const settings = useList('config')
  const agents = useList('agents')
  const models = useList('models')
  const servers = useList('servers')
  const there = !!settings.items
  useEffect(() => { // the target of the URL only exists now
    if (there && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }, [there])
  if (!settings.items) return settings.note
  const list = settings.items
  const changed = (/** @type {any} */ s) => settings.set(list.map((o) => o.key === s.key ? s : o))
  /** @type {Record<string, any[]|null>} possible values, if known */
  const choices = {
    'chat.agent': agents.items?.map((a) => ({ value: a.id, label: a.name || a.id })) ?? null,
    'chat.model': models.items?.map((m) => ({ value: m.id, label: m.id })) ?? null,
  }
  const denied = list.find((s) => s.key === 'servers.denied')
  const you = own.flatMap((key) => list.find((s) => s.key === key) ?? [])
  const rest = list.filter((s) => !own.includes(s.key) && (s.key !== 'servers.denied' || !servers.items))
  const admin = me.role === 'admin'
  const parts = [['you', t('You')], ['servers', t('Servers')], ['grants', t('What runs without asking')], ['credentials', t('Credentials')], ['sessions', t('Signed in as you')], ['tokens', t('Tokens for MCP clients')], ...admin ? [['models', t('Models')]] : [], ['advanced', t('Advanced')], ['hooks', t('Hooks')]]
  const fields = (/** @type {any[]} */ some) => some.map((s) => html`<${Field} key=${s.key} setting=${s} choices=${choices[s.key]} changed=${changed} />`)
  return html`<div class="settings-page"><nav class="parts" aria-label=${t('Settings')}><ul>${parts.map(([id, title]) => html`<li key=${id}><a href=${'#' + id}>${title}</a></li>`)}</ul></nav>
    <div class="settings-all">
    <section class="settings"><h2 id="you" tabindex="-1">${t('You')}</h2>${fields(you)}</section>
    <${Servers} servers=${servers} setting=${denied} changed=${changed} />
    <${Grants} />
    <${Credentials} />
    <${Sessions} />
    <${Tokens} />
    ${admin ? html`<${Models} models=${models} />` : ''}
    <section class="settings"><h2 id="advanced" tabindex="-1">${t('Advanced')}</h2>${fields(rest)}</section>
    <${Hooks} servers=${servers} />
    </div></div>`
}
