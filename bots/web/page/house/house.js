// @ts-check
// How nize is, for admins: to be read. What changes it is the command line's.
import { useEffect, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { t, time } from '../words.js'

export function House() {
  const [status, setStatus] = useState(/** @type {any} */ (null))
  const [doctor, setDoctor] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  const [tick, again] = useState(0)
  useEffect(() => {
    const fail = (/** @type {any} */ err) => setFailed(err.status ? err.message : t('nize could not be reached.'))
    setFailed('')
    get('status').then(setStatus, fail)
    get('doctor').then(setDoctor, fail)
  }, [tick])
  return html`<p class="dim">${t('To be read only: what is here is changed with nizectl.')} <button type="button" class="quiet" onClick=${() => again(tick + 1)}>${t('Look again')}</button></p>
    ${failed ? html`<p class="problem" role="alert">${failed}</p>` : ''}
    ${status ? html`<${Servers} list=${status.servers} /><${Now} status=${status} />` : failed ? '' : html`<p class="dim">${t('Loading…')}</p>`}
    ${doctor ? html`<${Findings} doctor=${doctor} />` : ''}
    <${Search} />`
}

/** What somebody finds by a search: of the tools that they may use, as nize ranks them for them. */
function Search() {
  const [user, setUser] = useState('')
  const [query, setQuery] = useState('')
  const [found, setFound] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  const search = (/** @type {Event} */ e) => {
    e.preventDefault()
    if (!query.trim()) return
    setFailed('')
    get('tools/search?q=' + encodeURIComponent(query) + '&user=' + encodeURIComponent(user)).then(setFound, (err) => {
      setFound(null)
      setFailed(err.status ? err.message : t('nize could not be reached.'))
    })
  }
  const list = found ? [...found.tools, ...(found.near ?? [])] : []
  return html`<section class="house"><h2>${t('Search as somebody else')}</h2>
    <form class="house-search" role="search" onSubmit=${search}>
      <label>${t('Person')} <input type="text" autocomplete="off" placeholder=${t('you')} value=${user} onInput=${(/** @type {any} */ e) => setUser(e.currentTarget.value)} /></label>
      <label>${t('What a tool should do')} <input type="text" required value=${query} onInput=${(/** @type {any} */ e) => setQuery(e.currentTarget.value)} /></label>
      <button type="submit">${t('Search')}</button>
    </form>
    ${failed ? html`<p class="problem" role="alert">${failed}</p>` : ''}
    ${found ? html`<p role="status">${found.tools.length ? t('tools: {n}', { n: found.tools.length }) : list.length ? t('No tool fits. The nearest are:') : t('No tool fits.')}</p>` : ''}
    <ol class="house-list">${list.map((f) => html`<li key=${f.id}>
      <p><strong>${f.id}</strong> <span class="dim">${f.score.toFixed(2)}</span></p>
      <p class="dim">${f.description}</p>
    </li>`)}</ol></section>`
}

/** The states of a server in words. */
const states = () => ({ ready: t('ready'), connecting: t('connecting'), unreachable: t('unreachable'), idle: t('idle until the next call'), open: t('resting after failures'), disabled: t('switched off'), 'login needed': t('a login is needed') })

/** @param {{list: any[]}} props */
function Servers({ list }) {
  const words = /** @type {Record<string, string>} */ (states())
  return html`<section class="house"><h2>${t('Servers')}</h2>
    ${list.length ? '' : html`<p class="dim">${t('There is none.')}</p>`}
    <ul class="house-list">${list.map((s) => html`<li key=${s.name}>
      <p><strong>${s.name}</strong> <span class=${'house-state ' + (['ready', 'idle', 'connecting', 'disabled'].includes(s.state) ? '' : 'problem')}>${words[s.state] ?? s.state}</span></p>
      <p class="dim">${[t('tools: {n}', { n: s.tool_count }), s.held ? t('of them waiting for acceptance: {n}', { n: s.held }) : '', s.latency_ms ? t('answers in {n} ms', { n: Math.round(s.latency_ms) }) : '', s.restarts ? t('restarts: {n}', { n: s.restarts }) : '', s.since ? t('since {time}', { time: time(s.since) }) : ''].filter(Boolean).join(' · ')}</p>
      ${s.last_error ? html`<p class="house-error" lang="en">${s.last_error}</p>` : ''}
    </li>`)}</ul></section>`
}

/** @param {{status: any}} props */
function Now({ status }) {
  return html`<section class="house"><h2>${t('Now')}</h2>
    <ul class="house-list">
      <li>${t('nized {version}', { version: status.version })}</li>
      <li>${t('Calls that wait for a yes: {n}', { n: status.waiting })} · <a href="/app/approvals">${t('Waiting')}</a></li>
      <li>${t('Calls that run: {n}', { n: status.running })}</li>
      ${(status.bots ?? []).map((/** @type {any} */ b) => html`<li key=${b.name}><strong>${b.name}</strong> ${b.state}${b.last_error ? html`<p class="house-error" lang="en">${b.last_error}</p>` : ''}</li>`)}
    </ul></section>`
}

/** @param {{doctor: any}} props */
function Findings({ doctor }) {
  const levels = /** @type {Record<string, string>} */ ({ ok: t('in order'), warning: t('a warning'), problem: t('a problem') })
  const rank = ['problem', 'warning', 'ok']
  const list = [...doctor.findings].sort((a, b) => rank.indexOf(a.level) - rank.indexOf(b.level))
  return html`<section class="house"><h2>${t('What the doctor found')}</h2>
    <p>${doctor.problems || doctor.warnings ? t('problems: {n}, warnings: {m}', { n: doctor.problems, m: doctor.warnings }) : t('All is in order.')}</p>
    <ul class="house-list">${list.map((f) => html`<li key=${f.check + '/' + f.subject + '/' + f.text}>
      <p><strong class=${f.level === 'problem' ? 'problem' : ''}>${levels[f.level] ?? f.level}</strong> <span class="dim" lang="en">${f.check}${f.subject ? ' · ' + f.subject : ''}</span></p>
      <p>${f.text}</p>
      ${f.cure ? html`<p><code>${f.cure}</code></p>` : ''}
    </li>`)}</ul></section>`
}
