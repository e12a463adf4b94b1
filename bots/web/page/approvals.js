// @ts-check
// Pending calls of all conversations, calls decided while the page was open, and the
// reader's recent decisions.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { get } from './api.js'
import { Card } from './card.js'
import { isOutdated, over } from './tool.js'
import { t, time } from './words.js'

// With more pending calls than these, of several people, one person's can be shown alone.
const many = 5
// The stream reports several calls of a step one after the other, within this time in ms.
const soon = 60
// The calls are loaded without a stream after this time, in ms.
const patience = 1500

/**
 * @param {object} props
 * @param {string[]} props.waiting calls that the reader may decide
 * @param {number} props.tick
 */
export function Approvals({ waiting, tick }) {
  const [cards, setCards] = useState(/** @type {any[]|null} */ (null))
  const [decided, setDecided] = useState(/** @type {any[]} */ ([]))
  const [failed, setFailed] = useState('')
  const [whose, setWhose] = useState('') // the requester whose calls are shown, '' for all
  const [again, load] = useState(0)
  const ids = waiting.toSorted().join(' ')
  const asked = useRef('')
  useEffect(() => { // when the pending calls change
    if (!tick && cards) return
    const timer = setTimeout(() => load((n) => n + 1), tick ? soon : patience)
    return () => clearTimeout(timer)
  }, [ids, tick])
  useEffect(() => {
    if (!again) return
    let left = false
    const ended = !asked.current || asked.current.split(' ').some((id) => !waiting.includes(id))
    asked.current = ids
    const load = async () => {
      const now = (await get('approvals')).items.sort((/** @type {any} */ a, /** @type {any} */ b) => a.call < b.call ? -1 : 1) // in the order of the requests
      const open = new Set(now.map((/** @type {any} */ c) => c.call))
      const gone = (cards ?? []).filter((c) => !open.has(c.call))
      const ended = await Promise.all(gone.map((c) => c.words.settled && over.includes(c.state) ? c : get('approvals/' + encodeURIComponent(c.call)).catch(() => null)))
      if (!left) setCards([...now, ...ended.filter(Boolean)])
    }
    load().then(() => setFailed(''), (err) => left || setFailed(err.message))
    if (ended) get('approvals/decided').then((list) => left || setDecided(list.items), (err) => left || setFailed(err.message))
    return () => { left = true }
  }, [again])
  // Poll calls that were decided elsewhere until they have ended: the stream only reports
  // pending calls.
  const runs = (cards ?? []).filter((c) => c.words.settled && !over.includes(c.state)).map((c) => c.call)
  useEffect(() => {
    if (!runs.length) return
    const timer = setTimeout(() => runs.forEach((id) => get('approvals/' + encodeURIComponent(id)).then(changed, () => {})), 1000)
    return () => clearTimeout(timer)
  }, [cards])
  /** @param {any} card */
  const changed = (card) => setCards((list) => (list ?? []).map((c) => c.call === card.call && !isOutdated(card, c) ? card : c))
  /** @param {any} c @param {number} i @param {any[]} list */
  const one = (c, i, list) => html`<div class="waiting-call" key=${c.call}>
    ${c.said && !c.words.settled && !(c.step && list[i - 1]?.step === c.step) ? html`<p class="said-for">“<bdi>${c.said}</bdi>”</p>` : ''}
    <${Card} card=${c} words=${c.words} mine=${waiting.includes(c.call)} changed=${changed} />
  </div>`
  const others = (cards ?? []).filter((c) => !c.words.settled && !waiting.includes(c.call)) // admins see all of them
  const yours = (cards ?? []).filter((c) => !others.includes(c))
  const open = yours.filter((c) => !c.words.settled)
  const people = [...new Map(open.map((c) => [c.requester, c.by]))].map(([id, name]) => ({ id, name, n: open.filter((c) => c.requester === id).length }))
  const chosen = people.length > 1 && (open.length > many || whose) // a choice that was made can be taken back
  const only = chosen && people.some((p) => p.id === whose) ? whose : ''
  /** @param {string} id @param {any} name @param {number} n */
  const chip = (id, name, n) => html`<button type="button" key=${id} class="chip" aria-pressed=${only === id} onClick=${() => setWhose(id)}><bdi>${name}</bdi> <span class="of-them">${n}</span></button>`
  const earlier = decided.filter((c) => !yours.some((o) => o.call === c.call))
  return html`<div class="approvals" tabindex="-1">
    <div class="log-inner">
      <h1>${t('Pending approvals')}</h1>
      <h2 class="visually-hidden">${t('Calls')}</h2>
      ${failed ? html`<p class="problem" role="alert">${failed}</p>` : ''}
      ${cards && !cards.some((c) => !c.words.settled) ? html`<div class="nothing"><p><strong>${t('No pending approvals.')}</strong></p><p class="dim">${t('Calls that need your approval appear here: from your conversations on any platform, from your MCP clients, and from people whose calls you approve.')}</p></div>` : ''}
      ${chosen ? html`<div class="whose" role="group" aria-label=${t('Whose')}>${chip('', t('Everybody\u2019s'), open.length)}${people.map((p) => chip(p.id, p.name, p.n))}</div>` : ''}
      ${yours.filter((c) => !only || c.requester === only).map(one)}
      ${others.length ? html`<h2>${t('For others to decide')}</h2>` : ''}
      ${others.map(one)}
      ${earlier.length ? html`<h2>${t('Decided by you, last 30 days')}</h2>
        <ul class="decided">${earlier.map((c) => html`<li key=${c.call}><${Card} card=${c} words=${c.words} mine=${false} /><p class="dim">${[...c.words.origin ?? [], time(c.at)].join(' · ')}</p></li>`)}</ul>` : ''}
    </div>
  </div>`
}
