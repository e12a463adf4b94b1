// An authorization server that others wrote (oidc-provider) before a small MCP
// server: `node oidc.mjs` prints the MCP server's address. Whoever comes with a
// browser is ann, and allows what is asked for. Access tokens end after three
// seconds; POST /end of the MCP server ends all that was granted.
import http from "node:http";
import Provider from "oidc-provider";

async function listen() {
	const server = http.createServer().listen(0, "127.0.0.1");
	await new Promise((ready) => server.once("listening", ready));
	return [server, `http://127.0.0.1:${server.address().port}`];
}
const [mcp, origin] = await listen();
const [auth, issuer] = await listen();
const resource = `${origin}/mcp`;
const grants = new Set();

const provider = new Provider(issuer, {
	scopes: ["openid", "offline_access"],
	features: {
		devInteractions: { enabled: false },
		registration: { enabled: true },
		revocation: { enabled: true },
		resourceIndicators: {
			enabled: true,
			defaultResource: () => resource,
			useGrantedResource: () => true,
			getResourceServerInfo: (_, asked) => {
				if (asked !== resource) throw new Error(`a token for ${asked}`);
				return { scope: "tools", audience: resource, accessTokenTTL: 3, accessTokenFormat: "opaque" };
			},
		},
	},
	rotateRefreshToken: true,
	issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
	pkce: { required: () => true },
	findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
	interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
	cookies: { keys: ["of a test"] },
});
const answer = provider.callback();
auth.on("request", async (req, res) => {
	if (!req.url.startsWith("/interaction/")) return answer(req, res);
	const { prompt, params, grantId } = await provider.interactionDetails(req, res);
	if (prompt.name === "login") return provider.interactionFinished(req, res, { login: { accountId: "ann" } });
	const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: "ann", clientId: params.client_id });
	grant.addOIDCScope("openid offline_access");
	grant.addResourceScope(resource, "tools");
	const id = await grant.save();
	grants.add(id);
	return provider.interactionFinished(req, res, { consent: { grantId: id } }, { mergeWithLastSubmission: true });
});

const tools = [{ name: "whoami", description: "Says who is signed in", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }];
let refreshed = 0;
provider.on("grant.success", (ctx) => (refreshed += ctx.oidc.params.grant_type === "refresh_token" ? 1 : 0));
mcp.on("request", async (req, res) => {
	const send = (status, v, headers = {}) => res.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(v));
	if (req.url === "/.well-known/oauth-protected-resource/mcp") return send(200, { resource, authorization_servers: [issuer], scopes_supported: ["tools"] });
	if (req.url === "/end") {
		for (const id of grants) {
			for (const kind of ["AccessToken", "RefreshToken", "AuthorizationCode"]) await provider[kind].revokeByGrantId(id);
			await (await provider.Grant.find(id))?.destroy();
		}
		return send(200, {});
	}
	if (req.url !== "/mcp" || req.method !== "POST") return send(405, {});
	const token = await provider.AccessToken.find((req.headers.authorization ?? "").replace(/^Bearer /, ""));
	if (!token?.isValid || [token.aud].flat()[0] !== resource) {
		return send(401, {}, { "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"` });
	}
	let body = "";
	for await (const part of req) body += part;
	const { id, method } = JSON.parse(body);
	if (id === undefined) return res.writeHead(202).end();
	const result = {
		initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "behind", version: "1" } },
		"tools/list": { tools },
		"tools/call": { content: [{ type: "text", text: `${token.accountId} is signed in, refreshed ${refreshed} times` }] },
	}[method];
	return send(200, result ? { jsonrpc: "2.0", id, result } : { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
});
console.log(resource);
