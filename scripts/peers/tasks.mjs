// @modelcontextprotocol/ext-tasks as a client of nize's tasks, on the TypeScript SDK's
// client: over HTTP and through nizectl mcp, with tasks of both protocol generations. A
// call that waits for approval is a task, a server's question is answered by the client,
// progress is the task's message, and a task is cancelled.
//
// Usage: node tasks.mjs URL TOKEN NIZECTL
import { execFileSync } from "node:child_process";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [url, token, nizectl] = process.argv.slice(2);
const modern = "2026-07-28";

function check(ok, what, seen) {
	if (!ok) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

const nize = (...args) => execFileSync(nizectl, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

const capabilities = { elicitation: {} };
const info = { name: "ext-tasks", version: "1" };

// overHTTP sends one request of 2026-07-28 as it is, since the SDK's codecs know no tasks.
async function overHTTP(request) {
	const name = request.params.taskId ?? request.params.name;
	const res = await fetch(url, {
		method: "POST",
		headers: {
			Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream",
			"MCP-Protocol-Version": modern, "Mcp-Method": request.method, "Mcp-Name": name,
		},
		body: JSON.stringify({ jsonrpc: "2.0", id: `raw-${++raws}`, ...request }),
	});
	const text = await res.text();
	const documents = res.headers.get("Content-Type").startsWith("text/event-stream")
		? text.split("\n").filter((line) => line.startsWith("data:") && line.length > 6).map((line) => line.slice(5)) : [text];
	return documents.map((d) => JSON.parse(d)).find((d) => d.result || d.error);
}
let raws = 0;

// overPipe does the same between the messages of a client's own transport.
function overPipe(transport) {
	const open = new Map();
	const pass = transport.onmessage;
	transport.onmessage = (message, extra) => {
		const done = open.get(message.id);
		if (!done || message.method) return pass(message, extra);
		open.delete(message.id);
		done(message);
	};
	return (request) => new Promise((resolve, reject) => {
		const id = `raw-${++raws}`;
		open.set(id, resolve);
		transport.send({ jsonrpc: "2.0", id, ...request }).catch(reject);
	});
}

// connect opens a session of a generation over a transport.
async function connect(generation, wire) {
	const client = new Client(info, { capabilities, versionNegotiation: { mode: generation === "v2" ? { pin: modern } : "legacy" } });
	const transport = wire === "http"
		? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
		: new StdioClientTransport({ command: nizectl, args: ["mcp"], env: { ...process.env } });
	await client.connect(transport);
	const send = wire === "http" ? overHTTP : overPipe(transport);
	const asked = [];
	const session = createTaskSessionFromClient(client, {
		endpointId: `${generation} ${wire}`,
		onError: (err) => console.error(err),
		onInputRequest: async (request, context) => {
			asked.push({ request, context });
			return { action: "accept", content: { name: "Ada", check: true, integer: 7 } };
		},
		...(generation === "v2" ? {
			rawDispatch: async (request) => {
				const { result, error } = await send(request);
				return error ? { kind: "error", error } : { kind: "result", result };
			},
			v2RequestFraming: { protocolVersion: modern, clientInfo: info, clientCapabilities: capabilities },
		} : {}),
	});
	return { client, session, asked };
}

const textOf = (outcome) => JSON.stringify(resultFromTaskOutcome(outcome));

// A client of the older generation asks for a task; in the newer one nize decides.
const execute = (generation, session, tool, params) =>
	session.callTool("execute_tool", { tool_id: tool, params }, { task: generation === "v1" ? { preference: "require", retentionMs: 3600_000 } : {} });

async function waits(session, handle) {
	const view = await session.task(handle.taskId).snapshot();
	check(view.status === "working" && view.statusMessage.includes("waiting for approval by "), "a task that waits", view);
}

for (const generation of ["v1", "v2"]) {
	for (const wire of ["http", "pipe"]) {
		const { client, session, asked } = await connect(generation, wire);
		const what = `${generation} over ${wire}`;

		// One that a person approves, and one that another session fetches.
		let execution = await execute(generation, session, "memory:create_entities", { entities: [{ name: what, entityType: "task", observations: ["approved"] }] });
		check(execution.kind === "task", `${what}: a call that needs approval is a task`, execution.kind);
		await waits(session, execution.handle);
		nize("approvals", "approve", execution.handle.taskId, "--yes");
		const { outcome } = await execution.settle();
		check(outcome.status === "completed" && textOf(outcome).includes(what), `${what}: its result`, outcome);

		execution = await execute(generation, session, "memory:create_entities", { entities: [{ name: `${what} later`, entityType: "task", observations: ["fetched later"] }] });
		let reference;
		await execution.handoff((r) => void (reference = r));
		nize("approvals", "approve", reference.taskId, "--yes");
		const later = await connect(generation, wire);
		const resumed = await later.session.resumeTask(reference);
		const fetched = (await resumed.settle()).outcome;
		check(fetched.status === "completed" && textOf(fetched).includes("fetched later"), `${what}: fetched by another session`, fetched);
		await later.session.close();
		await later.client.close();

		// One that is cancelled while it waits.
		execution = await execute(generation, session, "memory:create_entities", { entities: [{ name: `${what} cancelled`, entityType: "task", observations: [] }] });
		await waits(session, execution.handle);
		await execution.cancel();
		check((await execution.settle()).outcome.status === "cancelled", `${what}: a cancelled task`, execution.handle);

		// One whose server asks.
		execution = await execute(generation, session, "asks:trigger-elicitation-request", {});
		const answered = (await execution.settle()).outcome;
		check(answered.status === "completed" && textOf(answered).includes("Ada"), `${what}: a task whose server asks`, answered);
		check(asked.length === 1 && asked[0].request.kind === "elicitation" && asked[0].request.params.message.startsWith("asks:trigger-elicitation-request asks: "), `${what}: the question`, asked);

		// One with progress: it takes longer until a poll on a busy machine sees some.
		const messages = new Set();
		const progressed = () => [...messages].some((m) => /^running: [1-3] of 4$/.test(m ?? ""));
		for (let duration = 4; duration <= 64 && !progressed(); duration *= 2) {
			execution = await execute(generation, session, "asks:trigger-long-running-operation", { duration, steps: 4 });
			const slow = (await execution.settle({ onEvent: (event) => { if (event.type === "task") messages.add(event.task.statusMessage); } })).outcome;
			check(slow.status === "completed", `${what}: a slow task`, slow);
		}
		check(progressed(), `${what}: its progress`, [...messages]);

		await session.close();
		await client.close();
	}
}
console.log("both generations over HTTP and nizectl mcp: approved, fetched by another session, cancelled, asked, with progress");
