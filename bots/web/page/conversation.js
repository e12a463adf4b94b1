// @ts-check
// A conversation as the page knows it from the stream.

/**
 * @typedef {object} Message
 * @property {string} id
 * @property {string} kind person, text, tool, card, notice, error or images
 * @property {string} [text]
 * @property {boolean} [final]
 * @property {string} [turn] its stored turn
 * @property {string} [by]
 * @property {string} [at]
 * @property {string} [call]
 * @property {any} [card]
 * @property {any} [words] of a card
 * @property {any} [tool]
 * @property {any} [line] of a tool
 * @property {boolean} [view] the call has a view to open
 * @property {number} [since] when the page first saw it, in ms
 * @property {string} [failed] why it was not accepted
 * @property {any[]} [files] attached files
 * @property {File[]} [local] files of a message that was not accepted, to be sent again
 * @property {string} [instead] the key of the message that an unaccepted one would replace
 * @property {number} [share] the turn of an answer that its reader may share
 * @property {number} [pictures] number of pictures in a call's result
 * @property {any} [rendered] its result in the renderer's form
 * @property {boolean} [cut] it is incomplete: stopped or interrupted
 */

/** Thrown for an event about something that the page doesn't have: it must reload the whole. */
export class Gap extends Error {}

export class Conversation {
  /** @param {string} id */
  constructor(id) {
    this.id = id
    /** @type {any} */
    this.thread = null
    /** @type {Message[]} */
    this.messages = []
    this.state = 'idle'
    this.stopped = false // by this page, since the last message
    this.more = false
    this.from = 0
    /** @type {string[]} */
    this.waiting = []
    /** @type {Message[]} messages sent by this page that the stream hasn't reported yet */
    this.sent = []
  }

  /**
   * @param {string} name
   * @param {any} data
   */
  apply(name, data) {
    switch (name) {
      case 'thread':
        return this.whole(data)
      case 'message':
        return this.put(data)
      case 'append':
        return this.append(data)
      case 'gone':
        this.messages = this.messages.filter((m) => m.id !== data.id)
        return
      case 'state':
        this.state = data.state
        return
      case 'title':
        if (this.thread) this.thread = { ...this.thread, title: data.title }
        return
      case 'waiting':
        this.waiting = data.ids ?? []
    }
  }

  /** @param {any} data */
  whole(data) {
    if (!data.thread) return
    // Keep earlier messages that were loaded if they are adjacent.
    const earlier = this.messages.length > 0 && this.earlier && data.from > this.from ? this.earlier.filter((m) => !data.messages.some((/** @type {Message} */ o) => o.id === m.id)) : []
    this.thread = data.thread
    this.state = data.state || 'idle'
    const since = new Map(this.messages.map((m) => [m.id, m.since]))
    this.messages = (data.messages ?? []).map((/** @type {Message} */ m) => ({ ...m, since: since.get(m.id) ?? Date.now() }))
    if (earlier.length) this.messages = [...earlier, ...this.messages]
    else {
      this.from = data.from
      this.more = data.more
    }
    for (const card of data.cards ?? []) {
      if (!this.messages.some((m) => m.call === card.id)) this.messages.push({ id: card.call, kind: 'card', call: card.id, card, words: card.words })
    }
    this.sent = this.sent.filter((m) => !this.messages.some((o) => o.id === m.id))
    this.messages.push(...this.sent)
  }

  /** @param {any} data earlier messages */
  before(data) {
    const have = new Set(this.messages.map((m) => m.id))
    const older = data.messages.filter((/** @type {Message} */ m) => !have.has(m.id))
    this.earlier = [...older, ...(this.earlier ?? [])]
    this.messages = [...older, ...this.messages]
    this.from = data.from
    this.more = data.more
  }

  /** @type {Message[]|undefined} */
  earlier

  /** @param {Message} m */
  put(m) {
    /** @param {Message} o */
    const same = (o) => o.id === m.id || m.turn !== undefined && (o.turn === m.turn || o.id === m.turn)
    const at = this.messages.findIndex(same)
    const old = this.messages[at]
    const now = { ...m, since: old?.since ?? Date.now() }
    if (at < 0) this.messages = this.messages.toSpliced(this.placeOf(now), 0, now)
    else this.messages = this.messages.flatMap((o, i) => i === at ? [now] : same(o) ? [] : [o])
    this.sent = this.sent.filter((o) => o.id !== m.id)
  }

  /**
   * Returns the position of a new message: at the end; for calls of a step, in the order
   * of their ids; for a replacement or a result of a call, directly after it.
   * @param {Message} m
   */
  placeOf(m) {
    const replaced = this.messages.findIndex((o) => m.call && o.card?.successor === m.call)
    if (replaced >= 0) return this.behind(replaced)
    const returned = m.kind === 'images' ? this.messages.findLastIndex((o) => o.call === m.call) : -1
    if (returned >= 0) return returned + 1
    let place = this.messages.length
    for (; place > 0 && m.call && (m.kind === 'card' || m.kind === 'tool'); place--) {
      const { kind, call } = this.messages[place - 1]
      if (kind !== 'card' && kind !== 'tool' && kind !== 'images' || !call || call <= m.call) break
    }
    return place
  }

  /** Returns the position after a call's line and its result. @param {number} at of the line */
  behind(at) {
    const next = this.messages[at + 1]
    return next?.kind === 'images' && next.call === this.messages[at].call ? at + 2 : at + 1
  }

  /** @param {{id: string, at: number, text: string}} more */
  append(more) {
    const m = this.messages.find((o) => o.id === more.id)
    if (!m || (m.text ?? '').length !== more.at) throw new Gap(more.id)
    this.put({ ...m, text: m.text + more.text })
  }

  /**
   * Returns a person's last message if it was not answered.
   * @param {string} name
   * @returns {Message|undefined}
   */
  lastOf(name) {
    for (const m of this.messages.toReversed()) {
      if (m.failed || m.kind === 'text' && this.state === 'idle') return
      if (m.kind === 'person') return m.by === name ? m : undefined
    }
  }

  /**
   * Shows a sent message until the stream reports it.
   * @param {Message} m
   */
  say(m) {
    this.stopped = false
    this.sent = [...this.sent.filter((o) => o.id !== m.id), m]
    this.messages = [...this.messages.filter((o) => o.id !== m.id), m]
  }
}
