// The TypeScript SDK's client signs in to nize, knowing nothing but the address of
// /mcp: it finds out how, registers, sends its person's browser, and then calls a
// tool. Its access token gone, it refreshes; signed out, it is told to sign in again.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { browse } from "./browser.mjs";

const url = new URL(process.argv[2]);
const kept = {};
let opened;
const provider = {
	redirectUrl: "http://127.0.0.1:33418/callback",
	clientMetadata: { client_name: "The TypeScript SDK", redirect_uris: ["http://127.0.0.1:33418/callback"], token_endpoint_auth_method: "none" },
	state: () => "some-state",
	clientInformation: () => kept.client,
	saveClientInformation: (client) => void (kept.client = client),
	tokens: () => kept.tokens,
	saveTokens: (tokens) => void (kept.tokens = tokens),
	redirectToAuthorization: (address) => void (opened = address),
	saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
	codeVerifier: () => kept.verifier,
	invalidateCredentials: (what) => { if (what !== "verifier") delete kept.tokens; },
};

function check(ok, what, seen) {
	if (!ok) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

async function list() {
	const client = new Client({ name: "peers", version: "1" });
	await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }));
	const { tools } = await client.listTools();
	await client.close();
	return tools.length;
}

// wants says whether the client is told to sign in.
const wants = () => list().then(() => false, (err) => { if (err instanceof UnauthorizedError) return true; throw err; });

check(await wants(), "a client without a token is let in");
const back = await browse(opened);
check(back.searchParams.get("state") === "some-state" && back.searchParams.get("iss") === url.origin, "the answer", back.href);
const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
await transport.finishAuth(back.searchParams);
check(kept.tokens?.refresh_token?.startsWith("nizr_") && (await list()) === 5, "signed in", Object.keys(kept));

const before = kept.tokens;
kept.tokens = { ...before, access_token: `${before.access_token.slice(0, -5)}00000` };
check((await list()) === 5 && kept.tokens.refresh_token !== before.refresh_token, "refreshed", Object.keys(kept.tokens));

const ended = await fetch(new URL("/oauth/revoke", url), {
	method: "POST",
	body: new URLSearchParams({ token: kept.tokens.refresh_token, client_id: kept.client.client_id }),
});
check(ended.status === 200 && (await wants()), "revoked, and let in", ended.status);
console.log("registered, signed in, five tools, refreshed, revoked");
