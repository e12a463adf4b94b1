// @ts-check
// The servers that a person may use; those turned off are in the setting servers.denied.
import { html } from '../html.js'
import { put, remove } from '../api.js'
import { t } from '../words.js'
import { Part, useDeed } from './list.js'

/**
 * @param {object} props
 * @param {import('./list.js').List} props.servers
 * @param {any} props.setting
 * @param {(setting: any) => void} props.changed
 */
export function Servers({ servers, setting, changed }) {
  const { act, outcome } = useDeed(async () => {})
  if (!setting) return ''
  const denied = setting.value.split(',').map((/** @type {string} */ s) => s.trim()).filter(Boolean)
  /** @param {string} id @param {boolean} on */
  const choose = async (id, on) => {
    const rest = on ? denied.filter((/** @type {string} */ d) => d !== id) : [...denied, id]
    const now = await act(rest.length ? put('config/servers.denied', { value: rest.join(',') }) : remove('config/servers.denied'), t('Saved.'))
    changed(now ?? { ...setting }) // don't show a change that was not accepted
  }
  return html`<${Part} id="servers" title=${t('Servers')} about=${t('The tools of a server that is off here are not used for you.')}>
    ${servers.items ? '' : servers.note}
    ${servers.items?.length === 0 ? html`<p class="dim">${t('No server is shared with you.')}</p>` : ''}
    <ul class="rows">${servers.items?.map((s) => html`<li key=${s.id}>
      <div><label for=${'server-' + s.id}>${s.title || s.id}</label> <span class="dim">${s.title ? s.id : ''}</span>${s.description ? html`<p class="dim">${s.description}</p>` : ''}</div>
      <input type="checkbox" role="switch" id=${'server-' + s.id} checked=${!denied.includes(s.id)} onChange=${(/** @type {any} */ e) => choose(s.id, e.currentTarget.checked)} />
    </li>`)}</ul>
    ${outcome}
  </${Part}>`
}
