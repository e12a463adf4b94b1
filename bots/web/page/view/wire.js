// @ts-check
// Limits for the messages of a view: JSON-RPC of limited size and rate.

const maxBytes = 256 << 10
const maxNodes = 50_000
const maxDepth = 100

const encoder = new TextEncoder()
const scratch = new Uint8Array(maxBytes)

/** Returns the size of a text in UTF-8; for a long one, only that it is too long. @param {string} text */
function bytesOf(text) {
  if (text.length > maxBytes) return text.length
  const { read, written } = encoder.encodeInto(text, scratch)
  return read < text.length ? maxBytes + 1 : written
}

/**
 * Whether a value is plain JSON of at most 256 KiB. The check stops there, and doesn't
 * read a long text, whose length is enough.
 * @param {unknown} value
 */
export function fits(value) {
  let bytes = 0
  let nodes = 0
  /** @type {[unknown, number][]} */
  const rest = [[value, 0]]
  while (rest.length) {
    const [v, depth] = /** @type {[unknown, number]} */ (rest.pop())
    if (++nodes > maxNodes || depth > maxDepth) return false
    bytes += 8
    if (typeof v === 'string') bytes += bytesOf(v)
    else if (Array.isArray(v)) {
      if (v.length > maxNodes) return false
      for (const item of v) rest.push([item, depth + 1])
    } else if (v !== null && typeof v === 'object') {
      const proto = Object.getPrototypeOf(v)
      if (proto !== Object.prototype && proto !== null) return false // a blob, a buffer, a map
      for (const name in v) {
        if (++nodes > maxNodes) return false
        bytes += bytesOf(name) + 4
        rest.push([/** @type {any} */ (v)[name], depth + 1])
        if (bytes > maxBytes) return false
      }
    } else if (v !== undefined && v !== null && typeof v !== 'boolean' && typeof v !== 'number') return false
    if (bytes > maxBytes) return false
  }
  return true
}

/** Counts events; take returns false if there are more than the maximum within a span. */
export class Rate {
  /** @param {number} most @param {number} [span] ms */
  constructor(most, span = 1000) {
    this.most = most
    this.span = span
    /** @type {number[]} */
    this.times = []
  }

  /** @param {number} now in ms */
  take(now) {
    while (this.times.length && now - this.times[0] >= this.span) this.times.shift()
    this.times.push(now)
    return this.times.length <= this.most
  }
}
