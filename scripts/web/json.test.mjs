// The page's own reader of JSON, and the fields that a schema makes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Wrong, isNumber, member, quote, read, shown, textOf, write } from './page/json/json.js'
import { broken, fieldsOf, placed, placeOf, put } from './page/card/shape.js'

/** A generator of numbers that a seed begins. @param {number} seed */
const random = (seed) => () => {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return seed / 0x7fffffff
}

test('numbers, strings and the order of members stay as they are written', () => {
  const text = '{\n  "b": 9007199254740993,\n  "a": [\n    1e3,\n    -0.0,\n    1.10,\n    12345678901234567890.123456789\n  ],\n  "a": "\\u202e\\/\\n",\n  "": {},\n  "n": null\n}'
  assert.equal(write(read(text)), text)
  assert.equal(write(read(' [ ] ')), '[]')
  assert.equal(textOf(member(read(text), 'a').raw), '\u202e/\n', 'the last of two counts')
  assert.equal(shown('"a\\"b\\\\c\\u202e"'), 'a"b\\c\\u202e')
  assert.equal(quote('a\u202eb\u200b"\u{e0100}'), '"a\\u202eb\\u200b\\"\\udb40\\udd00"')
  for (const text of ['\u202e\u200b\u0000\u00a0\ufe0f', '\ud800', 'plain 中文 😀']) assert.equal(textOf(quote(text)), text)
})

test('it takes what JSON is, and nothing else', () => {
  const next = random(7)
  const bits = ['{', '}', '[', ']', ',', ':', '"a"', '"\\u00e9\\n"', '"\\x"', '"\u0001"', '1', '-1.5e+7', '01', '1.', '.5', '-', '+1', 'true', 'nul', 'null', ' ', '\n', '\u00a0', '"', '"é"', 'NaN', '1e400']
  let good = 0
  for (let n = 0; n < 12_000; n++) {
    const valid = n % 2 ? JSON.stringify(sample(next, 3)) : ''
    const parts = valid ? valid.split(/(?<=[,:{}[\]])/) : Array.from({ length: 1 + Math.floor(next() * 6) }, () => bits[Math.floor(next() * bits.length)])
    if (next() < 0.4) parts.splice(Math.floor(next() * parts.length), 1, bits[Math.floor(next() * bits.length)])
    const text = parts.join('')
    let want
    try {
      want = { value: JSON.parse(text) }
    } catch {}
    let got
    try {
      got = read(text)
    } catch (err) {
      assert.ok(err instanceof Wrong, `${JSON.stringify(text)}: ${err}`)
    }
    assert.equal(!!got, !!want, JSON.stringify(text))
    if (!want) continue
    good++
    assert.deepEqual(JSON.parse(write(got)), want.value, JSON.stringify(text))
  }
  assert.ok(good > 3000, String(good))
  for (const deep of ['['.repeat(100_000), '['.repeat(201) + ']'.repeat(201), '"' + 'a'.repeat(1 << 20), '{"a":'.repeat(5000)]) assert.throws(() => read(deep), Wrong)
  assert.equal(read('"' + 'a'.repeat(1 << 20) + '"').raw.length, (1 << 20) + 2)
  assert.ok(isNumber('-1.5e-3') && !isNumber('1 ') && !isNumber('') && !isNumber('0x1'))
})

/** @param {() => number} next @param {number} depth */
function sample(next, depth) {
  const kind = Math.floor(next() * (depth ? 7 : 5))
  const few = Math.floor(next() * 4)
  return [null, true, next() * 1e6, Math.floor(next() * 100), 'a"\\\u2028é'.slice(few), undefined, undefined][kind] ?? (kind === 5 ? Array.from({ length: few }, () => sample(next, depth - 1)) : kind === 6 ? Object.fromEntries(Array.from({ length: few }, (_, i) => ['k' + i, sample(next, depth - 1)])) : null)
}

const schema = read(`{"type":"object","required":["to","when","size"],"properties":{
  "to":{"type":"string","description":"Who \\u202e gets it"},
  "when":{"type":"string","format":"date"},
  "size":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":9007199254740993},
  "loud":{"type":"boolean"},
  "how":{"enum":["slow","fast",3]},
  "list":{"type":"array","items":{"$ref":"#/$defs/Item"}},
  "deep":{"type":"object","properties":{"inner":{"type":"object","properties":{"third":{"type":"object","properties":{}},"x":{"type":"number"}}}}},
  "loop":{"$ref":"#/$defs/Loop"},
  "any":{}},
  "$defs":{"Item":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"count":{"type":"number"}}},"Loop":{"$ref":"#/$defs/Loop"}}}`)

/** @param {import('./page/card/shape.js').Field[]} fields @returns {any} */
const kinds = (fields) => Object.fromEntries(fields.map((f) => [f.label, f.fields.length ? kinds(f.fields) : f.kind]))

test('a schema makes fields; what a field can’t show is JSON', () => {
  const fields = (/** @type {string} */ args) => fieldsOf(schema, schema, read(args), [])
  assert.deepEqual(kinds(fields('{"list":[{"name":"a"}],"deep":{"inner":{}}}')), {
    to: 'text', when: 'date', size: 'number', loud: 'boolean', how: 'choice', list: { 'list 1': { name: 'text', count: 'number' } },
    deep: { inner: { third: 'json', x: 'number' } }, loop: 'json', any: 'json',
  })
  assert.deepEqual(kinds(fields('{"to":7,"when":"tomorrow","size":"1","loud":null,"how":[1],"list":{},"extra":1}')), {
    to: 'json', when: 'json', size: 'json', loud: 'json', how: 'json', list: 'json', deep: 'object', loop: 'json', any: 'json', extra: 'json',
  })
  assert.equal(fields('{"to":"a\\u202eb"}')[0].kind, 'json')
  assert.equal(fields('{}')[0].about, 'Who \\u202e gets it')
  assert.equal(fields('{}')[2].make().raw, '9007199254740993')
  assert.deepEqual(fields('{"how":"else"}')[4].options.map((o) => o.raw), ['"else"', '"slow"', '"fast"', '3'])
  let v = read('{"to":"a","list":[]}')
  v = put(v, ['size'], read('9007199254740993'))
  v = put(v, ['list', '0'], fields('{}')[5].makeItem?.())
  v = put(v, ['list', '0', 'name'], read('"x"'))
  v = put(v, ['deep', 'inner', 'x'], read('1.10'))
  v = put(v, ['to'], undefined)
  assert.equal(write(v).replace(/\s/g, ''), '{"list":[{"name":"x"}],"size":9007199254740993,"deep":{"inner":{"x":1.10}}}')
  assert.deepEqual(broken(put(v, ['size'], { kind: 'broken', raw: '1e', keys: [], items: [] })), [['size']])
  const said = placed(fieldsOf(schema, schema, v, []), [{ at: ['list', '0', 'count'], message: 'a' }, { at: ['list', '0', 'zz', 'y'], message: 'b' }, { at: ['zz'], message: 'c' }, { at: [], message: 'd' }])
  assert.deepEqual([...said], [[placeOf(['list', '0', 'count']), ['a']], [placeOf(['list', '0']), ['zz › y: b']], ['', ['zz: c', 'd']]])
})
