// @ts-check
// The list of one's conversations, newest first, wherever they are held.
import { html } from './html.js'
import { placesOf } from './places.js'
import { t, time } from './words.js'

/**
 * @param {object} props
 * @param {any[]} props.threads
 * @param {{id: string, title: string}} props.current
 * @param {number} props.waiting
 * @param {string} props.place the address of the page
 * @param {any} props.me
 * @param {(path: string) => void} props.go
 */
export function Sidebar({ threads, current, waiting, place, me, go }) {
  /** @param {string} path */
  const to = (path) => ({
    href: path,
    'aria-current': place === path ? 'page' : undefined,
    onClick: (/** @type {MouseEvent} */ e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return
      e.preventDefault()
      go(path)
    },
  })
  return html`<nav class="sidebar" aria-label=${t('Conversations')}>
    <a class="new" ...${to('/app/')}>+ ${t('New conversation')}</a>
    <a class="waiting" ...${to('/app/approvals')}>${t('Waiting')}${waiting ? html` <span class="count">${waiting}</span>` : ''}</a>
    <h2>${t('Conversations')}</h2>
    <ul>${threads.map((th) => html`<li key=${th.id}><a ...${to('/app/c/' + th.id)} title=${th.title || ''}><bdi>${th.title || th.id === current.id && current.title || t('Without a title')}</bdi><small class="dim">${th.address.surface === 'web' ? '' : surface(th.address.surface) + ' · '}${time(th.updated)}</small></a></li>`)}</ul>
    ${threads.length ? '' : html`<p class="dim">${t('None as yet.')}</p>`}
    <div class="places">${placesOf(me).map((p) => html`<a key=${p.path} ...${to(p.path)}>${p.title()}</a>`)}</div>
    <p class="me dim">${me ? html`${me.name} · <a href="/login">${t('Signed-in browsers')}</a>` : ''}</p>
  </nav>`
}

/** @param {string} name of a surface as people write it */
export function surface(name) {
  return { slack: 'Slack', discord: 'Discord', terminal: t('terminal'), http: t('an app'), mcp: t('an app') }[name] ?? name
}
