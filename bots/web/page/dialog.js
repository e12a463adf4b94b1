// @ts-check
// A dialog that asks before an action that can't be undone.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { t } from './words.js'

/**
 * @param {object} props
 * @param {string} props.title
 * @param {any} props.children what would happen
 * @param {string} props.yes label of the confirming button
 * @param {() => Promise<void>} props.act
 * @param {() => void} props.close
 */
export function Question({ title, children, yes, act, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null))
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  useEffect(() => dialog.current?.showModal(), [])
  /** @param {Event} e */
  const go = async (e) => {
    if (!e.isTrusted || busy) return
    setBusy(true)
    try {
      await act()
      dialog.current?.close()
    } catch (/** @type {any} */ err) {
      setProblem(err.status ? err.message : t('nize could not be reached.'))
      setBusy(false)
    }
  }
  return html`<dialog ref=${dialog} class="question" aria-label=${title} onClose=${close}>
    <h2>${title}</h2>
    ${children}
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    <div class="buttons"><button type="button" onClick=${() => dialog.current?.close()}>${t('Back')}</button><button type="button" class="danger" aria-disabled=${busy} onClick=${go}>${yes}</button></div>
  </dialog>`
}
