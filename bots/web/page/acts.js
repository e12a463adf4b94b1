// @ts-check
// Actions for a message: copy it, ask again, or edit it and ask again. The last two begin
// a new conversation with the earlier messages; the existing one, and what its tools did,
// stays as it is.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { fileWords } from './files.js'
import { icon } from './icon.js'
import { t } from './words.js'

/** @typedef {import('./conversation.js').Message} Message */

/**
 * @typedef {object} Acts
 * @property {(m: Message, text: string) => Promise<void>} rerun asks again with another text, in a branch
 * @property {() => void} goOn asks nize to continue its last answer
 */

/** @param {{text: string}} props */
function CopyText({ text }) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(false), 2000)
    return () => clearTimeout(timer)
  }, [done])
  const label = done ? t('Copied') : t('Copy')
  return html`<button type="button" class="icon-button" title=${label} aria-label=${label} onClick=${() => navigator.clipboard.writeText(text).then(() => setDone(true), () => {})}>${done ? icon('check') : icon('copy')}</button>`
}

/** @param {{m: Message, acts: Acts|null}} props below a person's message */
export function AskedActs({ m, acts }) {
  const [edits, setEdits] = useState(false)
  const text = m.text === fileWords ? '' : m.text ?? ''
  return html`<div class="acts"><${CopyText} text=${text} />
    ${acts && m.at && !m.files?.length ? html`<button type="button" class="icon-button" title=${t('Edit and run again')} aria-label=${t('Edit and run again')} aria-expanded=${edits} onClick=${() => setEdits(!edits)}>${icon('pencil')}</button>` : ''}</div>
    ${edits && acts ? html`<${Edit} text=${text} run=${(/** @type {string} */ now) => acts.rerun(m, now)} close=${() => setEdits(false)} />` : ''}`
}

/** @param {{m: Message, asked?: Message, acts: Acts|null, last: boolean}} props below an answer */
export function AnswerActs({ m, asked, acts, last }) {
  const [problem, setProblem] = useState('')
  const retry = () => asked && acts?.rerun(asked, asked.text ?? '').catch((err) => setProblem(err.status ? err.message : t('nize could not be reached.')))
  return html`<div class=${'acts' + (last ? ' last' : '')}><${CopyText} text=${m.text ?? ''} />
    ${acts && asked?.at && !asked.files?.length ? html`<button type="button" class="icon-button" title=${t('Repeat in a new conversation')} aria-label=${t('Repeat in a new conversation')} onClick=${retry}>${icon('rotate-ccw')}</button>` : ''}
    ${problem ? html`<span class="problem" role="alert">${problem}</span>` : ''}</div>`
}

/** @param {{text: string, run: (text: string) => Promise<void>, close: () => void}} props */
function Edit({ text, run, close }) {
  const field = useRef(/** @type {HTMLTextAreaElement|null} */ (null))
  const [now, setNow] = useState(text)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  useEffect(() => field.current?.focus(), []) // the person just opened it
  /** @param {Event} e */
  const go = async (e) => {
    e.preventDefault()
    if (!now.trim() || busy) return
    setBusy(true)
    try {
      await run(now)
    } catch (/** @type {any} */ err) {
      setProblem(err.status ? err.message : t('nize could not be reached.'))
      setBusy(false)
    }
  }
  return html`<form class="rewrite" onSubmit=${go} onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && close()}>
    <textarea ref=${field} rows="3" aria-label=${t('Your message')} value=${now} onInput=${(/** @type {any} */ e) => setNow(e.currentTarget.value)}></textarea>
    <p class="dim">${t('A new conversation begins here with what was said before. This one stays as it is.')}</p>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    <div class="buttons"><button class="run" aria-disabled=${busy || !now.trim()}>${t('Run again')}</button><button type="button" onClick=${close}>${t('Back')}</button></div>
  </form>`
}
