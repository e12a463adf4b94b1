// @ts-check
// The page's keyboard shortcuts, and their list behind "?".
import { useEffect, useRef } from 'preact/hooks'
import { html } from './html.js'
import { t } from './words.js'

/** @param {EventTarget|null} at whether it is a text field */
const writing = (at) => at instanceof HTMLElement && (at.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName))

/**
 * Moves the focus to the message field, once the page shows it: the person asked for a
 * new conversation. A touch screen would open its keyboard over the suggestions.
 */
export function write() {
  if (matchMedia('(hover: hover)').matches) requestAnimationFrame(() => setTimeout(() => document.getElementById('message')?.focus()))
}

/**
 * @param {object} props
 * @param {(path: string) => void} props.go
 */
export function Keys({ go }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null))
  useEffect(() => {
    /** @param {KeyboardEvent} e */
    const press = (e) => {
      if (writing(e.target) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      if (e.key === '?') dialog.current?.showModal()
      else if (e.key === '/') document.getElementById('message')?.focus()
      else if (e.key === 's') document.getElementById('search')?.focus()
      else if (e.key === 'n') {
        go('/app/')
        write()
      }
      else if (e.key === 'w') go('/app/approvals')
      else return
      e.preventDefault()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [go])
  const keys = [['Enter', t('send')], ['Shift+Enter', t('a new line')], ['↑', t('change your last message')], ['/', t('write a message')], ['s', t('search conversations')], ['n', t('a new conversation')], ['w', t('calls that wait')], ['?', t('these keys')]]
  return html`<dialog ref=${dialog} aria-label=${t('Keys')}>
    <h2>${t('Keys')}</h2>
    <dl>${keys.map(([key, does]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${does}</dd></div>`)}</dl>
    <form method="dialog"><button>${t('Close')}</button></form>
  </dialog>`
}
