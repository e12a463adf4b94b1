// A small MCP server over stdio for the pictures: it has issues, orders and refunds to
// talk about, and does nothing with them.
import { createInterface } from 'node:readline'

const text = { type: 'string' }
const object = (properties) => ({ type: 'object', additionalProperties: false, required: Object.keys(properties), properties })
const tools = [
  { name: 'search_issues', title: 'Search issues', description: 'Finds issues of a project.', inputSchema: object({ project: text, query: text }), annotations: { readOnlyHint: true } },
  { name: 'close_issues', title: 'Close issues', description: 'Closes issues of a project for good, and tells the people who wrote them.', annotations: { destructiveHint: true },
    inputSchema: object({ project: text, issues: { type: 'array', items: { type: 'integer' } }, reason: { type: 'string', enum: ['done', 'duplicate', 'not planned'] }, duplicate_of: { type: 'integer' } }) },
  { name: 'ship_order', title: 'Ship an order', description: 'Hands an order to a carrier.', inputSchema: object({ order: { type: 'integer' }, carrier: text, notify: text }) },
  { name: 'refund', title: 'Refund a customer', description: 'Pays money back.', annotations: { destructiveHint: true }, inputSchema: object({ customer: text, amount: text, currency: text }) },
]

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line)
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: ask.id, ...result }) + '\n')
  if (ask.method === 'initialize') answer({ result: { protocolVersion: ask.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tracker', version: '1' } } })
  else if (ask.method === 'tools/list') answer({ result: { tools } })
  else if (ask.method === 'tools/call') answer({ result: { content: [{ type: 'text', text: '3 issues closed' }] } })
  else if (ask.method === 'ping') answer({ result: {} })
  else if (ask.id !== undefined) answer({ error: { code: -32601, message: 'unknown' } })
}
