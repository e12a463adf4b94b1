// @ts-check
// The card of a call: what it would do, completely, and the buttons that decide. A press
// carries the digest of what was on the screen. The page decides nothing: nize does, once.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { get, post } from './api.js'
import { CallDetails } from './call.js'
import { Arguments } from './card/rows.js'
import { Menu } from './card/menu.js'
import { self } from './self.js'
import { useStep } from './step.js'
import { over } from './tool.js'
import { t } from './words.js'

// A press counts only after the whole card has been on the screen for this long: nobody
// reads faster, and a card may appear under a finger.
const readable = 600

/**
 * Whether the whole of an element has been visible for long enough. An element that is
 * taller than the window counts after both its ends were visible. above is the
 * approximate number of lines hidden above, if its end was visible but not its beginning.
 * @param {string} digest a change starts over
 */
function useSeen(digest) {
  const top = useRef(/** @type {HTMLElement|null} */ (null))
  const end = useRef(/** @type {HTMLElement|null} */ (null))
  const [seen, setSeen] = useState('')
  const [above, setAbove] = useState(0)
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
      setAbove(at.end && !at.top && top.current ? linesAbove(top.current) : 0)
      if (at.top && at.end && timer === undefined) timer = setTimeout(() => setSeen(digest), readable)
    }, { threshold: 0.95 }) // at the edge of a scroller, fractions of a pixel are missing
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
  return { top, end, seen: seen === digest, above }
}

/** Returns how many lines, at least one, an element's beginning is above its scroller's visible part. @param {HTMLElement} top */
function linesAbove(top) {
  const scroller = top.closest('.log, .approvals')
  const hidden = (scroller?.getBoundingClientRect().top ?? 0) - top.getBoundingClientRect().top
  return Math.max(1, Math.round(hidden / parseFloat(getComputedStyle(top).lineHeight) || 0))
}

/**
 * @param {object} props
 * @param {any} props.card
 * @param {any} props.words
 * @param {boolean} props.mine whether the reader may decide
 * @param {(card: any) => void} [props.changed] gets the current card if it differs
 */
export function Card({ card, words, mine, changed }) {
  if (words.settled) return html`<${SettledCard} card=${card} words=${words} />`
  return html`<${OpenCard} key=${card.digest} card=${card} words=${words} mine=${mine} changed=${changed} />`
}

/**
 * Moves the focus into a panel that a press has opened, and back to the panel's button
 * when it is closed: the pressed button is not there any more, and what is typed next
 * would go to the page's shortcuts.
 * @param {{current: HTMLElement|null}} card
 * @param {string} panel the name of the open one, '' for none
 */
function usePanelFocus(card, panel) {
  const before = useRef(panel)
  useLayoutEffect(() => {
    if (panel === before.current) return
    const to = panel ? ':is(.edit-form, .panel) :is(input, textarea, select), .edit-json textarea' : before.current === 'edit' ? '.opens-edit' : '.menu-button'
    before.current = panel
    const found = /** @type {HTMLElement|null|undefined} */ (card.current?.querySelector(to))
    found?.focus()
  }, [panel])
}

/** Calls decided by a press on this page whose line isn't drawn yet. @type {Set<string>} */
const pressed = new Set()

/** Descriptions of standing answers given here, by call. @type {Map<string, string>} */
const kept = new Map()
/** @type {Set<() => void>} */
const keptListeners = new Set()

/** Parts that are loaded when they are needed. */
const parts = {
  edit: () => import('./card/edit.js').then((m) => m.Edit),
  standing: () => import('./card/standing.js').then((m) => m.Standing),
}

/** Whether a question's form has anything to fill in. @param {any} schema */
const hasFields = (schema) => Object.keys(schema?.properties ?? {}).length > 0

/** @param {any} err */
const wordsOf = (err) => err.status ? err.message : t('nize could not be reached.')

/** @param {any} props */
function OpenCard({ card, words, mine, changed }) {
  const { top, end, seen, above } = useSeen(card.digest)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const [fields, setFields] = useState(/** @type {any[]} */ ([]))
  const [panel, setPanel] = useState(/** @type {{name: string, part?: any, view?: any}|null} */ (null))
  const [reason, setReason] = useState('')
  const [more, setMore] = useState(false)
  const together = useStep(card, seen, mine)
  const root = useRef(/** @type {HTMLElement|null} */ (null))
  usePanelFocus(root, panel?.name ?? '')
  const head = 'card-' + card.call
  const path = 'approvals/' + encodeURIComponent(card.call)
  /**
   * @param {Event} e
   * @param {object|string} decision
   * @param {boolean} [unread] a refusal doesn't require reading the card
   */
  const decide = async (e, decision, unread) => {
    if (!e.isTrusted || !seen && !unread || busy) return
    setBusy(true)
    setProblem('')
    setFields([])
    pressed.add(card.call)
    try {
      const done = await post(path, decision)
      if (done.kept) {
        kept.set(card.call, done.kept)
        keptListeners.forEach((listen) => listen())
      }
    } catch (/** @type {any} */ err) {
      pressed.delete(card.call)
      setProblem(wordsOf(err))
      setFields(err.fields ?? [])
      if (err.card) changed?.(err.card)
    }
    setBusy(false)
  }
  /** @param {string} verb @param {object} [more] */
  const press = (verb, more) => (/** @type {Event} */ e) => decide(e, { verb, digest: card.digest, ...more }, verb === 'cancel' || verb === 'deny')
  /**
   * Opens a button's panel, with the card in its current state.
   * @param {string} name
   * @param {'edit'|'standing'} part
   */
  const open = async (name, part) => {
    setProblem('')
    try {
      const [view, made] = await Promise.all([get(path), parts[part]()])
      if (view.digest !== card.digest || view.words.settled) return changed?.(view)
      setPanel({ name, part: made, view })
    } catch (/** @type {any} */ err) {
      setProblem(wordsOf(err))
    }
  }
  const close = () => { setPanel(null); setProblem(''); setFields([]) }
  /** Escape closes a panel, but not a form, whose contents would be lost. @param {KeyboardEvent} e */
  const key = (e) => { if (e.key === 'Escape' && panel && panel.name !== 'edit' && !e.isComposing) close() }
  const off = !seen || busy
  const unread = mine && !panel && !seen && above > 0
  const toTop = () => top.current?.scrollIntoView({ block: 'start' })
  const all = together.count > 1 ? together.count : 0
  const [firstOf] = Object.keys(together.cards).sort() // explains for all of them why they can't be run together yet
  /** @param {string} label @param {Record<string, string>} standing @param {boolean} [shown] */
  const allow = (label, standing, shown = true) => card.always && shown ? [{ label, off, act: press('approve', { standing }) }] : []
  const own = card.requester === self.id
  /** @type {import('./card/menu.js').Entry[]} */
  const entries = [
    ...allow(t('Allow for 1 hour'), { for: 'me', args: 'any', until: '1h' }, own),
    ...allow(t('Allow for this conversation'), { for: 'conversation', args: 'any', until: 'ever' }, !!card.here),
    ...allow(t('Always allow (these arguments)'), { for: 'me', args: 'these', until: 'ever' }, own),
    ...card.always ? [{ label: t('Allow with limits…'), act: () => open('allow', 'standing') }] : [],
    { label: t('Decline with a reason'), act: () => { setPanel({ name: 'reason' }); setProblem('') }, first: true },
    { label: t('Never'), act: () => open('deny', 'standing') },
  ]
  const details = { label: t('Details'), act: () => setMore(!more), first: true }
  return html`<article class="card" ref=${root} aria-labelledby=${head} data-call=${card.call} onKeyDown=${key}>
    <header class="card-head" ref=${top}><h3 id=${head}>${words.headline}</h3><span class=${'badge ' + (card.effect ?? '')}>${words.badge}</span>${words.name ? html`<small>${words.name}</small>` : ''}</header>
    ${(words.warnings ?? []).map((/** @type {string} */ w) => html`<p class="warning">${w}</p>`)}
    ${panel?.name === 'edit' && card.question ? html`<${Arguments} words=${words} />` : ''}
    ${panel?.name === 'edit' ? html`<${panel.part} question=${!!card.question} call=${card.call} args=${words.args} schema=${panel.view.schema ?? ''} off=${off} problem=${problem} fields=${fields} close=${close}
      run=${(/** @type {Event} */ e, /** @type {string} */ args) => decide(e, `{"verb":"edit","digest":${JSON.stringify(card.digest)},"args":${args}}`)} />` : html`<${Arguments} words=${words} />`}
    <p class="dim">${[...(words.origin ?? []), words.until].filter(Boolean).join(' · ')}${mine && !card.question ? html` · <button type="button" class="quiet details" aria-expanded=${more} onClick=${details.act}>${t('Details')}</button>` : ''}</p>
    ${words.rules?.length ? html`<p class="dim">${words.rules.join(' · ')}</p>` : ''}
    ${more ? html`<pre class="more" tabindex="0" role="group" aria-label=${t('Details')}>${(words.more ?? []).join('\n')}</pre>` : ''}
    ${problem && panel?.name !== 'edit' ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    ${panel?.name === 'allow' || panel?.name === 'deny' ? html`<${panel.part} key=${panel.name} call=${card.call} deny=${panel.name === 'deny'} questions=${panel.view[panel.name]} off=${panel.name === 'deny' ? busy : off} close=${close}
      decide=${(/** @type {Event} */ e, /** @type {any} */ standing) => press(panel.name === 'deny' ? 'deny' : 'approve', { standing })(e)} />` : ''}
    ${panel?.name === 'reason' ? html`<div class="panel" role="group" aria-label=${t('Decline with a reason')}>
      <div class="field"><label for=${head + '-reason'}>${t('Why not? The model reads it.')}</label>
        <textarea id=${head + '-reason'} rows="2" maxlength="500" value=${reason} onInput=${(/** @type {any} */ e) => setReason(e.currentTarget.value)}></textarea></div>
      <div class="buttons">
        <button type="button" class="run" aria-disabled=${busy} onClick=${press('cancel', { reason: reason.trim() })}>${t('Decline')}</button>
        <button type="button" onClick=${close}>${t('Back')}</button>
      </div>
    </div>` : ''}
    ${unread ? html`<p class="unread" id=${head + '-unread'}><button type="button" class="quiet" onClick=${toTop}>${above > 1 ? t('Scroll up: {n} lines not seen yet', { n: above }) : t('Scroll up: one line not seen yet')}</button></p>` : ''}
    <div ref=${end} class="buttons">${card.question ? panel ? '' : html`
      ${card.question.url ? html`<a class="run button" href=${card.question.url} target="_blank" rel="noopener noreferrer" aria-disabled=${off} onClick=${(/** @type {Event} */ e) => off ? e.preventDefault() : press('approve')(e)}>${t('Open {host}', { host: new URL(card.question.url).host })}</a>` : html`<button type="button" class="run opens-edit" aria-disabled=${off} onClick=${(/** @type {Event} */ e) => off ? undefined : hasFields(card.question.schema) ? open('edit', 'edit') : press('approve')(e)}>${t('Answer')}</button>`}
      <button type="button" aria-disabled=${busy} onClick=${press('deny')}>${t('Decline')}</button>
      <button type="button" aria-disabled=${busy} onClick=${press('cancel')}>${t('Cancel')}</button>
      <button type="button" class="quiet" aria-expanded=${more} onClick=${details.act}>${t('Details')}</button>` : mine && !panel ? html`
      <button type="button" class="run" aria-disabled=${off} aria-describedby=${unread ? head + '-unread' : undefined} onClick=${press('approve')}>${t('Run')}</button>
      ${all ? html`<button type="button" aria-disabled=${off || !together.ready} aria-describedby=${together.ready ? undefined : `card-${firstOf}-all`} onClick=${(/** @type {Event} */ e) => together.ready && press('run_all', { cards: together.cards })(e)}>${t('Run all {n}', { n: all })}</button>` : ''}
      <button type="button" aria-disabled=${busy} onClick=${press('cancel')}>${t('Decline')}</button>
      ${words.args_head && words.args ? '' : html`<button type="button" class="opens-edit" aria-disabled=${busy} onClick=${() => open('edit', 'edit')}>${t('Edit')}</button>`}
      <${Menu} label=${t('More')} entries=${[...entries, details]} />
      ${all && !together.ready && firstOf === card.call ? html`<p class="dim" id=${head + '-all'}>${t('All of them run together once each card was on the screen, whole.')}</p>` : ''}` : ''}
      ${mine || card.question ? '' : html`<p class="dim">${t('Others decide about this call.')}</p>
        ${own ? html`<button type="button" aria-disabled=${busy} onClick=${(/** @type {Event} */ e) => decide(e, { verb: 'cancel', digest: card.digest }, true)}>${t('Withdraw')}</button>` : ''}
        <button type="button" class="quiet" aria-expanded=${more} onClick=${details.act}>${t('Details')}</button>`}
    </div>
  </article>`
}

/** The mark before the line of a settled call, by state. @type {Record<string, string>} */
const marks = { done: '✓', failed: '✕', lost: '?', refused: '–', cancelled: '–', expired: '–' }

/** The line that replaces a settled card. @param {any} props */
function SettledCard({ card, words }) {
  const [shows, setOpen] = useState(false)
  const [problem, setProblem] = useState('')
  const busy = useRef(false)
  const [, changed] = useReducer((/** @type {number} */ n) => n + 1, 0)
  useEffect(() => {
    const listen = () => changed(0)
    keptListeners.add(listen)
    listen() // the answer may have been stored after the first draw
    return () => { keptListeners.delete(listen) }
  }, [])
  const line = useRef(/** @type {HTMLElement|null} */ (null))
  useLayoutEffect(() => { // the pressed button is not there any more
    if (pressed.delete(card.call) && (!document.activeElement || document.activeElement === document.body)) line.current?.focus({ preventScroll: true })
  }, [])
  const s = words.settled
  /** @param {Event} e */
  const again = (e) => {
    if (!e.isTrusted || busy.current) return
    busy.current = true
    post('approvals/' + encodeURIComponent(card.call), { verb: card.redo, digest: card.digest }).then(() => setProblem(''), (err) => setProblem(wordsOf(err))).finally(() => { busy.current = false })
  }
  return html`<div class=${'tool settled ' + (['failed', 'lost', 'expired'].includes(card.state) ? 'failed' : card.state)} data-call=${card.call} data-state=${card.state}>
    <button type="button" ref=${line} class="tool-line" aria-expanded=${shows} onClick=${() => setOpen(!shows)}><span class="state-mark" aria-hidden="true">${over.includes(card.state) ? marks[card.state] : html`<span class="spinner"></span>`}</span><span class="tool-name">${s.what}</span>${[s.state, s.who, s.took].filter(Boolean).map((part) => html` <span class="part-of">${part}</span>`)}</button>
    ${kept.has(card.call) ? html`<p class="dim" role="status">${kept.get(card.call)}</p>` : ''}
    ${card.redo ? html`<button type="button" class="redo" onClick=${again}>${card.redo === 'retry' ? t('Retry') : t('Ask again')}</button>` : ''}
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    ${shows ? html`<${CallDetails} id=${card.call} state=${card.state} words=${words} />` : ''}
  </div>`
}
