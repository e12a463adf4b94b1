// @ts-check
// Markdown as elements: marked's lexer makes tokens, which become vnodes. There is never a
// string of HTML, so text that looks like HTML is shown as text.
//
// A text that is being written is parsed from its last open block on: the blocks before it
// are settled, and neither parsed nor drawn again. When it is complete, all of it is
// parsed, since a link may be defined at its end.
import { Component, Fragment } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import { Lexer } from 'marked'
import { html } from './html.js'
import { Code } from './code.js'

/** @typedef {any} Token */

// Deeper nesting is shown as text.
const deepest = 16

/** @param {string} text */
const lex = (text) => new Lexer({ gfm: true }).lex(text)

/**
 * Returns the blocks of a text.
 * @param {string} text
 * @param {boolean} final
 */
function useBlocks(text, final) {
  const kept = useRef({ prefix: '', blocks: /** @type {Token[]} */ ([]) })
  return useMemo(() => {
    if (final) return lex(text)
    let { prefix, blocks } = kept.current
    if (!text.startsWith(prefix)) {
      prefix = ''
      blocks = []
    }
    const open = lex(text.slice(prefix.length))
    let settled = open.length - 1
    while (settled > 0 && open[settled].type === 'space') settled--
    for (const token of open.slice(0, Math.max(settled, 0))) {
      prefix += token.raw
      blocks = [...blocks, token]
    }
    // The lexer changes some whitespace; then nothing is settled.
    if (!text.startsWith(prefix)) {
      kept.current = { prefix: '', blocks: [] }
      return lex(text)
    }
    kept.current = { prefix, blocks }
    return [...blocks, ...open.slice(Math.max(settled, 0))]
  }, [text, final])
}

/** @param {{text: string, final: boolean}} props */
export function Markdown({ text, final }) {
  const blocks = useBlocks(text, final)
  return html`<div class="markdown">${blocks.map((token, i) => html`<${Block} key=${i} token=${token} />`)}</div>`
}

/** One block, drawn again only if its content has changed. */
class Block extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.token.raw !== this.props.token.raw || next.token.type !== this.props.token.type
  }

  render() {
    return block(this.props.token, 0)
  }
}

/**
 * @param {Token[]|undefined} tokens
 * @param {number} depth
 * @returns {any}
 */
const blocks = (tokens, depth) => (tokens ?? []).map((token) => block(token, depth))

/**
 * @param {Token} token
 * @param {number} depth
 * @returns {any}
 */
function block(token, depth) {
  if (depth > deepest) return token.raw
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return html`<${'h' + Math.min(token.depth + 2, 6)}>${inlines(token.tokens, depth + 1)}<//>`
    case 'paragraph':
      return html`<p>${inlines(token.tokens, depth + 1)}</p>`
    case 'text':
      return token.tokens ? inlines(token.tokens, depth + 1) : entities(token.text)
    case 'code':
      return html`<${Code} text=${token.text} lang=${(token.lang ?? '').split(/\s/)[0]} />`
    case 'blockquote':
      return html`<blockquote dir="auto">${blocks(token.tokens, depth + 1)}</blockquote>`
    case 'list': {
      const items = token.items.map((/** @type {Token} */ item) => html`<li class=${item.task ? 'task' : ''}>${item.task ? html`<input type="checkbox" disabled checked=${item.checked} aria-label=${item.text.slice(0, 80)} /> ` : ''}${blocks(item.tokens?.filter((/** @type {Token} */ o) => o.type !== 'checkbox'), depth + 1)}</li>`)
      return token.ordered ? html`<ol dir="auto" start=${token.start === '' ? 1 : token.start}>${items}</ol>` : html`<ul dir="auto">${items}</ul>`
    }
    case 'hr':
      return html`<hr />`
    case 'table':
      return html`<div class="table" tabindex="0" role="group"><table>
        <thead><tr>${token.header.map((/** @type {Token} */ cell, /** @type {number} */ i) => html`<th class=${'align-' + (token.align[i] ?? 'left')}>${inlines(cell.tokens, depth + 1)}</th>`)}</tr></thead>
        <tbody>${token.rows.map((/** @type {Token[]} */ row) => html`<tr>${row.map((cell, i) => html`<td class=${'align-' + (token.align[i] ?? 'left')}>${inlines(cell.tokens, depth + 1)}</td>`)}</tr>`)}</tbody>
      </table></div>`
    case 'html':
      return html`<p class="raw">${token.raw.trimEnd()}</p>`
  }
  return inline(token, depth)
}

/**
 * @param {Token[]|undefined} tokens
 * @param {number} depth
 */
const inlines = (tokens, depth) => (tokens ?? []).map((token) => inline(token, depth))

/**
 * @param {Token} token
 * @param {number} depth
 * @returns {any}
 */
function inline(token, depth) {
  if (depth > deepest) return token.raw
  const inner = () => inlines(token.tokens, depth + 1)
  switch (token.type) {
    case 'text':
      return token.tokens ? inner() : entities(token.text)
    case 'escape':
      return token.text
    case 'strong':
      return html`<strong>${inner()}</strong>`
    case 'em':
      return html`<em>${inner()}</em>`
    case 'del':
      return html`<del>${inner()}</del>`
    case 'codespan':
      return html`<code>${token.text}</code>`
    case 'br':
      return html`<br />`
    case 'link': {
      const end = token.raw === token.text ? bareEnd(token.raw) : -1
      if (end < 0) return link(token, inner())
      const [url, rest] = [token.raw.slice(0, end), token.raw.slice(end)]
      const scheme = token.href.startsWith('mailto:') ? 'mailto:' : /^www\./i.test(url) ? 'http://' : ''
      return html`${link({ raw: url, text: url, href: scheme + url }, url)}${inlines(new Lexer({ gfm: true }).inlineTokens(rest), depth + 1)}`
    }
    case 'image':
      return /^data:image\/(png|jpeg|gif|webp);base64,/.test(token.href) ? html`<img src=${token.href} alt=${token.text} />` : link(token, token.text || token.href)
    case 'paragraph':
    case 'list':
    case 'blockquote':
    case 'code':
      return block(token, depth)
  }
  return html`<${Fragment}>${token.raw ?? ''}<//>`
}

// What ends a URL that a text mentions: characters that no URL contains, such as the quotes
// of JSON around it, and the punctuation of Chinese.
const urlEnds = /["<>\\^`|\u2018-\u201f\u00ab\u00bb\u3000-\u3002\u3008-\u3011\u3014-\u301b\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]/

/**
 * Returns where a URL without markup ends, or -1 if at its end: the lexer takes all up to
 * the next space.
 * @param {string} raw
 */
function bareEnd(raw) {
  const cut = raw.search(urlEnds)
  const url = cut < 0 ? raw : raw.slice(0, cut)
  const end = url.replace(/['}\]]+[.,;:!?]*$/, (tail) => /[[{]/.test(url) ? tail : '').length
  return end < raw.length ? end : -1
}

/**
 * A link shows its target, unless its text is the target.
 * @param {Token} token
 * @param {any} inner
 */
function link(token, inner) {
  let to
  try {
    to = new URL(token.href)
  } catch {
    return html`<${Fragment}>${token.raw}<//>`
  }
  if (!['https:', 'http:', 'mailto:'].includes(to.protocol)) return html`<${Fragment}>${token.raw}<//>`
  const where = to.protocol === 'mailto:' ? to.pathname : to.host
  const plain = (token.text ?? '').includes(where)
  return html`<a href=${to.href} target="_blank" rel="noopener noreferrer nofollow">${inner}</a>${plain ? '' : html` <span class="host">(${where})</span>`}`
}

const named = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** @param {string} text */
const entities = (text) => text.replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (_, name) => named[/** @type {keyof typeof named} */ (name)])
