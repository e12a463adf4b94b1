// A small host of MCP Apps, for the tests: the official client and bridge, as the page of
// one has them. It is the client of one MCP server, and shows the views of its tools.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'

const extension = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
let client
let bridge

/** Connects, and says what tools there are. @param {boolean} announces @param {'legacy'|{pin: string}} mode */
window.begin = async (announces, mode) => {
  client = new Client({ name: 'host', version: '1' }, { capabilities: announces ? { extensions: extension } : {}, versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', location.href)))
  return (await client.listTools()).tools
}

/** The policy that the specification has for a view. */
const policy = ({ connectDomains = [], resourceDomains = [] }) => {
  const from = resourceDomains.join(' ')
  return `default-src 'none'; script-src 'self' 'unsafe-inline' ${from}; style-src 'self' 'unsafe-inline' ${from}; img-src 'self' data: ${from}; media-src 'self' data: ${from}; connect-src ${connectDomains.join(' ') || "'none'"}; object-src 'none'`
}

/** Calls a tool and shows its result by its view, in a frame of that name. */
window.show = async (tool, args) => {
  const { contents: [view] } = await client.readResource({ uri: tool._meta.ui.resourceUri })
  const frame = document.createElement('iframe')
  frame.name = tool.name
  frame.title = tool.name
  frame.setAttribute('sandbox', 'allow-scripts')
  document.querySelector('main').append(frame)
  bridge = new AppBridge(client, { name: 'host', version: '1' }, { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} }, { hostContext: { theme: 'dark', locale: 'en', displayMode: 'inline', toolInfo: { tool } } })
  const ready = new Promise((done) => { bridge.oninitialized = done })
  bridge.onsizechange = ({ height }) => { if (height) frame.style.height = `${height}px` }
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
  frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="${policy(view._meta.ui.csp)}">` + view.text
  await ready
  bridge.sendToolInput({ arguments: args })
  const result = await client.callTool({ name: tool.name, arguments: args })
  bridge.sendToolResult(result)
  return result
}

/** Tells the last view that the host is light now. */
window.lighten = () => bridge.setHostContext({ theme: 'light' })
window.loaded = true
