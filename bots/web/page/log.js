// @ts-check
// The messages, oldest first. The view follows the end until its reader scrolls up. It is
// not a live region: app.js has one that announces when something begins and ends.
import { Component } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html } from './html.js'
import { Markdown } from './markdown.js'
import { Card } from './card.js'
import { Files, fileWords } from './files.js'
import { AnswerActs, AskedActs } from './acts.js'
import { Avatar, icon, mark } from './icon.js'
import { Question } from './dialog.js'
import { post } from './api.js'
import { Returned } from './returned.js'
import { ViewOf } from './frame.js'
import { ToolLines, folds } from './tool.js'
import { t, time } from './words.js'

/** @typedef {import('./conversation.js').Message} Message */

// Closer to its end than this, in pixels, the view counts as at the end.
const near = 40
// Closer to its beginning than this, earlier messages are loaded.
const above = 300

/**
 * @param {object} props
 * @param {import('./conversation.js').Conversation} props.conversation
 * @param {number} props.tick changes with the conversation
 * @param {(then: () => void) => Promise<void>} props.earlier loads earlier messages; then is called before they are drawn
 * @param {(m: Message) => void} props.again sends a message that was not accepted
 * @param {import('./acts.js').Acts|null} props.acts actions for messages; null if the conversation is on another platform
 * @param {(card: any) => void} props.changed
 */
export function Log({ conversation, tick, earlier, again, acts, changed }) {
  const view = useRef(/** @type {HTMLDivElement|null} */ (null))
  const [atEnd, setAtEnd] = useState(true)
  const follows = useRef(true)
  const top = useRef(0) // the last position, since only a reader scrolls up
  const kept = useRef(/** @type {number|null} */ (null)) // the distance to the end when earlier messages were requested
  const scrolled = () => {
    const v = view.current
    if (!v) return
    follows.current = v.scrollHeight - v.scrollTop - v.clientHeight < near || follows.current && v.scrollTop >= top.current // growth is reported late
    top.current = v.scrollTop
    setAtEnd(follows.current)
    if (conversation.more && v.scrollTop < above) before()
  }
  const toEnd = () => {
    const v = view.current
    if (!v) return
    v.scrollTop = v.scrollHeight
    top.current = v.scrollTop
  }
  /** Keeps the view at the end, but never moves a form in which the reader writes. */
  const follow = () => {
    if (follows.current && !document.activeElement?.closest('.log :is(.edit, .panel, .rewrite)')) toEnd()
  }
  useLayoutEffect(() => {
    const v = view.current
    if (v && kept.current !== null) {
      v.scrollTop = v.scrollHeight - kept.current
      kept.current = null
    } else follow()
  }, [tick])
  useLayoutEffect(() => {
    follows.current = true
    toEnd()
  }, [conversation])
  useEffect(() => {
    if (!view.current?.lastElementChild) return
    const grown = new ResizeObserver(follow) // for example when a picture was loaded or code highlighted
    grown.observe(view.current.lastElementChild)
    return () => grown.disconnect()
  }, [])
  const reading = useRef(false)
  const before = async () => {
    if (reading.current) return
    reading.current = true
    follows.current = false
    await earlier(() => {
      const v = view.current
      if (v) kept.current = v.scrollHeight - v.scrollTop
    })
    reading.current = false
  }
  return html`<div class="log-frame">
    <div class="log" ref=${view} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${t('Conversation')} aria-busy=${conversation.state === 'working'}>
      <h2 class="visually-hidden">${t('Conversation')}</h2>
      <div class="log-inner">
        ${conversation.more ? html`<p class="earlier"><button type="button" class="quiet" onClick=${before}>${t('Show what was said before')}</button></p>` : ''}
        ${grouped(conversation.messages).map((group, i, all) => [begins(group, all[i - 1]) ? html`<div key=${'who/' + (group[0].turn ?? group[0].id)} class="who">${mark()}</div>` : '', html`<${Shown} key=${group[0].turn ?? group[0].id} group=${group} thread=${conversation.id} waiting=${conversation.waiting} again=${again} acts=${acts} changed=${changed} viewed=${group[0].kind === 'images' && conversation.messages.some((m) => m.view && m.call === group[0].call)} asked=${group[0].kind === 'text' ? askedFor(all, i) : undefined} ends=${endsAt(all, i, conversation.state)} />`])}
        ${acts && conversation.state === 'idle' && cutShort(conversation) ? html`<p class="go-on"><button type="button" onClick=${acts.goOn}>${icon('play')}${t('Continue')}</button></p>` : ''}
        ${conversation.state === 'working' && !writes(conversation.messages) ? html`${conversation.messages.findLast((m) => !m.failed)?.kind === 'person' ? html`<div class="who">${mark()}</div>` : ''}<p class="working dim"><span class="spinner" aria-hidden="true"></span>${t('working…')}</p>` : ''}
      </div>
    </div>
    ${atEnd ? '' : html`<button type="button" class="latest" onClick=${() => { follows.current = true; setAtEnd(true); toEnd() }}>${t('Latest')}${icon('arrow-down')}</button>`}
  </div>`
}

/** @param {Message[]} messages whether something visible is already moving */
function writes(messages) {
  const last = messages.findLast((m) => !m.failed)
  return last && !last.final && (last.kind === 'text' || last.kind === 'tool' && last.tool.state === 'running')
}

/**
 * Groups successive lines about successful tools. A tool's line is omitted if its card
 * has all of its content.
 * @param {Message[]} messages
 */
function grouped(messages) {
  const carded = new Set(messages.filter((m) => m.kind === 'card').map((m) => m.call))
  /** @type {Message[][]} */
  const groups = []
  for (const m of messages) {
    if (m.kind === 'tool' && carded.has(m.call)) continue
    if (m.kind === 'card' && m.card.state === 'cancelled' && carded.has(m.card.successor)) continue // it was edited, and the line of the new call says so
    const last = groups[groups.length - 1]
    if (folds(m) && last && folds(last[0])) last.push(m)
    else groups.push([m])
  }
  return groups
}

/**
 * Whether nize's turn ends with a group: 'last' if nothing follows it.
 * @param {Message[][]} groups @param {number} at @param {string} state
 */
const endsAt = (groups, at, state) => at === groups.length - 1 ? state === 'idle' && 'last' : groups[at + 1][0].kind === 'person' && 'before'

/** Returns the message that a group answers. @param {Message[][]} groups @param {number} at */
function askedFor(groups, at) {
  for (let i = at - 1; i >= 0; i--) {
    if (groups[i][0].kind === 'person') return groups[i][0]
  }
}

/** Whether the last answer was stopped or interrupted. @param {import('./conversation.js').Conversation} conversation */
function cutShort({ messages, stopped }) {
  const last = messages.findLast((m) => m.kind !== 'images')
  return !!last && (!!last.cut || stopped && last.kind !== 'person' && last.kind !== 'card')
}

/** Whether nize's part begins with a group of messages. @param {Message[]} group @param {Message[]} [before] */
const begins = (group, before) => group[0].kind !== 'person' && (!before || before[0].kind === 'person')

/** Some messages, drawn again only if they have changed. */
class Shown extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    const { group, waiting } = this.props
    return next.ends !== this.props.ends || next.viewed !== this.props.viewed || next.group.length !== group.length || next.group.some((/** @type {Message} */ m, /** @type {number} */ i) => m !== group[i]) ||
      group[0].kind === 'card' && waiting.includes(group[0].call) !== next.waiting.includes(group[0].call)
  }

  render() {
    return shown(this.props)
  }
}

/** @param {any} props */
function shown({ group, thread, waiting, again, acts, asked, ends, changed, viewed }) {
  const m = group[0]
  switch (m.kind) {
    case 'person':
      return html`<div class="said"><div class="bubble"><span class="visually-hidden">${t('{name} wrote:', { name: m.by ?? t('You') })}</span>${m.files?.length && m.text === fileWords ? '' : html`<div class="prose">${m.text}</div>`}${m.files?.length ? html`<${Files} files=${m.files} thread=${thread} />` : ''}</div>
        ${m.failed ? html`<p class="problem" role="alert">${m.failed} <button type="button" class="quiet" onClick=${() => again(m)}>${t('Send again')}</button></p>` : m.at ? html`<time class="dim" datetime=${m.at}>${time(m.at)}</time>` : ''}<${Avatar} name=${m.by ?? t('You')} />${m.failed ? '' : html`<${AskedActs} m=${m} acts=${acts} />`}</div>`
    case 'text':
      return html`<div class=${'answer' + (m.final ? '' : ' writing')}><span class="visually-hidden">${t('nize answered:')}</span><${Markdown} text=${m.text ?? ''} final=${!!m.final} />${m.share ? html`<${Share} thread=${thread} turn=${m.share} />` : ''}${m.final && ends ? html`<${AnswerActs} m=${m} asked=${asked} acts=${acts} last=${ends === 'last'} />` : ''}</div>`
    case 'tool':
      return html`<${ToolLines} messages=${group} />${m.view ? html`<${ViewOf} key=${'view/' + m.call} call=${m.call} state=${m.tool.state} />` : ''}`
    case 'card':
      return html`<${Card} card=${m.card} words=${m.words} mine=${waiting.includes(m.card.call)} changed=${changed} />${m.view ? html`<${ViewOf} key=${'view/' + m.call} call=${m.call} state=${m.card.state} />` : ''}`
    case 'images':
      return html`<${Returned} message=${m} viewed=${viewed} />`
    case 'error':
      return html`<p class="problem">${m.text}</p>`
  }
  return html`<p class="notice">${m.text}</p>`
}

/** Lets the reader share an answer that only they can read. @param {{thread: string, turn: number}} props */
function Share({ thread, turn }) {
  const [asks, setAsks] = useState(false)
  return html`<p class="share dim">${t('You alone read this answer.')} <button type="button" class="quiet" onClick=${() => setAsks(true)}>${t('Share it…')}</button></p>
    ${asks ? html`<${Question} title=${t('Share this answer?')} yes=${t('Share it')} act=${() => post(`chat/threads/${thread}/share`, { turn })} close=${() => setAsks(false)}>
      <p>${t('Everybody where it was asked for reads it from then on, and so does the model when it answers them.')}</p>
    <//>` : ''}`
}
