// @ts-check
// A code block, with highlighting and a button that copies it. The highlighter is loaded
// with the first block.
import { Component } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { icon } from './icon.js'
import { t } from './words.js'

const languages = ['bash', 'css', 'diff', 'dockerfile', 'go', 'ini', 'java', 'javascript', 'json', 'markdown', 'python', 'rust', 'sql', 'typescript', 'xml', 'yaml']
/** @type {Record<string, string>} */
const aliases = { sh: 'bash', shell: 'bash', console: 'bash', golang: 'go', js: 'javascript', jsx: 'javascript', ts: 'typescript', tsx: 'typescript', py: 'python', rs: 'rust', yml: 'yaml', html: 'xml', svg: 'xml', toml: 'ini', md: 'markdown', patch: 'diff' }

// Code is highlighted and laid out in parts of about this many characters, in whole lines:
// while it is written, only the last part changes. A construct over several lines, such as
// a comment, may lose its colour where a part begins.
const part = 4 << 10
// A single line longer than this is not highlighted, because it would block the page.
const longest = 64 << 10

/** @type {Promise<any>|undefined} */
let core

/** @param {string} name */
async function highlighter(name) {
  core ??= import('hljs/core.js')
  const [{ default: hljs }, { default: grammar }] = await Promise.all([core, import(`hljs/${name}.js`)])
  if (!hljs.getLanguage(name)) hljs.registerLanguage(name, grammar)
  return hljs
}

/**
 * Converts the highlighter's tree to elements.
 * @param {any} node
 * @returns {any}
 */
function tree(node) {
  if (typeof node === 'string') return node
  const inner = node.children.map(tree)
  return node.scope ? html`<span class=${'hljs-' + node.scope.split('.')[0]}>${inner}</span>` : inner
}

/**
 * Splits a text into parts that don't change while it grows at its end.
 * @param {string} text
 */
function parts(text) {
  const list = []
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from + part) + 1 || text.length
    list.push(text.slice(from, end))
    from = end
  }
  return list
}

/** @param {{text: string, lang: string}} props */
export function Code({ text, lang }) {
  const name = aliases[lang.toLowerCase()] ?? lang.toLowerCase()
  return html`<figure class="code">
    <figcaption><span>${lang}</span><${Copy} text=${text} /></figcaption>
    <pre tabindex="0"><code>${parts(text).map((text, i) => html`<${Part} key=${i} text=${text} name=${name} />`)}</code></pre>
  </figure>`
}

/** One part, drawn again only if it has changed. */
class Part extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.text !== this.props.text || next.name !== this.props.name
  }

  render() {
    return html`<${Highlighted} ...${this.props} />`
  }
}

/** @param {{text: string, name: string}} props */
function Highlighted({ text, name }) {
  const [drawn, setDrawn] = useState({ text: '', inner: /** @type {any} */ (null) })
  useEffect(() => {
    if (!languages.includes(name) || text.length > longest) return
    let left = false
    highlighter(name).then((hljs) => {
      if (!left) setDrawn({ text, inner: tree(hljs.highlight(text, { language: name, ignoreIllegals: true })._emitter.rootNode) })
    }, () => {}) // the code stays plain
    return () => { left = true }
  }, [text, name])
  return html`<span class="code-part">${text.startsWith(drawn.text) ? [drawn.inner, text.slice(drawn.text.length)] : text}</span>`
}

/** @param {{text: string}} props */
export function Copy({ text }) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(false), 2000)
    return () => clearTimeout(timer)
  }, [done])
  return html`<button type="button" class="quiet" onClick=${() => navigator.clipboard.writeText(text).then(() => setDone(true), () => {})}>${done ? icon('check') : icon('copy')}${done ? t('Copied') : t('Copy')}</button>`
}
