// @ts-check
// The form for arguments: the fields of a tool's schema, as far as a form can show their
// values. Other values are edited as JSON within the form.
import { array, isNumber, member, object, quote, scalar, shown, textOf } from '../json/json.js'

/** @typedef {import('../json/json.js').Value} Value */

/**
 * One field. Objects and arrays have fields of their own.
 * @typedef {object} Field
 * @property {string[]} path
 * @property {string} label
 * @property {string} about
 * @property {'text'|'number'|'boolean'|'choice'|'date'|'object'|'array'|'json'} kind
 * @property {Value|undefined} value undefined for none
 * @property {boolean} required
 * @property {boolean} long a text of several lines
 * @property {Value[]} options of a choice
 * @property {string[]} titles of the options, where a server's own are shown
 * @property {Field[]} fields
 * @property {() => Value} make returns the initial value when it is added
 * @property {(() => Value)|undefined} makeItem of an array
 */

// Maximum nesting of objects and arrays in a form.
const deepest = 2
// Maximum number of references followed, and of fields shown for one object.
const hops = 8
const most = 200

/**
 * Resolves a schema's references, and removes null from the types that it allows.
 * @param {Value|undefined} schema
 * @param {Value|undefined} root
 * @returns {Value|undefined}
 */
function meant(schema, root) {
  for (let n = 0; n < hops && schema; n++) {
    const ref = member(schema, '$ref')
    const some = (member(schema, 'anyOf') ?? member(schema, 'oneOf'))?.items.filter((s) => wordOf(member(s, 'type')) !== 'null')
    if (ref?.kind === 'string' && textOf(ref.raw).startsWith('#')) {
      schema = textOf(ref.raw).split('/').slice(1).reduce((/** @type {Value|undefined} */ at, name) => member(at, name.replaceAll('~1', '/').replaceAll('~0', '~')), root)
    } else if (some?.length === 1) schema = some[0]
    else break
  }
  return schema
}

/** @param {Value|undefined} v */
const wordOf = (v) => v?.kind === 'string' ? textOf(v.raw) : ''

/** @param {Value|undefined} schema returns the only type that is not null */
function typeOf(schema) {
  const type = member(schema, 'type')
  if (type?.kind !== 'array') return wordOf(type) || (member(schema, 'properties') ? 'object' : '')
  const names = type.items.map(wordOf).filter((name) => name !== 'null')
  return names.length === 1 ? names[0] : ''
}

/**
 * The values that a schema lists: of an enum, or of constants with titles.
 * @param {Value|undefined} schema
 * @returns {Value[]}
 */
function choicesOf(schema) {
  const listed = member(schema, 'enum')?.items
  if (listed?.length) return listed
  const some = (member(schema, 'oneOf') ?? member(schema, 'anyOf'))?.items.map((s) => member(s, 'const')) ?? []
  return some.every((v) => v !== undefined && v.items.length === 0) ? /** @type {Value[]} */ (some) : []
}

/**
 * The titles of the values that a schema lists, '' for none.
 * @param {Value|undefined} schema
 * @returns {string[]}
 */
function titlesOf(schema) {
  if (member(schema, 'enum')?.items.length) return member(schema, 'enumNames')?.items.map(wordOf) ?? []
  return (member(schema, 'oneOf') ?? member(schema, 'anyOf'))?.items.map((s) => wordOf(member(s, 'title'))) ?? []
}

/**
 * How a schema's values are edited.
 * @param {Value|undefined} schema
 * @param {number} depth
 * @returns {Field['kind']}
 */
function kindOf(schema, depth) {
  if (choicesOf(schema).length) return 'choice'
  switch (typeOf(schema)) {
    case 'string':
      return wordOf(member(schema, 'format')) === 'date' ? 'date' : 'text'
    case 'number':
    case 'integer':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'object':
      return depth <= deepest ? 'object' : 'json'
    case 'array':
      return depth <= deepest ? 'array' : 'json'
  }
  return 'json'
}

/** Whether a field shows every character of a string. @param {string} raw */
export const plain = (raw) => !/\\u|\\r/.test(raw)

/**
 * Whether a field of this kind shows a value unchanged.
 * @param {Field['kind']} kind
 * @param {Value} v
 */
function shows(kind, v) {
  switch (kind) {
    case 'text':
      return v.kind === 'string' && plain(v.raw)
    case 'date':
      return v.kind === 'string' && /^"(\d{4}-\d\d-\d\d)?"$/.test(v.raw)
    case 'number':
      return v.kind === 'number' || v.kind === 'broken'
    case 'boolean':
      return v.raw === 'true' || v.raw === 'false'
    case 'choice':
      return v.items.length === 0
    case 'object':
    case 'array':
      return v.kind === kind
  }
  return true
}

/**
 * Returns a new value for a schema: its default, or an empty one.
 * @param {Value|undefined} schema
 * @param {Field['kind']} kind
 * @param {Value} [wanted]
 */
function empty(schema, kind, wanted = member(schema, 'default')) {
  if (wanted && shows(kind, wanted)) return wanted
  switch (kind) {
    case 'text':
    case 'date':
      return scalar('string', '""')
    case 'number':
      return scalar('broken', '')
    case 'boolean':
      return scalar('literal', 'false')
    case 'choice':
      return choicesOf(schema)[0]
    case 'object':
      return object([], [])
    case 'array':
      return array([])
  }
  return { object: object([], []), array: array([]) }[typeOf(schema)] ?? scalar('literal', 'null')
}

/**
 * Returns the field for one value.
 * @param {object} of
 * @param {Value|undefined} of.schema
 * @param {Value|undefined} of.root the whole schema
 * @param {Value|undefined} of.value
 * @param {string[]} of.path
 * @param {string} of.label
 * @param {boolean} of.required
 * @param {boolean} [of.titled]
 * @returns {Field}
 */
function fieldOf({ schema: written, root, value, path, label, required, titled }) {
  const schema = meant(written, root)
  const wants = kindOf(schema, path.length)
  const kind = value && !shows(wants, value) ? 'json' : wants
  const about = member(written, 'description') ?? member(schema, 'description')
  /** @type {Field} */
  const field = {
    path, label, required, kind, value, about: about?.kind === 'string' ? shown(about.raw) : '', options: [], titles: [], fields: [], makeItem: undefined,
    long: kind === 'text' && (value?.raw.includes('\\n') || (value?.raw.length ?? 0) > 80 || /(text|body|content|message|description|comment|note|query|script|code|prompt)s?$/i.test(path[path.length - 1])),
    make: () => empty(schema, wants, member(written, 'default')),
  }
  if (kind === 'choice') {
    field.options = [...choicesOf(schema)]
    if (titled) field.titles = titlesOf(schema)
    if (value && !field.options.some((o) => same(o, value))) {
      field.options.unshift(value)
      field.titles.unshift('')
    }
  }
  if (!value && !required) return field // it can be added
  if (kind === 'object') field.fields = fieldsOf(schema, root, value, path, titled)
  if (kind === 'array') {
    const items = member(schema, 'items')
    const inner = meant(items, root)
    field.fields = (value?.items ?? []).map((v, i) => fieldOf({ schema: items, root, value: v, path: [...path, String(i)], label: `${label} ${i + 1}`, required: true, titled }))
    field.makeItem = () => empty(inner, kindOf(inner, path.length + 1))
  }
  return field
}

/**
 * Whether two scalars are equal.
 * @param {Value} a
 * @param {Value} b
 */
export const same = (a, b) => a.kind === b.kind && a.items.length + b.items.length === 0 && (a.raw === b.raw || a.kind === 'string' && textOf(a.raw) === textOf(b.raw))

/**
 * Returns the fields of an object: those of its schema, and further members.
 * @param {Value|undefined} written
 * @param {Value|undefined} root
 * @param {Value|undefined} value
 * @param {string[]} path
 * @param {boolean} [titled] titles of the schema are shown: those of a question, whose server gets the answer itself
 * @returns {Field[]}
 */
export function fieldsOf(written, root, value, path, titled) {
  const schema = meant(written, root)
  const properties = member(schema, 'properties')
  const required = member(schema, 'required')?.items.map(wordOf) ?? []
  const known = new Set()
  /** @type {Field[]} */
  const list = []
  for (const [i, key] of (properties?.kind === 'object' ? properties.keys : []).slice(0, most).entries()) {
    const name = textOf(key)
    if (known.has(name)) continue
    known.add(name)
    const title = titled ? member(properties?.items[i], 'title') : undefined
    list.push(fieldOf({ schema: properties?.items[i], root, value: member(value, name), path: [...path, name], label: title?.kind === 'string' && wordOf(title) ? shown(title.raw) : shown(key), required: required.includes(name), titled }))
  }
  for (const key of value?.kind === 'object' ? value.keys : []) {
    const name = textOf(key)
    if (known.has(name)) continue
    known.add(name)
    list.push(fieldOf({ schema: undefined, root, value: member(value, name), path: [...path, name], label: shown(key), required: false }))
  }
  return list
}

/**
 * Returns the document with another value at a path; undefined removes it.
 * @param {Value} v
 * @param {string[]} path
 * @param {Value|undefined} now
 * @returns {Value}
 */
export function put(v, path, now) {
  const [name, ...rest] = path
  const at = v.kind === 'array' ? Number(name) : v.keys.findLastIndex((key) => textOf(key) === name)
  const old = v.items[at]
  const inner = rest.length ? put(old ?? object([], []), rest, now) : now
  const keys = [...v.keys]
  const items = [...v.items]
  if (inner === undefined) {
    if (old) {
      items.splice(at, 1)
      if (v.kind === 'object') keys.splice(at, 1)
    }
  } else if (old) items[at] = inner
  else {
    items.push(inner)
    if (v.kind === 'object') keys.push(quote(name))
  }
  return { ...v, keys, items }
}

/**
 * Returns the paths of values that could not be parsed.
 * @param {Value} v
 * @param {string[]} [path]
 * @returns {string[][]}
 */
export function broken(v, path = []) {
  if (v.kind === 'broken' && !isNumber(v.raw)) return [path]
  return v.items.flatMap((item, i) => broken(item, [...path, v.kind === 'object' ? textOf(v.keys[i]) : String(i)]))
}

/**
 * Assigns problems to the fields that are shown. A problem without a field goes to the
 * nearest enclosing one; '' is the form.
 * @param {Field[]} fields
 * @param {{at: string[], message: string}[]} problems
 * @returns {Map<string, string[]>}
 */
export function placed(fields, problems) {
  const places = new Set()
  /** @param {Field[]} list */
  const walk = (list) => list.forEach((f) => { places.add(placeOf(f.path)); walk(f.fields) })
  walk(fields)
  const said = new Map()
  for (const p of problems) {
    let n = p.at.length
    while (n > 0 && !places.has(placeOf(p.at.slice(0, n)))) n--
    const place = placeOf(p.at.slice(0, n))
    const below = p.at.slice(n)
    said.set(place, [...(said.get(place) ?? []), (below.length ? below.map((b) => quote(b).slice(1, -1)).join(' › ') + ': ' : '') + p.message])
  }
  return said
}

/** @param {string[]} path */
export const placeOf = (path) => path.length ? JSON.stringify(path) : ''
