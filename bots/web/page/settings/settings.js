// @ts-check
// A person's own settings, and what lets them, or programs in their name, in.
import { html } from '../html.js'
import { t } from '../words.js'
import { Credentials } from './credentials.js'
import { Field } from './field.js'
import { Grants } from './grants.js'
import { Hooks } from './hooks.js'
import { useList } from './list.js'
import { Servers } from './servers.js'
import { Sessions } from './sessions.js'
import { Tokens } from './tokens.js'

export function Settings() {
  const settings = useList('config')
  const agents = useList('agents')
  const models = useList('models')
  const servers = useList('servers')
  if (!settings.items) return settings.note
  const list = settings.items
  const changed = (/** @type {any} */ s) => settings.set(list.map((o) => o.key === s.key ? s : o))
  /** @type {Record<string, any[]|null>} what may be chosen, where that is known */
  const choices = {
    'chat.agent': agents.items?.map((a) => ({ value: a.id, label: a.name || a.id })) ?? null,
    'chat.model': models.items?.map((m) => ({ value: m.id, label: m.id })) ?? null,
  }
  const fields = list.filter((s) => s.key !== 'servers.denied' || !servers.items)
  const denied = list.find((s) => s.key === 'servers.denied')
  const categories = [...new Set(fields.map((s) => s.category_label))]
  const parts = [...categories.map((c, i) => ({ id: 'part-' + i, title: c })), { id: 'servers', title: t('Servers') }, { id: 'grants', title: t('Standing answers') }, { id: 'hooks', title: t('Hooks') },
    { id: 'credentials', title: t('Credentials') }, { id: 'tokens', title: t('Tokens for MCP clients') }, { id: 'sessions', title: t('Signed in as you') }]
  return html`<nav class="parts" aria-label=${t('Settings')}><ul>${parts.map((p) => html`<li key=${p.id}><a href=${'#' + p.id}>${p.title}</a></li>`)}</ul></nav>
    ${categories.map((c, i) => html`<section key=${c} class="settings">
      <h2 id=${'part-' + i} tabindex="-1">${c}</h2>
      ${fields.filter((s) => s.category_label === c).map((s) => html`<${Field} key=${s.key} setting=${s} choices=${choices[s.key]} changed=${changed} />`)}
    </section>`)}
    <${Servers} servers=${servers} setting=${denied} changed=${changed} />
    <${Grants} />
    <${Hooks} servers=${servers} />
    <${Credentials} />
    <${Tokens} />
    <${Sessions} />`
}
