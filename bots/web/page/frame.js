// @ts-check
// The place of a tool's view. The code that shows it is loaded when one becomes visible.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { withStyle } from './places.js'
import { suggest } from './suggestions.js'

/**
 * @typedef {object} Page what the page offers to a view
 * @property {(server: string, text: string) => Promise<boolean>} suggest shows a suggested message to the person
 */

/** @type {Page} */
const host = { suggest }

/**
 * @param {object} props
 * @param {string} props.call
 * @param {string} props.state of the call
 */
export function ViewOf({ call, state }) {
  const place = useRef(/** @type {HTMLDivElement|null} */ (null))
  const [View, setView] = useState(/** @type {any} */ (null))
  useEffect(() => {
    const watch = new IntersectionObserver((entries) => {
      if (!entries.some((e) => e.isIntersecting)) return
      watch.disconnect()
      withStyle('view', import('./view/view.js')).then((m) => setView(() => m.View), () => {}) // the plain result is shown
    }, { rootMargin: '400px' })
    if (place.current) watch.observe(place.current)
    return () => watch.disconnect()
  }, [])
  return html`<div class="view-place" ref=${place}>${View ? html`<${View} call=${call} state=${state} host=${host} />` : ''}</div>`
}
