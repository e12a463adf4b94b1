// @ts-check
// Lines about tools: what is being called, and how it ended. A line opens to the call's
// arguments and result; several successful ones fold into one.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { CallDetails } from './call.js'
import { span, t } from './words.js'

/** @typedef {import('./conversation.js').Message} Message */

/** The final states of a call. */
export const over = ['done', 'failed', 'refused', 'expired', 'cancelled', 'lost', 'approved']

/** A call's progress: 0 while it waits, 1 while it runs, 2 after it has ended. @param {any} card */
const progress = (card) => !card.words.settled ? 0 : over.includes(card.state) ? 2 : 1

/**
 * Whether a card that a request returned is older than the one on the screen. A call only
 * moves forward, and the stream may report its next state before the response arrives.
 * @param {any} card
 * @param {any} shown the card of the same call on the screen, if there is one
 */
export const isOutdated = (card, shown) => !!shown?.words && progress(card) < progress(shown)

/** @param {{message: Message}} props */
export function ToolLine({ message }) {
  const { line, tool } = message
  const ended = over.includes(tool.state)
  const runs = tool.state === 'running' // planned and pending calls have no animation and no clock
  const failed = ended && tool.state !== 'done'
  const [open, setOpen] = useState(false)
  const passed = useElapsed(message.since ?? 0, runs)
  const took = line.took_ms || passed
  const state = runs ? t('calling…') : line.state.charAt(0).toUpperCase() + line.state.slice(1) // as on a card's line
  const text = html`<span class="tool-name">${line.title}</span> <span class="tool-state part-of">${state}</span>${took > 0 ? html` <span class="part-of">${span(took)}</span>` : ''}${line.brief ? html` <span class="tool-brief part-of">${line.brief}</span>` : ''}`
  return html`<div class=${'tool' + (failed ? ' failed' : '')}>
    ${line.opens && message.call
      ? html`<button type="button" class="tool-line" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${'mark ' + (open ? 'open' : '')} aria-hidden="true"></span>${text}</button>`
      : html`<div class="tool-line">${runs ? html`<span class="spinner" aria-hidden="true"></span>` : html`<span class="mark none" aria-hidden="true"></span>`}${text}</div>`}
    ${open && line.opens && message.call ? html`<${CallDetails} id=${message.call} state=${tool.state} />` : ''}
  </div>`
}

/** Several lines of successful tools. @param {{messages: Message[]}} props */
export function ToolLines({ messages }) {
  const [open, setOpen] = useState(false)
  if (messages.length === 1) return html`<${ToolLine} message=${messages[0]} />`
  return html`<div class="tool">
    <button type="button" class="tool-line" aria-expanded=${open} onClick=${() => setOpen(!open)}><span class=${'mark ' + (open ? 'open' : '')} aria-hidden="true"></span><span class="tool-name">${t('{n} steps', { n: messages.length })}</span><span class="tool-brief">${[...new Set(messages.map((m) => m.line.title))].join(', ')}</span></button>
    ${open ? html`<div class="tool-list">${messages.map((m) => html`<${ToolLine} key=${m.id} message=${m} />`)}</div>` : ''}
  </div>`
}

/** @param {Message} m whether its line may be folded with others */
export const folds = (m) => m.kind === 'tool' && m.tool.state === 'done' && !m.view // a view is shown below its own line

/**
 * The time that something has taken so far, in ms, or its total once it has ended.
 * @param {number} since
 * @param {boolean} runs
 */
function useElapsed(since, runs) {
  const [now, setNow] = useState(Date.now())
  const [ran, setRan] = useState(runs)
  useEffect(() => {
    if (!runs) return setNow(Date.now())
    setRan(true)
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [runs])
  return ran && since ? Math.max(now - since, 0) : 0
}
