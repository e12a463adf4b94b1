// @ts-check
// The card of a call: what it would do, whole, and the buttons that decide. What
// is pressed binds the digest of what stood on the screen. Nothing here decides:
// nize does, once.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { post } from './api.js'
import { CallDetails } from './call.js'
import { t } from './words.js'

// A press counts when the whole card has been on the screen for so long: nobody
// reads faster, and a card may come up under a finger.
const readable = 600

/**
 * Whether the whole of an element has been seen for long enough. One that is
 * higher than the window has been seen when both its ends were.
 * @param {string} digest another one has not been seen
 */
function useSeen(digest) {
  const top = useRef(/** @type {HTMLElement|null} */ (null))
  const end = useRef(/** @type {HTMLElement|null} */ (null))
  const [seen, setSeen] = useState('')
  useEffect(() => {
    if (!top.current || !end.current) return
    const at = { top: false, end: false }
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let timer
    const watch = new IntersectionObserver((entries) => {
      for (const e of entries) {
        if (!e.isIntersecting || document.hidden) continue
        if (e.target === top.current) at.top = true
        else at.end = true
      }
      if (at.top && at.end && timer === undefined) timer = setTimeout(() => setSeen(digest), readable)
    }, { threshold: 1 })
    const begin = () => {
      if (document.hidden || !top.current || !end.current) return
      watch.observe(top.current)
      watch.observe(end.current)
    }
    begin()
    document.addEventListener('visibilitychange', begin)
    return () => {
      clearTimeout(timer)
      watch.disconnect()
      document.removeEventListener('visibilitychange', begin)
    }
  }, [digest])
  return { top, end, seen: seen === digest }
}

/**
 * @param {object} props
 * @param {any} props.card
 * @param {any} props.words
 * @param {boolean} props.mine whether the reader may decide
 * @param {(card: any) => void} [props.changed] told of the card as it stands, where it is another one
 */
export function Card({ card, words, mine, changed }) {
  if (words.settled) return html`<${SettledCard} card=${card} words=${words} mine=${mine} />`
  return html`<${OpenCard} key=${card.digest} card=${card} words=${words} mine=${mine} changed=${changed} />`
}

/** @param {any} props */
function OpenCard({ card, words, mine, changed }) {
  const { top, end, seen } = useSeen(card.digest)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const [editing, setEditing] = useState(false)
  const head = 'card-' + card.call
  /**
   * @param {Event} e
   * @param {object|string} decision
   */
  const decide = async (e, decision) => {
    if (!e.isTrusted || !seen || busy) return
    setBusy(true)
    setProblem('')
    try {
      await post('approvals/' + encodeURIComponent(card.call), decision)
    } catch (/** @type {any} */ err) {
      setProblem(err.status ? err.message : t('nize could not be reached.'))
      if (err.card) changed?.(err.card)
    }
    setBusy(false)
  }
  /** @param {string} verb */
  const with_ = (verb) => ({ verb, digest: card.digest })
  const off = !seen || busy
  return html`<article class="card" aria-labelledby=${head} data-call=${card.call}>
    <div ref=${top}><h3 id=${head}>${words.headline}${words.name ? html` <small>${words.name}</small>` : ''}</h3></div>
    ${(words.warnings ?? []).map((/** @type {string} */ w) => html`<p class="warning">${w}</p>`)}
    ${words.args_head ? html`<p>${words.args_head}</p>` : ''}
    ${words.args && !editing ? html`<pre class="args" tabindex="0" aria-label=${t('Arguments')}>${words.args}</pre>` : ''}
    ${editing ? html`<${Edit} card=${card} words=${words} off=${off} decide=${decide} problem=${problem} close=${() => { setEditing(false); setProblem('') }} />` : ''}
    <p class="dim">${[...(words.origin ?? []), words.until].filter(Boolean).join(' · ')}</p>
    ${words.rules?.length ? html`<p class="dim">${words.rules.join(' · ')}</p>` : ''}
    <details><summary>${t('More about this call')}</summary><pre class="more" tabindex="0">${(words.more ?? []).join('\n')}</pre></details>
    ${problem && !editing ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    <div ref=${end} class="buttons">${mine && !editing ? html`
      <button type="button" class="run" aria-disabled=${off} onClick=${(/** @type {Event} */ e) => decide(e, with_('approve'))}>${t('Run')}</button>
      <button type="button" aria-disabled=${off} onClick=${(/** @type {Event} */ e) => decide(e, with_('cancel'))}>${t('Cancel')}</button>
      ${words.args_head && words.args ? '' : html`<button type="button" aria-disabled=${busy} onClick=${() => setEditing(true)}>${t('Edit as JSON')}</button>`}` : ''}
      ${mine ? '' : html`<p class="dim">${t('Others decide about this call.')}</p>`}
    </div>
  </article>`
}

/** The arguments as JSON: they are sent as they are written, so no number is rounded. @param {any} props */
function Edit({ card, words, off, decide, problem, close }) {
  const [text, setText] = useState(words.args || '{}')
  const [wrong, setWrong] = useState('')
  const field = 'edit-' + card.call
  /** @param {Event} e */
  const run = (e) => {
    try {
      const value = JSON.parse(text)
      if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(t('The arguments must be an object: { … }'))
    } catch (/** @type {any} */ err) {
      return setWrong(err.message)
    }
    setWrong('')
    decide(e, `{"verb":"edit","digest":${JSON.stringify(card.digest)},"args":${text}}`)
  }
  const said = wrong || problem
  return html`<div class="edit">
    <label for=${field}>${t('Arguments as JSON')}</label>
    <textarea id=${field} spellcheck="false" rows=${Math.min(Math.max(text.split('\n').length + 1, 4), 20)} value=${text} aria-invalid=${!!said} aria-describedby=${said ? field + '-said' : undefined} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)}></textarea>
    ${said ? html`<p class="problem" id=${field + '-said'} role="alert">${said}</p>` : ''}
    <div class="buttons">
      <button type="button" class="run" aria-disabled=${off} onClick=${run}>${t('Run with these')}</button>
      <button type="button" onClick=${close}>${t('Back')}</button>
    </div>
  </div>`
}

/** What remains of a card that waits no more. @param {any} props */
function SettledCard({ card, words, mine }) {
  const [open, setOpen] = useState(false)
  const [problem, setProblem] = useState('')
  const s = words.settled
  const redo = card.redo && mine !== false
  /** @param {Event} e */
  const again = (e) => {
    if (e.isTrusted) post('approvals/' + encodeURIComponent(card.call), { verb: card.redo, digest: card.digest }).then(() => setProblem(''), (err) => setProblem(err.message))
  }
  return html`<div class=${'tool settled' + (['failed', 'lost', 'expired'].includes(card.state) ? ' failed' : '')} data-call=${card.call} data-state=${card.state}>
    <button type="button" class="tool-line" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${'mark ' + (open ? 'open' : '')} aria-hidden="true"></span><span class="tool-name">${s.what}</span>${s.who ? html`<span>${s.who}</span>` : ''}${s.when ? html`<span class="dim">${s.when}</span>` : ''}${s.outcome ? html`<span class="tool-brief">${s.outcome}</span>` : ''}</button>
    ${redo ? html`<button type="button" class="quiet" onClick=${again}>${card.redo === 'retry' ? t('Retry') : t('Ask again')}</button>` : ''}
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    ${open ? html`<${CallDetails} id=${card.call} state=${card.state} />` : ''}
  </div>`
}
