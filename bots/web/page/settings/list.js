// @ts-check
// A list from nize, and a section of the page that shows one.
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { html } from '../html.js'
import { get } from '../api.js'
import { newestOnly } from '../order.js'
import { language, t } from '../words.js'

/**
 * @typedef {object} List
 * @property {any[]|null} items null until they are loaded
 * @property {any} note shown until then
 * @property {(items: any[]) => void} set
 * @property {() => Promise<void>} load loads them again
 */

/**
 * Loads a list.
 * @param {string} path
 * @returns {List}
 */
export function useList(path) {
  const [items, set] = useState(/** @type {any[]|null} */ (null))
  const [failed, setFailed] = useState('')
  const newest = useMemo(newestOnly, [path])
  const load = useCallback(() => newest(() => get(path)).then((all) => { set(all.items); setFailed('') }, (err) => setFailed(err.message)), [path])
  useEffect(() => { load() }, [load, language()]) // nize's texts in it are in the reader's language
  return { items, set, load, note: failed ? html`<p class="problem" role="alert">${failed}</p>` : html`<p class="dim">${t('Loading…')}</p>` }
}

/**
 * An action on a list, and its result message.
 * @param {() => Promise<any>} after
 */
export function useDeed(after) {
  const [said, setSaid] = useState('')
  const [problem, setProblem] = useState('')
  const act = async (/** @type {Promise<any>} */ asked, /** @type {string} */ done) => {
    setSaid('')
    setProblem('')
    try {
      const answer = await asked
      await after()
      setSaid(done)
      return answer
    } catch (/** @type {any} */ err) {
      setProblem(err.status ? err.message : t('nize could not be reached.'))
    }
  }
  const outcome = html`<p class="setting-said" role="status">${said}</p>${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}`
  return { act, outcome, problem: setProblem }
}

/** A button's label with its object, since many buttons have the same word. @param {string} what @param {string} name */
export const named = (what, name) => t('{what}: {name}', { what, name })

/**
 * A section of the settings.
 * @param {object} props
 * @param {string} props.id
 * @param {string} props.title
 * @param {string} props.about
 * @param {any} [props.children]
 */
export function Part({ id, title, about, children }) {
  return html`<section class="settings">
    <h2 id=${id} tabindex="-1">${title}</h2>
    <p class="dim">${about}</p>
    ${children}
  </section>`
}
