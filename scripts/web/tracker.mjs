// A small MCP server over stdio for the pictures: it has issues, orders and refunds to
// talk about, and does nothing with them.
import { createInterface } from 'node:readline'

/** A picture of bars, as a PNG. */
const chart = 'iVBORw0KGgoAAAANSUhEUgAAAeAAAADwCAIAAABXFyDtAAAFrElEQVR42u3UQQ0AIQxFwapDDoqxAQdOyGiBSZ6An7I7MdeWJBUsnECSAC1JArQkAVqSBGhJArQkCdCSJEBLEqAlSYCWJEBLkgAtSQK0JAFakgRoSQK0JAnQkgRoSRKgJUmAliRAS7qn1kd6XgHQkgANaEmABjSgJQEa0JIADWhASwK0AC0J0ICWBGhAA1oSoAEtCdCABrQkQANaEqABDWhJgAY0oCUBGtCSAA1oQEsCNKAlARrQgJYEaAFaEqABLQnQgAa0JEADWhKgAQ1oSYAGtCtIgAY0oCUBGtCAlgRoQEsCNKABLQnQgJYEaEADWhKgBWhJgAa0JEADGtCSAA1oSYAGNKAlAVqAlgANaEBLAjSgAS0J0ICWBGhAA1oSoAEtCdCABrQkQHsIQEsCNKAlARrQgJYEaEBLAjSgAS0J0AK0BGhAA1oSoAENaEmABrQECPd3f0ALEIBwf0BLgHB/9we0BAj3BzSgBQhAuD+gJUC4v/sDWoAAhPsDWgKE+7s/oAUIQLi/AC1AAML9AS0Bwv3dH9ACBCDcH9ASINzf/QEtQADC/QHtCgKE+7s/oCVAuL/7A1qAAIT7A1oChPu7P6AFCEC4P6AlQLi/+wNagACE+wvQAgQg3B/QEiDc3/0BLUAAwv0BLQHC/d0f0AIEINxfgBYg3N/9AS0Bwv3dH9ACBCDcH9ASINzf/QEtQNQDwn5AA1qABpz9gJYAbT+gAS0Bzn5AA1qABhygAS0Bzn5AA1qABpz9gJYAbT+gAS1AA85+AVqABhygAS0Bzn5AA1qABhygAS0B2n5AA1qABpz9gJYAbT+gAS0Bzn5AA1qABhygAS0Bzn5AA1qABpz9gJYAbT+gAS1AA85+AVqABhygAS0Bzn5AA1qABhygAS0B2n5AA1qABpz9ArQAbT+gAS0Bzn5AA1qABhygAS0Bzn5AAxoQ7g84+wENCB+o+9vv+wc0IAANOPsFaB+o+wPO9w9oQPhAAWe/7x/QgHZ/wPn+AQ0IH6j72+/7BzQg3B9w9gvQPlD3B7TvH9CA8IECzn7fP6B9oO4POPvf+X8BDWj3t99+QAMC0ICw335Ae2D3B4T9gAYEoAFhv/2ABoT7A8J+QAMC0O5vv/2ABgSgAWG//xfQgHZ/QNgPaEAAGhD22w9oQLs/IOwHNCAA7f722w9oQLg/IOz3/wIa0O4POPsBDQhAA8J++wHtgd0fEPYDGhCABrT99gMaEO4PCPsBDQhAu7/99gMaEIAGhP2ABrQP1H777Qc0oH2g9ttvP6ABbb/99gMa0D5Q++23H9CAtt9++wENaB+o/fbbD2hA+0Dtt99+QPtA7bfffkAD2gdqv/32AxrQ9ttvP6AB7QO13377AQ1oH6j99tsPaB+o/fbbD2hA+0Dtt99+QAPafvvtBzSgfaD2228/oAFtv/32AxrQPlD77bcf0ID2gdpvv/2A9oHab7/9gPbA9ttvv/2A9sD2228/oD2w/fbbbz+gPbD99ttvP6Dtt99++wHtge233377Ae2B7bfffkB7YPvtt99+QHtg++23H9CAtt9+++0HtAe233777Qe0D9R+++0HtAe233777Qe0B7bffvsBDWj77bfffkB7YPvtt99+QNtvv/32A9oD22+//fYD2gPbb7/9gPbA9ttvv/2A9sD2228/oAFtv/322w9oD2y//fbbD2gPbL/99gPaA9tvv/32A9oD22+//YAGtP32228/oD2w/fbbbz+g7bfffvsB7YHtt99++wHtge23335Ae2D77bfffkB7YPvtt99+QNtvv/32A9oD22+//fYD2gPbb7/9gPbA9ttvv/2A9sD2228/oAFtv/322/8F0JIkQEsSoCVJgJYkAVqSAC1JArQkAVqSBGhJEqAlCdCSJEBLEqAlSYCWJEBLkgAtSQK0JAFakgRoSQK0JCmtA5tt+8f0oOSlAAAAAElFTkSuQmCC'

const text = { type: 'string' }
const object = (properties) => ({ type: 'object', additionalProperties: false, required: Object.keys(properties), properties })
const tools = [
  { name: 'search_issues', title: 'Search issues', description: 'Finds issues of a project.', inputSchema: object({ project: text, query: text }), annotations: { readOnlyHint: true } },
  { name: 'close_issues', title: 'Close issues', description: 'Closes issues of a project for good, and tells the people who wrote them.', annotations: { destructiveHint: true },
    inputSchema: object({ project: text, issues: { type: 'array', items: { type: 'integer' } }, reason: { type: 'string', enum: ['done', 'duplicate', 'not planned'] }, duplicate_of: { type: 'integer' } }) },
  { name: 'ship_order', title: 'Ship an order', description: 'Hands an order to a carrier.', inputSchema: object({ order: { type: 'integer' }, carrier: text, notify: text }) },
  { name: 'reply', title: 'Answer an issue', description: 'Writes an answer to the people who wrote an issue.', inputSchema: object({ issue: { type: 'integer' }, text }) },
  { name: 'edit_file', title: 'Edit a file', description: 'Replaces a text in a file.', inputSchema: object({ path: text, old_string: text, new_string: text }) },
  { name: 'chart', title: 'Draw a chart', description: 'Draws the issues of a week.', inputSchema: object({}), annotations: { readOnlyHint: true } },
  { name: 'shaky', title: 'Export issues', description: 'Exports issues, and fails.', inputSchema: object({ project: text }) },
  { name: 'refund', title: 'Refund a customer', description: 'Pays money back.', annotations: { destructiveHint: true }, inputSchema: object({ customer: text, amount: text, currency: text }) },
]

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line)
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: ask.id, ...result }) + '\n')
  if (ask.method === 'initialize') answer({ result: { protocolVersion: ask.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'tracker', version: '1' } } })
  else if (ask.method === 'tools/list') answer({ result: { tools } })
  else if (ask.method === 'tools/call' && ask.params.name === 'shaky') answer({ result: { isError: true, content: [{ type: 'text', text: 'the export service answered 503: try again in a minute' }] } })
  else if (ask.method === 'tools/call' && ask.params.name === 'chart') answer({ result: { content: [{ type: 'image', mimeType: 'image/png', data: chart }] } })
  else if (ask.method === 'tools/call') answer({ result: { content: [{ type: 'text', text: '3 issues closed' }] } })
  else if (ask.method === 'ping') answer({ result: {} })
  else if (ask.id !== undefined) answer({ error: { code: -32601, message: 'unknown' } })
}
