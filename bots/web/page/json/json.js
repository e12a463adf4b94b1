// @ts-check
// Lossless JSON: numbers and strings keep their form, members their order, and duplicates
// are kept.

/**
 * A value. For an object, keys are its members' names as written, in quotes; items are
 * their values, or those of an array.
 * @typedef {object} Value
 * @property {'object'|'array'|'string'|'number'|'literal'|'broken'} kind broken: typed text that can't be parsed
 * @property {string} raw as written; not used for objects and arrays
 * @property {string[]} keys
 * @property {Value[]} items
 */

// Deeper documents are not meant for people.
const deepest = 200

/** A syntax error and its position. */
export class Wrong extends Error {
  /**
   * @param {string} text
   * @param {number} at
   */
  constructor(text, at) {
    super('no JSON')
    const before = text.slice(0, at).split('\n')
    this.line = before.length
    this.column = before[before.length - 1].length + 1
    this.found = text.slice(at, at + 12)
  }
}

/**
 * @param {Value['kind']} kind
 * @param {string} raw
 * @returns {Value}
 */
export const scalar = (kind, raw) => ({ kind, raw, keys: [], items: [] })

/**
 * @param {string[]} keys
 * @param {Value[]} items
 * @returns {Value}
 */
export const object = (keys, items) => ({ kind: 'object', raw: '', keys, items })

/**
 * @param {Value[]} items
 * @returns {Value}
 */
export const array = (items) => ({ kind: 'array', raw: '', keys: [], items })

const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const literal = /true|false|null/y
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** @param {string} text whether it is a JSON number */
export function isNumber(text) {
  number.lastIndex = 0
  return number.test(text) && number.lastIndex === text.length
}

/**
 * Parses a document; throws Wrong.
 * @param {string} text
 * @returns {Value}
 */
export function read(text) {
  let at = 0
  const blank = () => {
    while (at < text.length && ' \t\r\n'.includes(text[at])) at++
  }
  /** @param {string} what */
  const expect = (what) => {
    blank()
    if (text[at] !== what) throw new Wrong(text, at)
    at++
  }
  const string = () => {
    const from = at
    for (at++; ; ) {
      const c = text.charCodeAt(at)
      if (c === 0x22) return text.slice(from, ++at)
      if (c === 0x5c) {
        escape.lastIndex = at
        if (!escape.test(text)) throw new Wrong(text, at)
        at = escape.lastIndex
      } else if (c >= 0x20) at++
      else throw new Wrong(text, at) // a control character, or the end
    }
  }
  /**
   * @param {number} depth
   * @returns {Value}
   */
  const value = (depth) => {
    blank()
    const c = text[at]
    if (c === '"') return scalar('string', string())
    if (c === '{' || c === '[') {
      if (depth === deepest) throw new Wrong(text, at)
      const v = c === '{' ? object([], []) : array([])
      const end = c === '{' ? '}' : ']'
      at++
      blank()
      if (text[at] === end) {
        at++
        return v
      }
      for (;;) {
        if (c === '{') {
          blank()
          if (text[at] !== '"') throw new Wrong(text, at)
          v.keys.push(string())
          expect(':')
        }
        v.items.push(value(depth + 1))
        blank()
        if (text[at] !== ',') break
        at++
      }
      expect(end)
      return v
    }
    for (const [kind, form] of /** @type {[Value['kind'], RegExp][]} */ ([['number', number], ['literal', literal]])) {
      form.lastIndex = at
      const found = form.exec(text)
      if (!found) continue
      at = form.lastIndex
      return scalar(kind, found[0])
    }
    throw new Wrong(text, at)
  }
  const v = value(0)
  blank()
  if (at < text.length) throw new Wrong(text, at)
  return v
}

/**
 * Returns a value as indented JSON.
 * @param {Value} v
 * @param {string} [indent]
 * @returns {string}
 */
export function write(v, indent = '') {
  if (v.kind !== 'object' && v.kind !== 'array') return v.raw
  const [open, close] = v.kind === 'object' ? ['{', '}'] : ['[', ']']
  if (v.items.length === 0) return open + close
  const inner = indent + '  '
  const lines = v.items.map((item, i) => inner + (v.kind === 'object' ? v.keys[i] + ': ' : '') + write(item, inner))
  return open + '\n' + lines.join(',\n') + '\n' + indent + close
}

/** @param {string} raw returns the content of a string */
export const textOf = (raw) => /** @type {string} */ (JSON.parse(raw))

// Invisible characters, and those that affect the display of others.
const hidden = /[\p{C}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u1680\u17b4\u17b5\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\u034f\u180b-\u180f\ufe00-\ufe0f\uffa0\ufffc\u{e0100}-\u{e01ef}]/gu

/**
 * Returns a string as JSON with all characters visible.
 * @param {string} text
 */
export const quote = (text) => JSON.stringify(text).replace(hidden, (c) => Array.from({ length: c.length }, (_, i) => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0')).join(''))

/**
 * Returns the content of a string for people: quotes and backslashes unescaped, invisible
 * characters as escapes.
 * @param {string} raw
 */
export const shown = (raw) => raw.slice(1, -1).replace(/\\(["\\/])/g, '$1')

/**
 * Returns a member of an object: the last one with that name.
 * @param {Value|undefined} v
 * @param {string} name
 * @returns {Value|undefined}
 */
export function member(v, name) {
  if (v?.kind !== 'object') return undefined
  for (let i = v.keys.length - 1; i >= 0; i--) if (textOf(v.keys[i]) === name) return v.items[i]
  return undefined
}
