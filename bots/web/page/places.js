// @ts-check
// The pages other than conversations: a path, a title, and a module that is loaded when
// the page is opened.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { icon } from './icon.js'
import { t } from './words.js'

/**
 * @typedef {object} PlaceInfo
 * @property {string} path
 * @property {() => string} title
 * @property {() => any} icon
 * @property {() => Promise<any>} load its component, which gets `me`
 * @property {boolean} [admins] whether it is only for admins
 */

/** @type {PlaceInfo[]} */
const places = [
  { path: '/app/usage', title: () => t('Usage'), icon: () => icon('chart-column'), load: async () => (await withStyle('usage', import('./usage/usage.js'))).Usage },
  { path: '/app/servers', title: () => t('Servers and health'), icon: () => icon('server'), load: async () => (await withStyle('house', import('./house/house.js'))).House, admins: true },
  { path: '/app/settings', title: () => t('Settings'), icon: () => icon('settings'), load: async () => (await withStyle('settings', import('./settings/settings.js'))).Settings },
]

/** @param {any} me */
export const placesOf = (me) => places.filter((p) => !p.admins || me.role === 'admin')

/** Returns the page with a path, if there is one. @param {string} path @param {any} me */
export const placeOf = (path, me) => placesOf(me).find((p) => p.path === path)

/**
 * Waits for a module and for the style sheet of its folder.
 * @template T
 * @param {string} name of the folder and its style sheet
 * @param {Promise<T>} module
 */
export async function withStyle(name, module) {
  const href = new URL(`./${name}/${name}.css`, import.meta.url).href
  if (!document.querySelector(`link[href="${href}"]`)) {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = href
    const loaded = new Promise((done, failed) => {
      link.addEventListener('load', done)
      link.addEventListener('error', () => { link.remove(); failed(new Error(href)) })
    })
    document.head.append(link)
    await loaded
  }
  return module
}

/** @param {{place: PlaceInfo, me: any}} props */
export function Place({ place, me }) {
  const [inside, setInside] = useState(/** @type {any} */ (null))
  const [failed, setFailed] = useState(false)
  useEffect(() => { place.load().then((c) => setInside(() => c), () => setFailed(true)) }, [place])
  return html`<div class="place" tabindex="-1">
    <div class="log-inner">
      <h1>${place.title()}</h1>
      ${failed ? html`<p class="problem" role="alert">${t('nize could not be reached.')} <button type="button" onClick=${() => location.reload()}>${t('Try again')}</button></p>`
        : inside ? html`<${inside} me=${me} />` : html`<p class="dim">${t('Loading…')}</p>`}
    </div>
  </div>`
}
