// A program in TypeScript, on a client that openapi-typescript and openapi-fetch make
// of /openapi.json: a round with the tools of an MCP server, a yes, and a stream.
// scripts/peers.sh checks its types and runs it.
import createClient from "openapi-fetch";
import type { components, paths } from "./nize.js";

declare const process: { env: Record<string, string | undefined> };
type Event = components["schemas"]["RoundEvent"];

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};
const client = createClient<paths>({ baseUrl: need("NIZE_URL"), headers: { "x-api-key": need("NIZE_KEY") } });

// check throws where the round is not as it should be.
function check(ok: boolean, what: string, seen: unknown): asserts ok {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

const server: components["schemas"]["MCPTool"] = {
  type: "mcp", server_label: "conformance", server_url: need("MCP_URL"), allowed_tools: ["test_simple_text"], require_approval: "always",
  headers: { Authorization: { secret_key: "TOKEN" } },
};
const messages: components["schemas"]["Message"][] = [{ role: "user", content: "Run the simple text test" }];

// A round that waits for a yes, and goes on with it.
const asked = await client.POST("/llm-exec/round", { body: { model: "offline/planner", messages, tools: [server] } });
check(asked.data?.status === "requires_approval", "the round waits for a yes", asked.data ?? asked.error);
const [call] = asked.data.proposed_calls;
check(call?.tool === "test_simple_text" && call.server_label === "conformance", "its call", asked.data);
const done = await client.POST("/llm-exec/round", {
  body: { round_id: asked.data.id, approvals: [{ id: call.id, digest: call.digest, approve: true }] },
});
check(done.data?.status === "completed" && (done.data.message?.content ?? "").includes("simple text response"), "the answer", done.data ?? done.error);
check(done.response.headers.get("X-Round-Id") === asked.data.id, "its header", [...done.response.headers]);

// An error has its type, and says which field it is about.
const wrong = await client.POST("/llm-exec/round", { body: { model: "nothing/of-that-name", messages } });
check(wrong.error?.error?.type === "not_found" && wrong.error.error.param === "model", "an unknown model", wrong.error);

// The same as a stream.
const streamed = await client.POST("/llm-exec/round/stream", { body: { model: "offline/planner", messages, tools: [server] }, parseAs: "text" });
check(streamed.response.ok, "the stream", streamed.error);
const events = streamed.data!.trim().split("\n\n").filter((b) => !b.startsWith(":")).map((block) => {
  const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  return { id: fields.id, event: fields.event, data: JSON.parse(fields.data!) } as Event;
});
const proposed = events.find((e) => e.event === "tool.proposed");
check(proposed?.event === "tool.proposed" && proposed.data.tool === "test_simple_text", "tool.proposed", events);
const last = events.at(-1);
check(last?.event === "round.finished" && last.data.status === "requires_approval", "the last event", events);

// It is ended, and then nothing comes any more.
const id = last.data.round_id;
const ended = await client.DELETE("/llm-exec/rounds/{id}", { params: { path: { id } } });
check(ended.response.status === 204, "the end", ended.error);
const after = await client.GET("/llm-exec/rounds/{id}", { params: { path: { id } } });
check(after.data?.status === "failed" && after.data.error?.type === "conflict", "after the end", after.data ?? after.error);

console.log(`${events.length} events, ${done.data.steps} steps`);
