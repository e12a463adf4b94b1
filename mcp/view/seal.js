// Runs before a view's own scripts and removes WebRTC, which can connect to hosts and is
// not restricted by any policy. Every new realm has it again, so a view must not create
// one: frames are blocked, by turning their HTML into text, and so are javascript: URLs.
// If frames of accepted domains are allowed, WebRTC is only removed from this realm.
// A view may change every object that it finds, so nothing here uses one after this.
(() => {
  const frames = __FRAMES__
  for (const name of Object.getOwnPropertyNames(self)) if (/^(?:webkit|moz)?RTC/.test(name)) delete self[name]
  const { apply } = Reflect
  const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames } = Object
  const uncurry = Function.prototype.bind.bind(Function.prototype.call)
  const indexOf = uncurry(''.indexOf), lastIndexOf = uncurry(''.lastIndexOf), charCode = uncurry(''.charCodeAt), slice = uncurry(''.slice), lower = uncurry(''.toLowerCase)
  const Text = String
  const banned = { __proto__: null, iframe: 1, frame: 1, frameset: 1, fencedframe: 1, portal: 1, object: 1, embed: 1, applet: 1 }
  const text = (value) => typeof value === 'string' ? value : Text(value)
  const isBanned = (name) => banned[lower(slice(name, lastIndexOf(name, ':') + 1))] === 1
  const ends = (c) => c === 32 || c === 47 || c === 62 || c === 9 || c === 10 || c === 12 || c === 13
  // A space after < makes it text in HTML, and has no effect in a script. part means that
  // more text may follow.
  const filter = (from, part) => {
    let out = '', done = 0
    for (let at = indexOf(from, '<'); at >= 0; at = indexOf(from, '<', at + 1)) {
      let end = at + 1
      while (end < from.length && !ends(charCode(from, end))) end++
      if (end < from.length ? isBanned(slice(from, at + 1, end)) : part) {
        out += slice(from, done, at + 1) + ' '
        done = at + 1
      }
    }
    return out + slice(from, done)
  }
  const whole = (from) => filter(text(from), false)
  if (self.trustedTypes) {
    try {
      trustedTypes.createPolicy('default', {
        createHTML: (from) => frames ? from : whole(from),
        createScript: (from, type, sink) => indexOf(text(sink), 'Location') === 0 ? null : from,
        createScriptURL: (from) => from,
      })
    } catch {} // another host's page may not allow policies
    for (const name of ['trustedTypes', 'TrustedTypePolicyFactory', 'TrustedTypePolicy']) delete self[name]
  }
  document.currentScript.remove()
  if (frames) return

  const wrap = (on, name, make) => {
    const found = on && getOwnPropertyDescriptor(on, name)
    if (!found) return
    for (const part of ['value', 'set']) if (typeof found[part] === 'function') found[part] = make(found[part])
    defineProperty(on, name, found)
  }
  const change = (at, by) => (was) => ({ call(...args) {
    if (at < args.length) args[at] = by(args[at])
    return apply(was, this, args)
  } }).call
  const html = (at) => change(at, (from) => from === null ? '' : whole(from))
  const element = (at) => change(at, (name) => {
    name = text(name)
    return isBanned(name) ? 'nize-no-frame' : name
  })
  for (const on of [Element.prototype, ShadowRoot.prototype]) {
    for (const name of ['innerHTML', 'outerHTML']) wrap(on, name, html(0))
    wrap(on, 'insertAdjacentHTML', html(1))
  }
  for (const on of [Node.prototype, Element.prototype, CharacterData.prototype, DocumentType.prototype, ShadowRoot.prototype, DocumentFragment.prototype, Document.prototype, Document]) {
    for (const name of getOwnPropertyNames(on)) {
      if (/stream.*html/i.test(name)) delete on[name]
      else if (/htmlunsafe$/i.test(name)) wrap(on, name, html(0))
    }
  }
  wrap(Range.prototype, 'createContextualFragment', html(0))
  wrap(DOMParser.prototype, 'parseFromString', (was) => ({ parseFromString(from, type) {
    from = whole(from)
    type = text(type)
    if (lower(type) !== 'text/html' && indexOf(from, '<!ENTITY') >= 0) from = '' // an entity in the text can become a frame
    return apply(was, this, [from, type])
  } }).parseFromString)
  for (const name of ['write', 'writeln']) {
    wrap(Document.prototype, name, (was) => ({ call(...args) {
      let all = ''
      for (let i = 0; i < args.length; i++) all += text(args[i])
      return apply(was, this, [filter(all, true)])
    } }).call)
  }
  wrap(Document.prototype, 'execCommand', html(2))
  wrap(Document.prototype, 'createElement', element(0))
  wrap(Document.prototype, 'createElementNS', element(1))
  wrap(DOMImplementation.prototype, 'createDocument', element(1))
  wrap(CustomElementRegistry.prototype, 'define', (was) => ({ define(name, make, options) {
    const base = options?.extends
    if (base === undefined) return apply(was, this, [name, make])
    const extend = text(base)
    if (isBanned(extend)) throw new TypeError('a view has no frames')
    return apply(was, this, [name, make, { __proto__: null, extends: extend }])
  } }).define)
  // Other ways to create documents.
  delete self.XSLTProcessor
  wrap(XMLHttpRequest.prototype, 'responseType', (was) => ({ responseType(type) {
    type = text(type)
    if (type !== 'document') apply(was, this, [type])
  } }).responseType)
  defineProperty(XMLHttpRequest.prototype, 'responseXML', { get: () => null })
})()
