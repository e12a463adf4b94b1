// @ts-check
// Providers of language models, and the names under which people use their models: for
// admins. Keys are entered here and never shown again.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { post, put, remove } from '../api.js'
import { Question } from '../dialog.js'
import { icon } from '../icon.js'
import { t } from '../words.js'
import { Part, named, useDeed, useList } from './list.js'

/** Kinds whose URLs are known; others need one. @type {[string, string][]} */
const kinds = [['openai', 'OpenAI'], ['anthropic', 'Anthropic'], ['gemini', 'Google Gemini'], ['openrouter', 'OpenRouter'], ['deepseek', 'DeepSeek'], ['groq', 'Groq'], ['azure', 'Azure OpenAI'], ['ollama', 'Ollama'], ['openai-compatible', '']]
const needAddress = ['azure', 'openai-compatible']
const needNoKey = ['ollama', 'openai-compatible']

/** @param {string} name */
const at = (name) => 'providers/' + encodeURIComponent(name)

/** @param {{models: import('./list.js').List}} props */
export function Models({ models }) {
  const providers = useList('providers')
  const { act, outcome, problem } = useDeed(async () => { await Promise.all([providers.load(), models.load()]) })
  const [found, setFound] = useState(/** @type {Record<string, any>} */ ({})) // by provider, the result of its test
  const [removes, setRemoves] = useState('')
  const test = async (/** @type {string} */ name) => {
    const said = await act(post(at(name) + '/test'), '')
    if (said) setFound((old) => ({ ...old, [name]: said }))
  }
  return html`<${Part} id="models" title=${t('Models')} about=${t('Who provides language models, and the names under which people choose them. A key is sealed and never shown again.')}>
    ${providers.items ? '' : providers.note}
    ${providers.items?.length === 0 ? html`<p class="dim">${t('No provider is set up, so a simple planner answers.')}</p>` : ''}
    <ul class="rows">${providers.items?.map((p) => html`<li key=${p.name}>
      <div><strong>${p.name}</strong> <span class="dim">${[p.kind !== p.name ? p.kind : '', p.base_url].filter(Boolean).join(' · ')}</span>
        ${found[p.name] ? found[p.name].ok ? html`<p class="dim" role="status">${t('It answers, with {n} models.', { n: found[p.name].models?.length ?? 0 })}</p>` : html`<p class="problem" role="alert">${found[p.name].error}</p>` : ''}</div>
      <input type="checkbox" role="switch" aria-label=${named(t('Enabled'), p.name)} checked=${p.enabled} onChange=${(/** @type {any} */ e) => act(post(at(p.name) + (e.currentTarget.checked ? '/enable' : '/disable')), t('Saved.'))} />
      <div class="buttons"><button type="button" aria-label=${named(t('Test'), p.name)} onClick=${() => test(p.name)}>${t('Test')}</button>
        <button type="button" aria-label=${named(t('Remove'), p.name)} onClick=${() => setRemoves(p.name)}>${t('Remove')}</button></div>
    </li>`)}</ul>
    ${removes ? html`<${Question} title=${named(t('Remove'), removes)} yes=${t('Remove')} close=${() => setRemoves('')} act=${async () => { await remove(at(removes)); await Promise.all([providers.load(), models.load()]) }}>
      <p>${t('Its key is erased, and its models can’t be used any more.')}</p>
    <//>` : ''}
    <${AddProvider} add=${async (/** @type {any} */ p) => {
      const made = await act(post('providers', { ...p, try: true }), t('Added.'))
      if (made?.found) setFound((old) => ({ ...old, [p.name]: made.found }))
      return !!made
    }} />
    ${outcome}
    <h3>${t('Names of models')}</h3>
    ${models.items?.length === 0 ? html`<p class="dim">${t('None.')}</p>` : ''}
    <ul class="rows">${models.items?.map((m) => html`<li key=${m.id}>
      <div><strong>${m.id}</strong> <code>${m.target}</code>${m.default ? html` <span class="badge">${t('the default one')}</span>` : ''}${m.available ? '' : html` <span class="problem">${t('not available')}</span>`}</div>
      <div class="buttons">${m.default ? '' : html`<button type="button" aria-label=${named(t('Make it the default'), m.id)} onClick=${() => act(post(`models/${encodeURIComponent(m.id)}/default`), t('Saved.'))}>${t('Make it the default')}</button>`}
        <button type="button" aria-label=${named(t('Remove'), m.id)} onClick=${() => act(remove('models/' + encodeURIComponent(m.id)), t('Removed.'))}>${t('Remove')}</button></div>
    </li>`)}</ul>
    ${providers.items?.length ? html`<${AddModel} providers=${providers.items} found=${found} problem=${problem} add=${(/** @type {string} */ name, /** @type {string} */ target) => act(put('models/' + encodeURIComponent(name), { target }), t('Saved.'))} />` : ''}
  </${Part}>`
}

/** @param {{add: (p: any) => Promise<boolean>}} props */
function AddProvider({ add }) {
  const [kind, setKind] = useState('openai')
  const [name, setName] = useState('openai')
  const [address, setAddress] = useState('')
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault()
    if (busy) return
    setBusy(true)
    const made = await add({ name, kind, base_url: address.trim(), key })
    setKey('') // it is never shown again, not even here
    if (made) setAddress('')
    setBusy(false)
  }
  const choose = (/** @type {string} */ next) => {
    if (name === kind || !name) setName(next === 'openai-compatible' ? '' : next)
    setKind(next)
  }
  return html`<form class="make" onSubmit=${submit}>
    <div><label for="provider-kind">${t('Provider')}</label><select id="provider-kind" value=${kind} onChange=${(/** @type {any} */ e) => choose(e.currentTarget.value)}>${kinds.map(([k, title]) => html`<option key=${k} value=${k}>${title || t('another one, by its address')}</option>`)}</select></div>
    <div><label for="provider-name">${t('Name')}</label><input type="text" id="provider-name" required maxlength="63" pattern="[a-z0-9\\-]+" value=${name} onInput=${(/** @type {any} */ e) => setName(e.currentTarget.value)} /></div>
    <div><label for="provider-url">${t('Address')}</label><input type="url" id="provider-url" required=${needAddress.includes(kind)} placeholder="https://" value=${address} onInput=${(/** @type {any} */ e) => setAddress(e.currentTarget.value)} /></div>
    <div><label for="provider-key">${t('Key')}</label><input type="password" id="provider-key" autocomplete="off" required=${!needNoKey.includes(kind)} value=${key} onInput=${(/** @type {any} */ e) => setKey(e.currentTarget.value)} /></div>
    <div class="buttons"><button type="submit" aria-disabled=${busy}>${icon('plus')}${busy ? t('Trying it…') : t('Add a provider')}</button></div>
  </form>`
}

/** @param {{providers: any[], found: Record<string, any>, problem: (said: string) => void, add: (name: string, target: string) => Promise<any>}} props */
function AddModel({ providers, found, problem, add }) {
  const [name, setName] = useState('')
  const [provider, setProvider] = useState('')
  const [model, setModel] = useState('')
  const [known, setKnown] = useState(/** @type {Record<string, string[]>} */ ({}))
  const chosen = provider || providers[0].name
  const list = found[chosen]?.models ?? known[chosen] ?? []
  const ask = () => { // once, when the section is opened
    if (list.length || chosen in known) return
    setKnown((old) => ({ ...old, [chosen]: [] }))
    post(at(chosen) + '/test').then((said) => said.ok ? setKnown((old) => ({ ...old, [chosen]: said.models ?? [] })) : problem(said.error), () => {})
  }
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault()
    if (await add(name, chosen + '/' + model.trim())) {
      setName('')
      setModel('')
    }
  }
  return html`<form class="make" onSubmit=${submit}>
    <div><label for="model-name">${t('Name, such as smart')}</label><input type="text" id="model-name" required maxlength="63" pattern="[a-z0-9\\-]+" value=${name} onInput=${(/** @type {any} */ e) => setName(e.currentTarget.value)} /></div>
    <div><label for="model-provider">${t('Provider')}</label><select id="model-provider" value=${chosen} onChange=${(/** @type {any} */ e) => setProvider(e.currentTarget.value)}>${providers.map((p) => html`<option key=${p.name} value=${p.name}>${p.name}</option>`)}</select></div>
    <div><label for="model-id">${t('Model')}</label><input type="text" id="model-id" required list="model-ids" value=${model} onFocus=${ask} onInput=${(/** @type {any} */ e) => setModel(e.currentTarget.value)} /><datalist id="model-ids">${list.map((/** @type {string} */ m) => html`<option key=${m} value=${m} />`)}</datalist></div>
    <div class="buttons"><button type="submit" aria-disabled=${!name || !model.trim()}>${icon('plus')}${t('Add a name')}</button></div>
  </form>`
}
