// An MCP server over stdio with the tools that the tests of cards need: one with an
// argument of every kind, one that fails at first, one whose result is long, one that
// runs until there is a file of that name with .go behind it, two that ask the person. Each run of one is a line in
// the file that it is given.
import fs from 'node:fs'
import { createInterface } from 'node:readline'

const log = process.argv[2]

const order = {
  type: 'object', additionalProperties: false, required: ['to', 'amount', 'how'],
  properties: {
    to: { type: 'string', minLength: 2, description: 'Who gets it' },
    amount: { type: 'integer', minimum: 10, description: 'How many, exactly' },
    price: { type: 'number' },
    urgent: { type: 'boolean', description: 'Whether it is in a hurry' },
    how: { type: 'string', enum: ['train', 'ship', 'plane'] },
    on: { type: 'string', format: 'date' },
    note: { type: 'string' },
    tags: { type: 'array', items: { type: 'string', maxLength: 8 } },
    place: { type: 'object', required: ['city'], properties: { city: { type: 'string' }, lines: { type: 'array', items: { type: 'object', required: ['text'], properties: { text: { type: 'string' }, width: { type: 'number' } } } } } },
    other: {},
  },
}
const anything = { type: 'object', additionalProperties: true }
const tools = [
  { name: 'order', title: 'Order goods', description: 'Orders goods.', inputSchema: order },
  { name: 'echo', description: 'Returns what it is given.', inputSchema: anything, annotations: { destructiveHint: false } },
  { name: 'shaky', description: 'Fails the first time.', inputSchema: anything },
  { name: 'gated', description: 'Runs until it is let go.', inputSchema: anything },
  { name: 'book', description: 'Asks where to.', inputSchema: anything, annotations: { readOnlyHint: true, destructiveHint: false } },
  { name: 'visit', description: 'Asks for a visit to a page.', inputSchema: anything, annotations: { readOnlyHint: true, destructiveHint: false } },
  { name: 'long', description: 'Returns a long list.', inputSchema: anything },
]

/** @type {Record<string, (args: string) => any>} */
const run = {
  order: (args) => text(args),
  echo: (args) => text(args),
  shaky: () => runs('shaky') > 1 ? text('It worked.') : { isError: true, ...text('The lorry broke down.') },
  gated: async (args) => {
    while (!fs.existsSync(log + '.go')) await new Promise((done) => setTimeout(done, 20))
    return text(args)
  },
  book: () => elicit({ message: 'Where to?', requestedSchema: travel }),
  visit: () => elicit({ mode: 'url', message: 'Sign in there.', url: 'https://air.example/in?state=a<b', elicitationId: 'e1' }),
  long: () => text(JSON.stringify(Array.from({ length: 2500 }, (_, i) => ({ id: i, name: 'item number ' + i, price: 'X'.repeat(20), more: [i] }))).replaceAll('"id":7,', '"id":9007199254740993,')),
}

const travel = {
  type: 'object', required: ['city'],
  properties: {
    city: { type: 'string', title: 'City', minLength: 2, maxLength: 12, description: 'Where you go' },
    mail: { type: 'string', title: 'Mail', format: 'email' },
    day: { type: 'string', title: 'Day', format: 'date' },
    seats: { type: 'integer', title: 'Seats', minimum: 1, maximum: 9, default: 2 },
    weight: { type: 'number', title: 'Weight' },
    class: { type: 'string', title: 'Class', oneOf: [{ const: 'y', title: 'Economy' }, { const: 'j', title: 'Business' }], default: 'y' },
    window: { type: 'boolean', title: 'At the window' },
    extras: { type: 'array', title: 'Extras', items: { type: 'string', enum: ['meal', 'bag'] } },
  },
}
const asking = new Set(['book', 'visit'])
/** What waits for the client's answers. @type {Map<string, (answer: any) => void>} */
const asked = new Map()
/** Asks the client, and returns what it answered as a text. @param {any} params */
const elicit = (params) => new Promise((done) => {
  const id = `ask-${asked.size}`
  asked.set(id, (answer) => done(text(JSON.stringify(answer.result ?? answer.error))))
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params }) + '\n')
})

/** @param {string} said */
const text = (said) => ({ content: [{ type: 'text', text: said }] })

/** How often a tool ran. @param {string} name */
const runs = (name) => fs.readFileSync(log, 'utf8').split('\n').filter((l) => l.startsWith(name + ' ')).length

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line)
  /** @param {any} result */
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: ask.id, ...result }) + '\n')
  if (!ask.method) asked.get(ask.id)?.(ask)
  else if (ask.method === 'initialize') answer({ result: { protocolVersion: ask.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'depot', version: '1' } } })
  else if (ask.method === 'tools/list') answer({ result: { tools } })
  else if (ask.method === 'tools/call') {
    const args = /"arguments":(\{.*\})/s.exec(line)?.[1] ?? '{}' // as they were written: what stands behind is cut off by reading it
    fs.appendFileSync(log, `${ask.params.name} ${whole(args)}\n`)
    const result = run[ask.params.name](whole(args))
    if (asking.has(ask.params.name)) result.then((/** @type {any} */ result) => answer({ result })) // its answer comes by this loop
    else answer({ result: await result })
  } else if (ask.method === 'ping') answer({ result: {} })
  else if (ask.id !== undefined) answer({ error: { code: -32601, message: 'unknown' } })
}

/** The object with which a text begins. @param {string} rest */
function whole(rest) {
  for (let end = rest.indexOf('}') + 1; end > 0; end = rest.indexOf('}', end) + 1) {
    try {
      JSON.parse(rest.slice(0, end))
      return rest.slice(0, end)
    } catch {}
  }
  return rest
}
