// @ts-check
// A conversation's choices: agent, model, the servers that may be used with their states,
// and whether answers are shown while they are written. Only what the person may use is
// offered.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { get } from './api.js'
import { icon } from './icon.js'
import { t } from './words.js'

/**
 * @typedef {object} Choices servers: [] means all
 * @property {string} [agent]
 * @property {string} [model]
 * @property {string[]} [servers]
 * @property {string} [streaming]
 */

/** @param {string} state of a server */
const stateOf = (state) => ({ ready: t('ready'), connecting: t('connecting'), unreachable: t('unreachable'), idle: t('idle'), open: t('paused (it failed too often)'), disabled: t('disabled'), 'login needed': t('needs your sign-in') }[state] ?? state)

/**
 * @param {object} props
 * @param {Choices} props.chosen
 * @param {(change: Choices) => Promise<void>} props.choose
 * @param {(pictures: boolean) => void} props.known gets whether the model accepts pictures
 */
export function ChoicesBar({ chosen, choose, known }) {
  const [all, setAll] = useState(/** @type {{agents: any[], models: any[], servers: any[]}|null} */ (null))
  const [problem, setProblem] = useState('')
  const say = (/** @type {any} */ err) => setProblem(err.status ? err.message : t('nize could not be reached.'))
  const bar = useRef(/** @type {HTMLDetailsElement|null} */ (null))
  const [models, setModels] = useState(/** @type {any[]} */ ([]))
  useEffect(() => {
    let left = false
    get('models').then((got) => left || setModels(got.items), () => {}) // the chip then shows less
    return () => { left = true }
  }, [])
  useEffect(() => {
    /** @param {Event} e */
    const close = (e) => {
      const b = bar.current
      if (!b?.open || !(e instanceof KeyboardEvent ? e.key === 'Escape' : !b.contains(/** @type {Node} */ (e.target)))) return
      if (e instanceof KeyboardEvent) b.querySelector('summary')?.focus()
      b.open = false
    }
    addEventListener('pointerdown', close)
    addEventListener('keydown', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('keydown', close)
    }
  }, [])
  const load = async () => {
    try {
      const [agents, models, servers] = await Promise.all(['agents', 'models', 'servers'].map((name) => get(name)))
      setAll({ agents: agents.items, models: models.items, servers: servers.items })
      setProblem('')
    } catch (err) { say(err) }
  }
  /** @param {Choices} change */
  const set = (change) => choose(change).then(() => setProblem(''), say)
  const some = chosen.servers ?? []
  const agent = chosen.agent || all?.agents.find((a) => a.default)?.id || ''
  const list = all?.models ?? models
  const model = list.find((m) => m.id === chosen.model) ?? list.find((m) => m.default && !chosen.model && !chosen.agent)
  useEffect(() => known(model?.images ?? true), [model?.images])
  return html`<details class="choices" ref=${bar} onToggle=${(/** @type {any} */ e) => e.currentTarget.open && load()}>
    <summary>
      ${agent ? html`<span class="chip">${icon('bot')}${t('Agent {name}', { name: agent })}</span>` : ''}
      <span class="chip">${icon('cpu')}<span>${t('Model {name}', { name: chosen.model || model?.id || t('automatic') })}${model?.provider ? html` <span class="chip-more">${model.provider}</span>` : ''}</span></span>
      <span class="chip">${icon('server')}${some.length ? some.length === 1 ? some[0] : t('{n} servers', { n: some.length }) : t('all servers')}</span>
    </summary>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    ${all ? html`<div class="choices-inner panel-over">
      ${all.agents.length ? html`<label>${t('Agent')} <select value=${chosen.agent ?? ''} onChange=${(/** @type {any} */ e) => set({ agent: e.currentTarget.value })}>
        <option value="" selected=${!chosen.agent}>${t('the default one')}</option>
        ${all.agents.map((a) => html`<option value=${a.id} selected=${a.id === chosen.agent}>${a.name || a.id}</option>`)}
      </select></label>` : ''}
      <label>${t('Model')} <select value=${chosen.model ?? ''} onChange=${(/** @type {any} */ e) => set({ model: e.currentTarget.value })}>
        <option value="" selected=${!chosen.model}>${t('as its agent has it')}</option>
        ${all.models.map((m) => html`<option value=${m.id} selected=${m.id === chosen.model} disabled=${!m.available}>${m.id}${m.provider ? ` (${m.provider})` : ''}${m.available ? '' : ' – ' + t('not available')}</option>`)}
        ${chosen.model && !all.models.some((m) => m.id === chosen.model) ? html`<option value=${chosen.model} selected>${chosen.model}</option>` : ''}
      </select></label>
      <label>${t('Answers')} <select value=${chosen.streaming ?? ''} onChange=${(/** @type {any} */ e) => set({ streaming: e.currentTarget.value })}>
        <option value="" selected=${!chosen.streaming}>${t('as in your settings')}</option>
        <option value="on" selected=${chosen.streaming === 'on'}>${t('shown while they are written')}</option>
        <option value="off" selected=${chosen.streaming === 'off'}>${t('shown when they are whole')}</option>
      </select></label>
      <fieldset><legend>${t('Servers whose tools may be used here')}</legend>
        ${all.servers.length ? '' : html`<p class="dim">${t('There is none that you may use.')}</p>`}
        ${all.servers.map((s) => {
          const on = !some.length || some.includes(s.id)
          const names = all.servers.map((o) => o.id)
          const flip = () => {
            const now = on ? (some.length ? some : names).filter((n) => n !== s.id) : [...some, s.id]
            if (now.length) return set({ servers: names.every((n) => now.includes(n)) ? [] : now })
            setProblem(t('At least one server stays.'))
          }
          return html`<label key=${s.id} class="server"><input type="checkbox" checked=${on} onClick=${(/** @type {Event} */ e) => { e.preventDefault(); flip() }} /><span><strong>${s.id}</strong>${s.title && s.title !== s.id ? ' · ' + s.title : ''} <span class="dim">${stateOf(s.state)}</span>${s.description ? html`<small class="dim">${s.description.split('\n')[0].slice(0, 160)}</small>` : ''}</span></label>`
        })}
      </fieldset>
    </div>` : html`<p class="dim choices-inner panel-over">${t('Loading…')}</p>`}
  </details>`
}
