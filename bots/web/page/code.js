// @ts-check
// A block of code: highlighted once it is there, and copied by a button. The
// highlighter comes when the first block does.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { t } from './words.js'

const languages = ['bash', 'css', 'diff', 'dockerfile', 'go', 'ini', 'java', 'javascript', 'json', 'markdown', 'python', 'rust', 'sql', 'typescript', 'xml', 'yaml']
/** @type {Record<string, string>} */
const aliases = { sh: 'bash', shell: 'bash', console: 'bash', golang: 'go', js: 'javascript', jsx: 'javascript', ts: 'typescript', tsx: 'typescript', py: 'python', rs: 'rust', yml: 'yaml', html: 'xml', svg: 'xml', toml: 'ini', md: 'markdown', patch: 'diff' }

// What is longer is not highlighted: it would hold the page up.
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
 * The highlighter's tree as elements.
 * @param {any} node
 * @returns {any}
 */
function tree(node) {
  if (typeof node === 'string') return node
  const inner = node.children.map(tree)
  return node.scope ? html`<span class=${'hljs-' + node.scope.split('.')[0]}>${inner}</span>` : inner
}

/** @param {{text: string, lang: string}} props */
export function Code({ text, lang }) {
  const name = aliases[lang.toLowerCase()] ?? lang.toLowerCase()
  const [drawn, setDrawn] = useState(/** @type {{text: string, inner: any}|null} */ (null))
  useEffect(() => {
    if (!languages.includes(name) || text.length > longest) return
    let left = false
    highlighter(name).then((hljs) => {
      if (!left) setDrawn({ text, inner: tree(hljs.highlight(text, { language: name, ignoreIllegals: true })._emitter.rootNode) })
    }, () => {}) // it stays plain
    return () => { left = true }
  }, [text, name])
  return html`<figure class="code">
    <figcaption><span>${lang}</span><${Copy} text=${text} /></figcaption>
    <pre tabindex="0"><code>${drawn?.text === text ? drawn.inner : text}</code></pre>
  </figure>`
}

/** @param {{text: string}} props */
export function Copy({ text }) {
  const [done, setDone] = useState(false)
  useEffect(() => {
    if (!done) return
    const timer = setTimeout(() => setDone(false), 2000)
    return () => clearTimeout(timer)
  }, [done])
  return html`<button type="button" class="quiet" onClick=${() => navigator.clipboard.writeText(text).then(() => setDone(true), () => {})}>${done ? t('Copied') : t('Copy')}</button>`
}
