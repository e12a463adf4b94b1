// @ts-check
// How to configure nize in MCP clients, with a token that was just created.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { Code } from '../code.js'
import { t } from '../words.js'

/** @typedef {{name: string, where: string, lang: string, text: (url: string, token: string) => string}} Client */

/** @param {any} v */
const json = (v) => JSON.stringify(v, null, 2)
/** @param {string} token */
const bearer = (token) => ({ Authorization: 'Bearer ' + token })

/** @type {Client[]} */
const clients = [
  { name: 'Claude Code', where: '', lang: 'bash', text: (url, token) => `claude mcp add --transport http nize ${url} --header "Authorization: Bearer ${token}"` },
  { name: 'Claude Desktop', where: 'claude_desktop_config.json', lang: 'json', text: (url, token) => json({ mcpServers: { nize: { command: 'npx', args: ['-y', 'mcp-remote', url, '--header', 'Authorization:${NIZE_AUTH}'], env: { NIZE_AUTH: 'Bearer ' + token } } } }) },
  { name: 'Cursor', where: '~/.cursor/mcp.json', lang: 'json', text: (url, token) => json({ mcpServers: { nize: { url, headers: bearer(token) } } }) },
  { name: 'VS Code', where: 'mcp.json', lang: 'json', text: (url, token) => json({ servers: { nize: { type: 'http', url, headers: bearer(token) } } }) },
  { name: 'Zed', where: 'settings.json', lang: 'json', text: (url, token) => json({ context_servers: { nize: { url, headers: bearer(token) } } }) },
  { name: 'Windsurf', where: '~/.codeium/windsurf/mcp_config.json', lang: 'json', text: (url, token) => json({ mcpServers: { nize: { serverUrl: url, headers: bearer(token) } } }) },
  { name: 'Codex', where: '~/.codex/config.toml', lang: 'ini', text: (url, token) => `[mcp_servers.nize]\nurl = "${url}"\nhttp_headers = { Authorization = "Bearer ${token}" }\ntool_timeout_sec = 660` },
  { name: 'Gemini CLI', where: '~/.gemini/settings.json', lang: 'json', text: (url, token) => json({ mcpServers: { nize: { httpUrl: url, headers: bearer(token), timeout: 660000 } } }) },
]

/** @param {{token: string}} props */
export function Snippets({ token }) {
  const [name, setName] = useState(clients[0].name)
  const client = clients.find((c) => c.name === name) ?? clients[0]
  return html`<div class="snippets"><label for="snippet-client">${t('Set up')}</label> <select id="snippet-client" value=${name} onChange=${(/** @type {any} */ e) => setName(e.currentTarget.value)}>${clients.map((c) => html`<option key=${c.name} value=${c.name}>${c.name}</option>`)}</select>
    ${client.where ? html`<p class="dim"><code>${client.where}</code></p>` : ''}
    <${Code} key=${name} text=${client.text(location.origin + '/mcp', token)} lang=${client.lang} /></div>`
}
