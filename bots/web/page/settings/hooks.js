// @ts-check
// Hooks, which run before and after a person's calls. Their own are created, switched and
// removed here; the others are shown in order.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { patch, post, remove } from '../api.js'
import { t } from '../words.js'
import { Part, named, useDeed, useList } from './list.js'

/** The initial configuration for each type. @type {Record<string, string>} */
const samples = {
  'rate-limit': '{"calls": 20, "per": "1m", "by": ["tool"]}',
  'param-sanitizer': '{"rules": [{"pointer": "/path", "pattern": "secret", "action": "forbid"}]}',
  'response-truncation': '{"bytes": 4000}',
  'secret-redaction': '{}',
}

/** @param {string} type */
function does(type) {
  switch (type) {
    case 'audit': return t('keeps a record')
    case 'access-control': return t('decides which tools may be used')
    case 'rate-limit': return t('limits how often')
    case 'param-sanitizer': return t('changes or forbids arguments')
    case 'response-truncation': return t('shortens results')
    case 'secret-redaction': return t('removes keys from results')
    case 'exec': return t('calls a program')
    case 'webhook': return t('calls a service')
  }
  return type
}

/**
 * @param {object} props
 * @param {import('./list.js').List} props.servers
 */
export function Hooks({ servers }) {
  const list = useList('hooks')
  const { act, outcome, problem } = useDeed(list.load)
  const [name, setName] = useState('')
  const [type, setType] = useState('rate-limit')
  const [server, setServer] = useState('')
  const [tool, setTool] = useState('')
  const [config, setConfig] = useState(samples['rate-limit'])
  const add = async (/** @type {Event} */ e) => {
    e.preventDefault()
    let rules
    try {
      rules = JSON.parse(config)
    } catch {
      problem(t('The configuration is not valid JSON.'))
      return
    }
    const made = await act(post('hooks', { name, hook_type: type, server, tool, config: rules }), t('Added.'))
    if (made) {
      setName('')
      setTool('')
    }
  }
  const choose = (/** @type {string} */ next) => {
    if (config === samples[type]) setConfig(samples[next])
    setType(next)
  }
  return html`<${Part} id="hooks" title=${t('Hooks')} about=${t('What runs before and after your calls, in this order. Yours run inside those of admins, which run first and last.')}>
    ${list.items ? '' : list.note}
    <ol class="rows">${list.items?.map((h) => html`<li key=${h.id}>
      <div><strong>${h.name}</strong> <span>${does(h.hook_type)}</span>
        <p class="dim">${[h.tool || (h.scope === 'server' || h.scope === 'user_server' ? t('all tools of {server}', { server: h.scope_id.split('/').pop() }) : t('all tools')), h.built_in ? t('built in') : h.owner ? '' : t('set by an admin'), h.enabled ? '' : t('disabled')].filter(Boolean).join(' · ')}</p>
        ${h.owner ? html`<p class="dim"><code>${JSON.stringify(h.config)}</code></p>` : ''}</div>
      ${h.owner ? html`<input type="checkbox" role="switch" aria-label=${named(t('Enabled'), h.name)} checked=${h.enabled} onChange=${(/** @type {any} */ e) => act(patch('hooks/' + encodeURIComponent(h.name), { enabled: e.currentTarget.checked }), t('Saved.'))} />
      <button type="button" aria-label=${named(t('Remove'), h.name)} onClick=${() => act(remove('hooks/' + encodeURIComponent(h.name)), t('Removed.'))}>${t('Remove')}</button>` : ''}
    </li>`)}</ol>
    ${outcome}
    <form class="make" onSubmit=${add}>
      <div><label for="hook-name">${t('Name of a new hook')}</label><input type="text" id="hook-name" required maxlength="63" pattern="[a-z0-9\\-]+" value=${name} onInput=${(/** @type {any} */ e) => setName(e.currentTarget.value)} /></div>
      <div><label for="hook-type">${t('What it does')}</label><select id="hook-type" value=${type} onChange=${(/** @type {any} */ e) => choose(e.currentTarget.value)}>${Object.keys(samples).map((k) => html`<option key=${k} value=${k}>${does(k)}</option>`)}</select></div>
      <div><label for="hook-server">${t('Only on this server')}</label><select id="hook-server" value=${server} onChange=${(/** @type {any} */ e) => setServer(e.currentTarget.value)}><option value="">${t('every server')}</option>${servers.items?.map((s) => html`<option key=${s.id} value=${s.id}>${s.title || s.id}</option>`)}</select></div>
      <div><label for="hook-tool">${t('Only these tools')}</label><input type="text" id="hook-tool" aria-describedby="hook-tool-help" value=${tool} onInput=${(/** @type {any} */ e) => setTool(e.currentTarget.value)} />
        <p class="dim" id="hook-tool-help">${t('such as toolbox:*; empty is all of yours')}</p></div>
      <div><label for="hook-config">${t('Configuration, as JSON')}</label><textarea id="hook-config" rows="3" spellcheck="false" value=${config} onInput=${(/** @type {any} */ e) => setConfig(e.currentTarget.value)}></textarea></div>
      <div class="buttons"><button type="submit" aria-disabled=${!name}>${t('Add a hook')}</button></div>
    </form>
  </${Part}>`
}
