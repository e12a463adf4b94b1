// window.openai on the messages of MCP Apps.
(() => {
  const template = __TEMPLATE__ // for a host other than nize: written when the result arrives; otherwise null
  const globals = Object.assign(__GLOBALS__, { displayMode: 'inline', maxHeight: 800, safeArea: { insets: { top: 0, right: 0, bottom: 0, left: 0 } } })
  const full = (tag) => { // with a region, such as en-US
    try {
      const { region, language, script } = new Intl.Locale(tag)
      if (region) return tag
      const likely = new Intl.Locale(tag).maximize()
      const usual = new Intl.Locale(language + '-' + likely.region).maximize().script
      return [language, script && script !== usual ? script : '', likely.region].filter(Boolean).join('-')
    } catch {
      return 'en-US'
    }
  }
  globals.locale = full(globals.locale || navigator.language)
  const can = (query) => matchMedia(query).matches
  globals.userAgent = { device: { type: screen.width < 768 ? 'mobile' : 'desktop' }, capabilities: { hover: can('(hover: hover)'), touch: can('(any-pointer: coarse)') } }
  document.documentElement.dataset.theme = globals.theme
  const waiting = new Map()
  let last = 0
  let ready = false
  const later = []
  const post = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*')
  const request = (method, params) => new Promise((resolve, reject) => {
    const id = ++last
    waiting.set(id, { resolve, reject })
    if (ready || method === 'ui/initialize') post({ id, method, params })
    else later.push({ id, method, params })
  })
  const changed = (news) => {
    Object.assign(globals, news)
    document.documentElement.dataset.theme = globals.theme
    dispatchEvent(new CustomEvent('openai:set_globals', { detail: { globals: news } }))
  }
  const context = (c) => {
    const news = {}
    if (c.theme) news.theme = c.theme
    if (c.locale) news.locale = full(c.locale)
    if (c.displayMode) news.displayMode = c.displayMode
    if (c.containerDimensions?.maxHeight) news.maxHeight = c.containerDimensions.maxHeight
    if (Object.keys(news).length) changed(news)
  }
  const heard = ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== '2.0') return
    if (data.method === 'ping' || data.method === 'ui/resource-teardown') post({ id: data.id, result: {} })
    else if (data.method === 'ui/notifications/host-context-changed') context(data.params ?? {})
    else if (data.method === 'ui/notifications/tool-input') changed({ toolInput: data.params?.arguments ?? {} })
    else if (data.method === 'ui/notifications/tool-result') {
      changed({ toolOutput: data.params?.structuredContent ?? null, toolResponseMetadata: data.params?._meta ?? null })
      if (template && globals.toolOutput && !written) write()
    }
    const asked = data.method === undefined && waiting.get(data.id)
    if (!asked) return
    waiting.delete(data.id)
    if (data.error) asked.reject(new Error(data.error.message))
    else asked.resolve(data.result)
  }
  addEventListener('message', heard)
  let told = false // the view reports its own height, so it is not measured
  const height = (value) => {
    const message = { method: 'ui/notifications/size-changed', params: { height: Math.ceil(value) } }
    if (ready) post(message)
    else later.push(message)
  }
  const watch = () => new ResizeObserver(() => told || height(document.documentElement.getBoundingClientRect().height)).observe(document.documentElement)
  let written = false
  const write = () => {
    written = true
    document.open()
    addEventListener('message', heard) // document.open removes the listeners of its window
    document.write(template)
    document.documentElement.dataset.theme = globals.theme
    document.close()
    watch()
  }
  const api = {
    requestDisplayMode: ({ mode }) => request('ui/request-display-mode', { mode }),
    callTool: (name, args = {}) => request('tools/call', { name, arguments: args }),
    sendFollowUpMessage: ({ prompt }) => request('ui/message', { role: 'user', content: [{ type: 'text', text: prompt }] }),
    openExternal: ({ href }) => request('ui/open-link', { url: href }),
    setWidgetState: async (value) => {
      const text = JSON.stringify(value ?? null)
      if (new TextEncoder().encode(text).length > 8192) throw new Error('a view can store at most 8 KiB')
      const state = JSON.parse(text)
      changed({ widgetState: state })
      if (!template) await request('nize/set-widget-state', { state })
    },
    notifyIntrinsicHeight: (value) => {
      told = true
      height(Number(value))
    },
  }
  for (const name of Object.keys(globals)) Object.defineProperty(api, name, { get: () => globals[name], enumerable: true })
  Object.defineProperty(window, 'openai', { value: Object.freeze(api), enumerable: true })
  request('ui/initialize', { protocolVersion: '2026-01-26', appInfo: { name: document.title || 'template', version: '1' }, appCapabilities: {} }).then((host) => {
    ready = true
    post({ method: 'ui/notifications/initialized' })
    context(host.hostContext ?? {})
    later.splice(0).forEach(post)
    if (!template) watch()
  }, () => {})
})()
