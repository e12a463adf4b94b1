// @ts-check
// The state of the installation, for admins: servers, those with problems first, each with
// its tools, its log and the definitions that wait to be accepted. Other changes are made
// on the command line.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get, post } from '../api.js'
import { newestOnly } from '../order.js'
import { t, time } from '../words.js'

export function House() {
  const [status, setStatus] = useState(/** @type {any} */ (null))
  const [doctor, setDoctor] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  const [tick, again] = useState(0)
  useEffect(() => {
    let left = false
    const fail = (/** @type {any} */ err) => left || setFailed(err.status ? err.message : t('nize could not be reached.'))
    setFailed('')
    get('status').then((found) => left || setStatus(found), fail)
    get('doctor').then((found) => left || setDoctor(found), fail)
    return () => { left = true } // the answers of a later look are shown
  }, [tick])
  return html`<p class="dim">${t('Servers are added and changed with nizectl.')} <button type="button" class="quiet" onClick=${() => again(tick + 1)}>${t('Look again')}</button></p>
    ${failed ? html`<p class="problem" role="alert">${failed}</p>` : ''}
    ${status ? html`<${Servers} list=${status.servers} again=${() => again(tick + 1)} /><${Now} status=${status} />` : failed ? '' : html`<p class="dim">${t('Loading…')}</p>`}
    ${doctor ? html`<${Findings} doctor=${doctor} />` : ''}
    <${Search} />`
}

/** What a person would find by a search among the tools that they may use, in nize's ranking. */
function Search() {
  const [user, setUser] = useState('')
  const [query, setQuery] = useState('')
  const [found, setFound] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  const newest = useMemo(newestOnly, [])
  const search = (/** @type {Event} */ e) => {
    e.preventDefault()
    if (!query.trim()) return
    setFailed('')
    newest(() => get('tools/search?q=' + encodeURIComponent(query) + '&user=' + encodeURIComponent(user))).then(setFound, (err) => {
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

/** Labels for the states of a server. */
const states = () => ({ ready: t('ready'), connecting: t('connecting'), unreachable: t('unreachable'), idle: t('idle until the next call'), open: t('resting after failures'), disabled: t('switched off'), 'login needed': t('a login is needed') })

/** @param {any} s whether a server needs attention */
const wrong = (s) => !['ready', 'idle', 'connecting', 'disabled'].includes(s.state) || s.held > 0 || !!s.last_error

/** @param {{list: any[], again: () => void}} props */
function Servers({ list, again }) {
  const first = [...list].sort((a, b) => Number(wrong(b)) - Number(wrong(a)) || (a.name < b.name ? -1 : 1))
  return html`<section class="house"><h2>${t('Servers')}</h2>
    ${list.length ? '' : html`<p class="dim">${t('There is none.')}</p>`}
    <ul class="house-list">${first.map((s) => html`<${Row} key=${s.name} s=${s} again=${again} />`)}</ul></section>`
}

/** A server with its details. @param {{s: any, again: () => void}} props */
function Row({ s, again }) {
  const words = /** @type {Record<string, string>} */ (states())
  const [open, setOpen] = useState(false)
  const bad = !['ready', 'idle', 'connecting', 'disabled'].includes(s.state)
  return html`<li class="server-row">
    <button type="button" class="server-head" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${'mark ' + (open ? 'open' : '')} aria-hidden="true"></span>
      <span class=${'dot ' + (bad ? 'bad' : s.held ? 'held' : s.state === 'disabled' ? '' : 'good')} aria-hidden="true"></span>
      <span class="server-words"><strong>${s.name}</strong> <span class=${'house-state ' + (bad ? 'problem' : '')}>${words[s.state] ?? s.state}</span>
        <span class="dim">${[t('tools: {n}', { n: s.tool_count }), s.latency_ms ? t('answers in {n} ms', { n: Math.round(s.latency_ms) }) : '', s.restarts ? t('restarts: {n}', { n: s.restarts }) : '', s.since ? t('since {time}', { time: time(s.since) }) : ''].filter(Boolean).join(' · ')}</span></span>
      ${s.held ? html`<span class="badge changes">${t('to accept: {n}', { n: s.held })}</span>` : ''}</button>
    ${s.last_error ? html`<p class="house-error" lang="en">${s.last_error}</p>` : ''}
    ${open ? html`<${Inside} name=${s.name} again=${again} />` : ''}
  </li>`
}

/** @param {{name: string, again: () => void}} props */
function Inside({ name, again }) {
  const [server, setServer] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState('')
  const [tick, look] = useState(0)
  useEffect(() => {
    let left = false
    get('house/servers/' + encodeURIComponent(name)).then((s) => left || setServer(s), (err) => left || setFailed(err.status ? err.message : t('nize could not be reached.')))
    return () => { left = true }
  }, [name, tick])
  if (failed) return html`<p class="problem" role="alert">${failed}</p>`
  if (!server) return html`<p class="dim">${t('Loading…')}</p>`
  return html`<div class="server-inside">
    ${server.waiting.length ? '' : (server.warnings ?? []).map((/** @type {string} */ w) => html`<p class="warning" lang="en">${w}</p>`)}
    ${server.waiting.map((/** @type {any} */ w) => html`<${Held} key=${w.pin} name=${name} held=${w} done=${() => { look(tick + 1); again() }} />`)}
    ${server.tools.length ? html`<h3>${t('Tools')}</h3><ul class="server-tools">${server.tools.map((/** @type {any} */ tool) => html`<li key=${tool.id}><p><strong><bdi>${tool.title || tool.id}</bdi></strong> <code>${tool.id}</code>${tool.state === 'accepted' ? '' : html` <span class="badge changes">${toolStates()[tool.state] ?? tool.state}</span>`}</p>
      ${tool.description ? html`<p class="dim clamp">${tool.description}</p>` : ''}${tool.state === 'quarantined' ? '' : (tool.findings ?? []).map((/** @type {string} */ f) => html`<p class="problem" lang="en">${f}</p>`)}</li>`)}</ul>` : ''}
    ${server.log.length ? html`<h3>${t('Log')}</h3><pre class="server-log" tabindex="0" role="group" aria-label=${t('Log')} lang="en">${server.log.join('\n')}</pre>` : ''}
  </div>`
}

/** @returns {Record<string, string>} */
const toolStates = () => ({ quarantined: t('waits for acceptance'), refused: t('refused: its schema is dangerous'), removed: t('removed') })

/** A definition that waits for an admin: its changes, and the button that accepts exactly these. @param {{name: string, held: any, done: () => void}} props */
function Held({ name, held, done }) {
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  /** @param {Event} e */
  const accept = async (e) => {
    if (!e.isTrusted || busy) return
    setBusy(true)
    try {
      await post(`servers/${encodeURIComponent(name)}/trust`, { tools: [{ tool: held.tool, pin: held.pin }] })
      done()
    } catch (/** @type {any} */ err) {
      setProblem(err.status ? err.message : t('nize could not be reached.'))
      setBusy(false)
    }
  }
  const lines = (held.diff ?? '').split('\n').filter((/** @type {string} */ l) => l && !/^(---|\+\+\+) /.test(l))
  return html`<article class="held-tool" aria-label=${held.tool}>
    <p><strong><bdi>${held.tool}</bdi></strong> <span class="badge changes">${held.accepted ? t('has changed since it was accepted') : t('waits for acceptance')}</span></p>
    ${(held.findings ?? []).map((/** @type {string} */ f) => html`<p class="problem" lang="en">${f}</p>`)}
    ${(held.view_sends ?? []).map((/** @type {string} */ f) => html`<p class="problem">${f}</p>`)}
    ${lines.length ? html`<pre class="diff" tabindex="0" role="group" aria-label=${t('What has changed')}>${lines.map((/** @type {string} */ l) => html`<span class=${'op op-' + ({ '-': 'out', '+': 'in', '@': 'at' }[l[0]] ?? 'same')}><span class="sign" aria-hidden="true">${'-+'.includes(l[0]) ? l[0] : ''}</span>${l[0] === '-' ? html`<span class="visually-hidden">${t('removed:')} </span>` : l[0] === '+' ? html`<span class="visually-hidden">${t('added:')} </span>` : ''}${('-+ '.includes(l[0]) ? l.slice(1) : l) + '\n'}</span>`)}</pre>`
      : (held.changes ?? []).map((/** @type {any} */ c) => html`<div class="dim">${c.part}</div><pre class="diff" tabindex="0" role="group" aria-label=${c.part}>${c.old ? html`<span class="op op-out"><span class="visually-hidden">${t('removed:')} </span>${c.old + '\n'}</span>` : ''}${c.new ? html`<span class="op op-in"><span class="visually-hidden">${t('added:')} </span>${c.new + '\n'}</span>` : ''}</pre>`)}
    ${!lines.length && !held.changes?.length && held.description ? html`<p class="held-words">${held.description}</p>` : ''}
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    <div class="buttons"><button type="button" class="run" aria-disabled=${busy} aria-label=${t('{what}: {name}', { what: t('Accept'), name: held.tool })} onClick=${accept}>${t('Accept')}</button></div>
  </article>`
}

/** @param {{status: any}} props */
function Now({ status }) {
  return html`<section class="house"><h2>${t('Now')}</h2>
    <ul class="house-list">
      <li>${t('nized {version}', { version: status.version })}</li>
      <li><a href="/app/approvals">${t('Pending approvals: {n}', { n: status.waiting })}</a></li>
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
    <${Folded} list=${list} show=${(/** @type {any} */ f) => html`<li key=${f.check + '/' + f.subject + '/' + f.text}>
      <p><strong class=${f.level === 'problem' ? 'problem' : ''}>${levels[f.level] ?? f.level}</strong> <span class="dim" lang="en">${f.check}${f.subject ? ' · ' + f.subject : ''}</span></p>
      <p>${f.text}</p>
      ${f.cure ? html`<p><code>${f.cure}</code></p>` : ''}
    </li>`} /></section>`
}

/** Problems, and behind a summary what is in order. @param {{list: any[], show: (f: any) => any}} props */
function Folded({ list, show }) {
  const fine = list.filter((f) => f.level === 'ok')
  return html`<ul class="house-list">${list.filter((f) => f.level !== 'ok').map(show)}</ul>
    ${fine.length ? html`<details class="fine"><summary>${t('In order: {n}', { n: fine.length })}</summary><ul class="house-list">${fine.map(show)}</ul></details>` : ''}`
}
