// @ts-check
// Where a message is written. Enter sends, but never while an input method is
// composing; Shift+Enter breaks the line. What is not sent is kept per
// conversation.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { t } from './words.js'

// nize takes so many bytes.
const longest = 64 << 10

/** @param {string} thread */
const place = (thread) => 'nize.draft.' + (thread || 'new')

/** @param {string} thread */
const readDraft = (thread) => {
  try {
    return localStorage.getItem(place(thread)) ?? ''
  } catch {
    return ''
  }
}

/**
 * @param {string} thread
 * @param {string} text
 */
const keepDraft = (thread, text) => {
  try {
    if (text) localStorage.setItem(place(thread), text)
    else localStorage.removeItem(place(thread))
  } catch {} // it is kept while the page is open
}

/**
 * @param {object} props
 * @param {string} props.thread
 * @param {string} props.state
 * @param {string} [props.closed] why nothing can be sent
 * @param {(text: string) => void} props.send
 * @param {() => void} props.stop
 */
export function Composer({ thread, state, closed, send, stop }) {
  const [text, setText] = useState(() => readDraft(thread))
  const field = useRef(/** @type {HTMLTextAreaElement|null} */ (null))
  const composed = useRef(0) // when an input method last ended
  useEffect(() => setText(readDraft(thread)), [thread])
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
  const tooLong = new TextEncoder().encode(text).length > longest
  const go = () => {
    if (!text.trim() || tooLong || closed) return
    send(text)
    write('')
  }
  /** @param {KeyboardEvent} e */
  const key = (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.altKey || e.ctrlKey || e.metaKey) return
    // Safari says that composing has ended before the key that ended it comes.
    if (e.isComposing || e.keyCode === 229 || Date.now() - composed.current < 50) return
    e.preventDefault()
    go()
  }
  return html`<form class="composer" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); go() }}>
    ${closed ? html`<p class="notice">${closed}</p>` : ''}
    ${tooLong ? html`<p class="problem" role="alert">${t('This message is too long: at most 64 KiB are taken.')}</p>` : ''}
    <div class="composer-row">
      <label class="visually-hidden" for="message">${t('Message to nize')}</label>
      <textarea id="message" ref=${field} rows="1" value=${text} placeholder=${t('Message to nize')} disabled=${!!closed}
        onInput=${(/** @type {any} */ e) => write(e.currentTarget.value)} onKeyDown=${key} onCompositionEnd=${() => { composed.current = Date.now() }}></textarea>
      ${state === 'working' ? html`<button type="button" onClick=${stop}>${t('Stop')}</button>` : ''}
      <button type="submit" class="run" aria-disabled=${!text.trim() || !!closed}>${t('Send')}</button>
    </div>
  </form>`
}
