// A browser with cookies, `node visit.mjs ADDRESS`: it opens the page of a login at a
// server, presses its button with what stands behind the #, goes where it is sent, and
// prints what the last page says. Where a nized asks who signs in, that is confirmed
// with nizectl.
import { execFileSync } from "node:child_process";
import { navigate } from "./browser.mjs";

const jar = new Map(); // by origin; paths make no difference here
let at = new URL(process.argv[2]);

const plain = (text) => text?.replace(/&#(\d+);/g, (_, n) => String.fromCodePoint(n)).replaceAll("&amp;", "&");

async function open(address, options = {}) {
	for (let hops = 0; hops < 20; hops++) {
		at = new URL(address, at);
		const cookies = jar.get(at.origin) ?? new Map();
		jar.set(at.origin, cookies);
		const resp = await navigate(at, { ...options, headers: { cookie: [...cookies].map(([k, v]) => `${k}=${v}`).join("; "), ...options.headers } });
		for (const line of resp.headers.getSetCookie()) {
			const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
			if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) cookies.delete(name);
			else cookies.set(name, value);
		}
		const text = await resp.text();
		address = resp.headers.get("location") ?? plain(/http-equiv="refresh" content="\d+;url=([^"]+)"/.exec(text)?.[1]);
		options = {};
		if (!address) return text;
	}
	throw new Error(`sent on and on, to ${at}`);
}

const secret = at.hash.slice(1);
at.hash = "";
await open(at);
let page = await open(at, { method: "POST", body: new URLSearchParams({ secret }) });
const code = /class="code">([A-Z0-9-]+)</.exec(page)?.[1];
if (code) {
	const { number } = JSON.parse(execFileSync("nizectl", ["login", "approve", code, "--json"], { encoding: "utf8" }));
	const resp = await fetch(new URL(`/oauth/requests/${at.searchParams.get("request")}`, at), {
		method: "POST",
		headers: { "content-type": "application/json", cookie: [...jar.get(at.origin)].map(([k, v]) => `${k}=${v}`).join("; ") },
		body: JSON.stringify({ number }),
	});
	page = await open((await resp.json()).redirect);
}
console.log(page.replace(/<(style|script)[\s\S]*?<\/\1>/g, "").replace(/<[^>]+>/g, " ").replace(/\s+/g, " ").trim());
