// @ts-check
// The field for messages, with their files. Enter sends, but never while an input method
// is composing; Shift+Enter inserts a line break; ↑ takes the last message back if it was
// not answered. Unsent text is kept per conversation.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { keepDraft, readDraft } from './drafts.js'
import { Chosen, fileWords, useDrop, wrongWith } from './files.js'
import { icon } from './icon.js'
import { t } from './words.js'

// The largest message that nize accepts, in bytes.
const longest = 64 << 10

/**
 * @typedef {object} Writing
 * @property {string} text
 * @property {File[]} files
 * @property {string} [instead] the id of the last message if this one replaces it
 */

/**
 * @param {object} props
 * @param {string} props.thread
 * @param {string} props.state
 * @param {any} [props.closed] why nothing can be written
 * @param {any} [props.children] shown above the field
 * @param {import('./conversation.js').Message} [props.last] the person's last message, if it was not answered
 * @param {{withdraws: number, waits: number}} props.held what a message does to pending calls
 * @param {string} [props.written] text that a suggestion puts into the field
 * @param {() => void} [props.taken] called after that
 * @param {boolean} [props.pictures] whether the model accepts pictures
 * @param {(w: Writing) => void} props.send
 * @param {() => void} props.stop
 */
export function Composer({ thread, state, closed, children, last, held, written, taken, pictures = true, send, stop }) {
  const [text, setText] = useState(() => readDraft(thread))
  const [files, setFiles] = useState(/** @type {File[]} */ ([]))
  const [instead, setInstead] = useState('')
  const field = useRef(/** @type {HTMLTextAreaElement|null} */ (null))
  const picker = useRef(/** @type {HTMLInputElement|null} */ (null))
  const composed = useRef(0) // when composing last ended
  useEffect(() => {
    setText(readDraft(thread))
    setFiles([])
    setInstead('')
  }, [thread])
  useLayoutEffect(() => {
    const f = field.current
    if (!f) return
    f.style.height = 'auto'
    f.style.height = Math.min(f.scrollHeight, innerHeight * 0.4) + 'px'
  }, [text])
  /** @param {string} now */
  const write = (now) => {
    setText(now)
    keepDraft(thread, now)
  }
  useEffect(() => {
    if (!written) return
    write(written)
    taken?.()
    field.current?.focus()
  }, [written])
  const add = useCallback((/** @type {File[]} */ more) => setFiles((old) => [...old, ...more.filter((f) => !old.some((o) => o.name === f.name && o.size === f.size && o.lastModified === f.lastModified))]), [])
  const over = useDrop(closed ? null : add)
  const tooLong = new TextEncoder().encode(text).length > longest
  const wrong = wrongWith(files)
  const ready = !!(text.trim() || files.length) && !tooLong && !wrong && !closed
  const go = () => {
    if (!ready) return
    send({ text, files, instead })
    write('')
    setFiles([])
    setInstead('')
  }
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    // Safari reports the end of composing before the key that ended it.
    if (e.isComposing || e.keyCode === 229 || Date.now() - composed.current < 50 || e.shiftKey || e.altKey || e.ctrlKey || e.metaKey) return
    if (e.key === 'Enter') go()
    else if (e.key === 'ArrowUp' && !text && last) {
      setInstead(last.id)
      write(last.text === fileWords ? '' : last.text ?? '')
    } else if (e.key === 'Escape' && instead) {
      setInstead('')
      write('')
    } else return
    e.preventDefault()
  }
  /** @param {ClipboardEvent} e */
  const paste = (e) => {
    const files = [...e.clipboardData?.files ?? []]
    const pasted = e.clipboardData?.getData('text/plain') ?? ''
    const inField = new TextEncoder().encode(text + pasted).length <= longest
    if (!files.length && inField) return
    e.preventDefault()
    add(files.length ? files : [new File([pasted], 'pasted.txt', { type: 'text/plain' })]) // it is too long for the field
  }
  return html`<form class=${'composer' + (over ? ' over' : '')} onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); go() }}>
    ${children}
    ${closed ? html`<p class="notice">${closed}</p>` : ''}
    ${over ? html`<p class="notice" role="status">${t('Drop the files to send them with your message.')}</p>` : ''}
    ${instead ? html`<p class="notice" role="status">${t('This replaces your last message, which is not answered yet. Esc leaves it as it is.')}</p>` : ''}
    <div role="status">${held.withdraws && !closed ? html`<p class="dim held">${held.withdraws > 1 ? t('Sending a message withdraws your calls that wait.') : t('Sending a message withdraws your call that waits.')}</p>` : ''}
      ${held.waits && !closed ? html`<p class="dim held">${t('Others decide about a call of yours. nize answers what you write after that.')}</p>` : ''}</div>
    ${tooLong ? html`<p class="problem" role="alert">${t('This message is too long: at most 64 KiB are taken.')}</p>` : ''}
    ${wrong ? html`<p class="problem" role="alert">${wrong}</p>` : ''}
    ${closed ? '' : html`<div class="composer-box"><${Chosen} files=${files} pictures=${pictures} drop=${(/** @type {File} */ f) => setFiles(files.filter((o) => o !== f))} />
    <div class="composer-row">
      <button type="button" class="icon-button attach" aria-label=${t('Add files')} title=${t('Add files')} onClick=${() => picker.current?.click()}>${icon('paperclip')}</button>
      <input type="file" multiple hidden ref=${picker} onChange=${(/** @type {any} */ e) => { add([...e.currentTarget.files]); e.currentTarget.value = '' }} />
      <label class="visually-hidden" for="message">${t('Message to nize')}</label>
      <textarea id="message" ref=${field} rows="1" value=${text} placeholder=${t('Message to nize')} onPaste=${paste}
        onInput=${(/** @type {any} */ e) => write(e.currentTarget.value)} onKeyDown=${key} onCompositionEnd=${() => { composed.current = Date.now() }}></textarea>
      ${state === 'working' ? html`<button type="button" class="stop" onClick=${stop}>${icon('square')}${t('Stop')}</button>` : ''}
      <button type="submit" class="run" aria-disabled=${!ready} aria-label=${t('Send')} title=${t('Send')}>${icon('arrow-up')}</button>
    </div></div>`}
  </form>`
}
