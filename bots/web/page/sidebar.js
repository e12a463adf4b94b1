// @ts-check
// The person's conversations on all platforms, newest first: search, rename, forget.
import { useEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { patch, post } from './api.js'
import { Question } from './dialog.js'
import { forgetDraft } from './drafts.js'
import { Avatar, icon, mark } from './icon.js'
import { placesOf } from './places.js'
import { write } from './keys.js'
import { Notifications } from './notify.js'
import { daysAgo, t, time } from './words.js'

/**
 * @param {object} props
 * @param {import('./threads.js').Threads} props.threads
 * @param {{id: string, title: string}} props.current
 * @param {number} props.waiting
 * @param {string} props.place path of the page
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
  const begin = { ...to('/app/'), onClick: (/** @type {MouseEvent} */ e) => { to('/app/').onClick(e); if (e.defaultPrevented) write() } }
  return html`<nav class="sidebar" aria-label=${t('Conversations')}>
    <div class="brand">${mark()}nize</div>
    <a class="new" ...${begin}>${icon('square-pen')}${t('New conversation')}</a>
    <a class="waiting" ...${to('/app/approvals')}>${icon('inbox')}${t('Pending approvals')}${waiting ? html` <span class="count">${waiting}</span>` : ''}</a>
    <h2 class="visually-hidden">${t('Conversations')}</h2>
    <${Search} threads=${threads} />
    <div class="threads">${byAge(threads.items).map(([key, age, list]) => html`<section key=${key} aria-label=${age}><h3>${age}</h3><ul>${list.map((th) => html`<${Item} key=${th.id} thread=${th} title=${th.title || th.id === current.id && current.title || ''} to=${to} threads=${threads} left=${() => th.id === current.id && go('/app/')} />`)}</ul></section>`)}</div>
    ${threads.items.length ? '' : html`<p class="dim">${threads.words ? t('Nothing found.') : t('No conversations yet.')}</p>`}
    ${threads.more ? html`<button type="button" class="quiet" onClick=${threads.next}>${t('Older conversations')}</button>` : ''}
    <div class="places">${placesOf(me).map((p) => html`<a key=${p.path} ...${to(p.path)}>${p.icon()}${p.title()}</a>`)}</div>
    <div class="foot"><${Notifications} /></div>
    ${me ? html`<div class="me"><${Avatar} name=${me.name} /><div><strong><bdi>${me.name}</bdi></strong><a href="/login">${t('Signed-in browsers')}</a></div></div>` : ''}
  </nav>`
}

/**
 * Groups conversations by the age of their last message, newest first.
 * @param {any[]} list
 * @returns {[string, string, any[]][]} a name that is the same in all languages, one for people, and the conversations
 */
function byAge(list) {
  /** @type {[string, string, any[]][]} */
  const groups = []
  for (const th of list) {
    const days = daysAgo(th.updated)
    const [key, age] = days < 1 ? ['day', t('Today')] : days < 2 ? ['before', t('Yesterday')] : days < 8 ? ['week', t('Last 7 days')] : ['older', t('Older')]
    const last = groups[groups.length - 1]
    if (last?.[0] === key) last[2].push(th)
    else groups.push([key, age, [th]])
  }
  return groups
}

/** @param {{threads: import('./threads.js').Threads}} props */
function Search({ threads }) {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined))
  useEffect(() => () => clearTimeout(timer.current), [])
  return html`<div class="search-of">${icon('search')}<input id="search" type="search" aria-label=${t('Search conversations')} placeholder=${t('Search conversations')}
    onInput=${(/** @type {any} */ e) => {
      const words = e.currentTarget.value.trim()
      clearTimeout(timer.current)
      timer.current = setTimeout(() => threads.search(words), 200)
    }} /></div>`
}

/** @param {any} props */
function Item({ thread: th, title, to, threads, left }) {
  const [open, setOpen] = useState(false)
  const [doing, setDoing] = useState('')
  const name = title || t('Without a title')
  const done = () => { setDoing(''); setOpen(false) }
  const forget = async () => {
    await post(`chat/threads/${th.id}/forget`)
    forgetDraft(th.id)
    left()
    await threads.load()
  }
  return html`<li>
    ${doing === 'rename' ? html`<${Rename} thread=${th} title=${title} threads=${threads} done=${done} />` : html`<div class="thread">
      <a ...${to('/app/c/' + th.id)} title=${`${name}\n${th.address.surface === 'web' ? '' : surface(th.address.surface) + ' · '}${time(th.updated)}`}>${iconOf(th.address.surface)}<span class="of"><bdi>${name}</bdi>${th.address.surface === 'web' ? '' : html`<span class="visually-hidden"> ${surface(th.address.surface)}</span>`}${th.found ? html`<${Found} text=${th.found} words=${threads.words} />` : ''}</span></a>
      <button type="button" class="icon-button more" aria-expanded=${open} aria-label=${t('More about {name}', { name })} onClick=${() => setOpen(!open)}>${icon('ellipsis')}</button>
    </div>`}
    ${open && !doing ? html`<div class="thread-menu"><button type="button" class="quiet" onClick=${() => setDoing('rename')}>${t('Rename')}</button><button type="button" class="quiet" onClick=${() => setDoing('forget')}>${t('Forget…')}</button></div>` : ''}
    ${doing === 'forget' ? html`<${Question} title=${t('Forget this conversation?')} yes=${t('Erase it')} act=${forget} close=${done}>
      <p><strong><bdi>${name}</bdi></strong></p>
      <p>${t('What was said in it is erased for everybody, with its files and with what its calls were given and returned. This can’t be taken back.')}</p>
      ${['slack', 'discord'].includes(th.address.surface) ? html`<p>${t('What stands on {surface} stays there.', { surface: surface(th.address.surface) })}</p>` : ''}
    <//>` : ''}
  </li>`
}

/**
 * Where the search words occur.
 * @param {{text: string, words: string}} props
 */
function Found({ text, words }) {
  const [word] = words.toLowerCase().split(/\s+/).sort((a, b) => b.length - a.length)
  const at = text.toLowerCase().indexOf(word)
  return html`<span class="found">${at < 0 ? text : [text.slice(0, at), html`<mark>${text.slice(at, at + word.length)}</mark>`, text.slice(at + word.length)]}</span>`
}

/** @param {any} props */
function Rename({ thread, title, threads, done }) {
  const field = useRef(/** @type {HTMLInputElement|null} */ (null))
  const [problem, setProblem] = useState('')
  useEffect(() => { field.current?.focus(); field.current?.select() }, []) // the person just opened it
  /** @param {Event} e */
  const save = async (e) => {
    e.preventDefault()
    const now = field.current?.value.trim() ?? ''
    try {
      if (now && now !== title) await patch(`chat/threads/${thread.id}`, { title: now })
    } catch (/** @type {any} */ err) {
      return setProblem(err.status ? err.message : t('nize could not be reached.'))
    }
    done()
    threads.load()
  }
  return html`<form class="rename" onSubmit=${save} onKeyDown=${(/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && done()}>
    <input ref=${field} value=${title} maxlength="120" aria-label=${t('Title')} />
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : ''}
    <div class="buttons"><button class="run">${t('Save')}</button><button type="button" onClick=${done}>${t('Back')}</button></div>
  </form>`
}

/** @param {string} name of a surface */
export function iconOf(name) {
  switch (name) {
    case 'slack': return icon('hash')
    case 'discord': return icon('messages-square')
    case 'terminal': return icon('terminal')
    case 'http':
    case 'mcp': return icon('plug')
  }
  return icon('message-square')
}

/** @param {string} name returns the usual spelling of a surface */
export function surface(name) {
  return { slack: 'Slack', discord: 'Discord', terminal: t('terminal'), http: t('an app'), mcp: t('an app') }[name] ?? name
}
