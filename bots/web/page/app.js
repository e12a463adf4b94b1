// @ts-check
// The page: the open conversation, the stream of its events, and the person's actions.
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { get, newKey, patch, post, signIn, upload, zone } from './api.js'
import { follow } from './events.js'
import { Conversation } from './conversation.js'
import { Sidebar, surface } from './sidebar.js'
import { Log } from './log.js'
import { Composer } from './composer.js'
import { Suggestions } from './suggestions.js'
import { Begin } from './begin.js'
import { ChoicesBar } from './choices.js'
import { dropUnsent, keepDraft, keepUnsent, readUnsent } from './drafts.js'
import { useThreads } from './threads.js'
import { Approvals } from './approvals.js'
import { icon } from './icon.js'
import { Keys } from './keys.js'
import { heldBy, self } from './self.js'
import { Place, placeOf } from './places.js'
import { fileWords } from './files.js'
import { notify, notifyWaiting } from './notify.js'
import { inOrder } from './order.js'
import { isOutdated } from './tool.js'
import { language, t } from './words.js'

/** @param {string} path returns the conversation of a path, '' for none */
const threadOf = (path) => /^\/app\/c\/([^/]+)$/.exec(path)?.[1] ?? ''

/** @param {string} id returns the key of a message from its id on the page */
const keyOf = (id) => id.slice(id.lastIndexOf(':') + 1)

/** @param {{me: any}} props */
export function App({ me }) {
  const [place, setPlace] = useState(location.pathname)
  const threads = useThreads()
  const [begins, setBegins] = useState(/** @type {import('./choices.js').Choices} */ ({})) // choices for the next conversation
  const [address, setAddress] = useState('') // URL of a conversation on another platform
  const [link, setLink] = useState('open')
  const [tick, bump] = useReducer((/** @type {number} */ n) => n + 1, 0)
  const [drawer, setDrawer] = useState(false)
  const [said, setSaid] = useState('')
  const [problem, setProblem] = useState('')
  const [pictures, setPictures] = useState(true) // whether the model accepts pictures, as far as known
  const [written, setWritten] = useState('') // text that a suggestion puts into the field
  const thread = threadOf(place)
  const there = placeOf(place, me)
  const order = useMemo(inOrder, [])
  const began = useRef(/** @type {Conversation|null} */ (null)) // a conversation that this page just began
  const last = useRef(/** @type {Conversation|null} */ (null))
  const conversation = useMemo(() => {
    const now = began.current?.id === thread ? began.current : new Conversation(thread)
    if (last.current) now.waiting = last.current.waiting // until the new stream reports it
    return last.current = now
  }, [thread])

  const go = useCallback((/** @type {string} */ path) => {
    if (path !== location.pathname) history.pushState(null, '', path)
    setPlace(location.pathname)
    setDrawer(false)
    setProblem('')
  }, [])
  useEffect(() => {
    const back = () => setPlace(location.pathname)
    addEventListener('popstate', back)
    return () => removeEventListener('popstate', back)
  }, [])

  useEffect(() => {
    if (!drawer) return
    const close = (/** @type {KeyboardEvent} */ e) => { if (e.key === 'Escape') setDrawer(false) }
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [drawer])

  const latest = useRef(threads)
  latest.current = threads

  useEffect(() => {
    let frame = 0
    const draw = () => {
      frame ||= requestAnimationFrame(() => { frame = 0; bump(0) })
      if (document.hidden) bump(0) // a hidden page gets no animation frames
    }
    let before = conversation.state
    let opened = false // an earlier stream may have missed what happened elsewhere
    let told = false // whether the calls pending at the stream's start were reported
    const end = follow(conversation.id, {
      state: (state) => setLink(state),
      event: (name, data) => {
        const waited = conversation.waiting
        conversation.apply(name, data)
        draw()
        if (name === 'thread') restore(conversation)
        if (name === 'thread') {
          if (opened) latest.current.load()
          else if (data.thread) latest.current.renew(conversation.id, { title: data.thread.title })
          opened = true
        }
        if (name === 'title') latest.current.renew(conversation.id, { title: data.title })
        if (name === 'waiting') {
          if (told && conversation.waiting.some((id) => !waited.includes(id))) setSaid(t('A call needs your approval.'))
          told = true
          notifyWaiting(conversation.waiting, t('A call needs your approval.'), '/app/approvals')
        }
        if ((name === 'state' || name === 'thread') && conversation.state !== before) { // the turn may have begun before the stream did
          if (name === 'state') latest.current.renew(conversation.id, { updated: new Date().toISOString() })
          if (conversation.state === 'working') setSaid(t('nize is answering.'))
          if (conversation.state === 'idle') {
            setSaid(t('nize has answered.'))
            notify(t('nize has answered.'), conversation.id, '/app/c/' + conversation.id)
          }
        }
        before = conversation.state
      },
    })
    return () => {
      end()
      cancelAnimationFrame(frame)
    }
  }, [conversation])

  const first = conversation.messages.find((m) => m.kind === 'person')?.text ?? '' // there is no title before the first answer
  const title = conversation.thread?.title || first.slice(0, 60) || there?.title() || (place === '/app/approvals' ? t('Pending approvals') : '')
  const waiting = conversation.waiting.length
  useEffect(() => {
    document.title = (waiting ? `(${waiting}) ` : '') + (title ? title + ' – nize' : 'nize')
  }, [title, waiting])

  /** Shows messages that were sent but not accepted, unless nize has them. @param {Conversation} to */
  const restore = (to) => {
    for (const { key, text, instead } of readUnsent(to.id)) {
      const id = `said/${to.id}:${key}`
      if (to.messages.some((m) => m.id === id && !m.failed)) {
        if (!to.sent.some((m) => m.id === id)) dropUnsent(to.id, key)
      } else to.say({ id, kind: 'person', text, by: me.name, failed: t('This was not sent.'), instead, local: to.messages.find((m) => m.id === id)?.local })
    }
  }
  /** @param {Conversation} to @param {string} key @param {string} text @param {File[]} [local] @param {string} [instead] */
  const deliver = async (to, key, text, local = [], instead = '') => {
    const id = `said/${to.id}:${key}`
    const m = { id, kind: 'person', text: text || fileWords, by: me.name, local, instead, files: local.map((f) => ({ id: f.name, name: f.name, size: f.size })) }
    to.say(m)
    bump(0)
    keepUnsent(to.id, { key, text, instead })
    try {
      const files = []
      for (const f of local) files.push({ id: (await upload(`chat/threads/${to.id}/files`, f)).id, name: f.name })
      await post(`chat/threads/${to.id}/messages`, { key, text, files, instead })
      dropUnsent(to.id, key)
    } catch (/** @type {any} */ err) {
      if (err.status === 401) setLink('signedOut')
      to.say({ ...m, failed: err.status === 401 ? t('You are signed out.') : err.status ? err.message : t('nize could not be reached.') })
      bump(0)
    }
  }
  /** @param {import('./composer.js').Writing} writing */
  const send = async ({ text, files, instead }) => {
    if (thread) return deliver(conversation, newKey(), text, files, instead && keyOf(instead))
    try {
      const { streaming, ...begin } = begins
      const th = await post('chat/threads', { zone: zone(), locale: language(), ...begin })
      if (streaming) await patch('chat/threads/' + th.id, { streaming })
      const to = new Conversation(th.id)
      began.current = to
      setBegins({})
      go('/app/c/' + th.id)
      await deliver(to, newKey(), text, files)
    } catch (/** @type {any} */ err) {
      keepDraft('', text) // keep the text
      setProblem(err.status ? err.message : t('nize could not be reached.'))
      if (err.status === 401) setLink('signedOut')
    }
  }
  const again = (/** @type {any} */ m) => deliver(conversation, keyOf(m.id), m.text === fileWords ? '' : m.text, m.local, m.instead)
  /** @param {import('./choices.js').Choices} change */
  const choose = async (change) => {
    if (!thread) return setBegins({ ...begins, ...change })
    const { answer } = await order(() => patch('chat/threads/' + thread, change))
    for (const name of Object.keys(change)) if (conversation.thread) conversation.thread[name] = answer[name] // the stream may have reported a newer title or state meanwhile
    bump(0)
  }
  /** Begins a conversation with a copy of this one up to a message. @param {string} before the message's id, '' for all */
  const branch = async (before) => {
    const th = await post(`chat/threads/${conversation.id}/branch`, { before })
    const to = new Conversation(th.id)
    began.current = to
    go('/app/c/' + th.id)
    return to
  }
  const rerun = async (/** @type {any} */ m, /** @type {string} */ text) => deliver(await branch(m.id), newKey(), text)
  const goOn = () => deliver(conversation, newKey(), t('Go on where you stopped.'))
  const goOnHere = () => branch('').then(() => {}, (err) => setProblem(err.status ? err.message : t('nize could not be reached.')))
  const stop = () => { conversation.stopped = true; return post(`chat/threads/${conversation.id}/stop`).catch((err) => setProblem(err.message)) }
  /** @param {() => void} then */
  const earlier = (then) => get(`chat/threads/${conversation.id}?before=${conversation.from}`).then((data) => { then(); conversation.before(data); bump(0) }, (err) => setProblem(err.message))
  const changed = (/** @type {any} */ card) => {
    const shown = conversation.messages.find((m) => m.id === card.call)
    if (shown?.card && isOutdated(card, { ...shown.card, words: shown.words })) return
    conversation.put({ id: card.call, kind: 'card', call: card.call, card, words: card.words })
    bump(0)
  }

  const held = conversation.thread?.address.surface
  const elsewhere = held && held !== 'web' ? thread : ''
  useEffect(() => {
    setAddress('')
    if (elsewhere) get(`chat/threads/${elsewhere}/link`).then((found) => setAddress(/^https?:/.test(found.url) ? found.url : ''), () => {})
  }, [elsewhere])
  const closed = elsewhere && ['terminal', 'http'].includes(held) && conversation.thread?.user === self.id ? html`${icon('terminal')} ${t('This conversation is held on {surface}.', { surface: surface(held) })} <button type="button" class="run" onClick=${goOnHere}>${t('Continue here')}</button>` : elsewhere ? html`${t('This conversation is held on {surface}. Go on with it there.', { surface: surface(held) })}${address ? html` <a class="button" href=${address} target="_blank" rel="noopener noreferrer">${t('Open in {surface}', { surface: surface(held) })}</a>` : ''}` : ''
  return html`<div class=${'page' + (drawer ? ' drawer' : '')}>
    <a class="skip" href="#main">${t('To the conversation')}</a>
    <header class="top">
      <button type="button" class="icon-button menu" aria-expanded=${drawer} onClick=${() => setDrawer(!drawer)}>${drawer ? icon('x') : icon('menu')}<span class="visually-hidden">${t('Menu')}</span>${waiting ? html` <span class="count">${waiting}</span>` : ''}</button>
      <strong class="title"><bdi>${title || 'nize'}</bdi></strong>
      <a class="icon-button" href="/app/" aria-label=${t('New conversation')} onClick=${(/** @type {MouseEvent} */ e) => { if (e.metaKey || e.ctrlKey) return; e.preventDefault(); go('/app/') }}>${icon('square-pen')}</a>
    </header>
    <${Sidebar} threads=${threads} current=${{ id: thread, title }} waiting=${waiting} place=${place} me=${me} go=${go} />
    <button type="button" class="scrim" aria-label=${t('Close')} tabindex="-1" onClick=${() => setDrawer(false)}></button>
    <main id="main" tabindex="-1">
      ${link === 'signedOut' ? html`<p class="banner" role="alert">${t('You are signed out. What you have written is kept.')} <button type="button" onClick=${signIn}>${t('Sign in')}</button></p>` : ''}
      ${link === 'away' ? html`<p class="banner" role="status">${t('The connection is gone; trying again…')}</p>` : ''}
      ${problem ? html`<p class="banner" role="alert">${problem}</p>` : ''}
      ${there ? html`<${Place} key=${there.path} place=${there} me=${me} />` : place === '/app/approvals'
        ? html`<${Approvals} waiting=${conversation.waiting} tick=${link === 'open' ? 1 : 0} />`
        : link === 'gone' ? html`<div class="empty"><h1>${t('There is no such conversation.')}</h1><p>${t('It was erased, or it is somebody else\u2019s.')}</p></div>`
        : html`${thread ? html`<h1 class="visually-hidden"><bdi>${title || t('Without a title')}</bdi></h1><${Log} conversation=${conversation} tick=${tick} earlier=${earlier} again=${again} acts=${closed ? null : { rerun, goOn }} changed=${changed} />` : html`<${Begin} me=${me} write=${setWritten} go=${go} />`}
          ${closed ? '' : html`<${Suggestions} key=${thread} send=${send} />`}
          <${Composer} thread=${thread} state=${conversation.state} closed=${closed} last=${conversation.lastOf(me.name)} held=${heldBy(conversation)} written=${written} taken=${() => setWritten('')} pictures=${pictures} send=${send} stop=${stop}>${closed ? '' : html`<${ChoicesBar} key=${thread} chosen=${thread ? conversation.thread ?? {} : begins} choose=${choose} known=${setPictures} />`}<//>`}
    </main>
    <${Keys} go=${go} />
    <div class="visually-hidden" role="status" aria-live="polite">${said}</div>
  </div>`
}
