// A person's browser, as far as signing in goes: it opens an address, reads the code
// on the page, confirms it with nizectl, types the number in, and goes where it is
// sent. As a program it opens the first address that it finds on standard input.
import { execFileSync } from "node:child_process";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// navigate opens an address as a window does, which the request's headers say; fetch
// always says that a script asks, and a sign-in doesn't begin by that. It follows no
// redirect.
export function navigate(address, { method = "GET", headers = {}, body } = {}) {
	return new Promise((resolve, reject) => {
		const form = body instanceof URLSearchParams ? { "content-type": "application/x-www-form-urlencoded" } : {};
		const req = request(new URL(address), { method, headers: { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", ...form, ...headers } }, (resp) => {
			const parts = [];
			resp.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
				const list = new Headers();
				for (let i = 0; i < resp.rawHeaders.length; i += 2) list.append(resp.rawHeaders[i], resp.rawHeaders[i + 1]);
				const text = Buffer.concat(parts).toString();
				resolve({ status: resp.statusCode, headers: list, text: async () => text });
			});
		});
		req.on("error", reject).end(body?.toString());
	});
}

// browse opens the address of a client's sign-in and returns where it ends.
export async function browse(address) {
	const asked = await navigate(address);
	const page = new URL(asked.headers.get("location") ?? "", address);
	const cookie = (asked.headers.get("set-cookie") ?? "").split(";")[0];
	const id = page.searchParams.get("request");
	if (asked.status !== 303 || !id) throw new Error(`${address} answers ${asked.status}: ${await asked.text()}`);
	const shown = await (await navigate(page, { headers: { cookie } })).text();
	const code = /class="code">([A-Z0-9-]+)</.exec(shown)?.[1];
	if (!code) throw new Error(`no code on the page: ${shown}`);
	const { number } = JSON.parse(execFileSync("nizectl", ["login", "approve", code, "--json"], { encoding: "utf8" }));
	const done = await fetch(new URL(`/oauth/requests/${id}`, page), {
		method: "POST",
		headers: { cookie, "content-type": "application/json" },
		body: JSON.stringify({ number }),
	});
	const { redirect } = await done.json();
	if (!redirect) throw new Error(`the number was answered ${done.status}`);
	return new URL(redirect);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	for await (const line of createInterface({ input: process.stdin })) {
		const address = /https?:\/\/\S+\/oauth\/authorize\?\S+/.exec(line)?.[0];
		if (!address) continue;
		const last = await fetch(await browse(address));
		console.log(`the client's page answered ${last.status}`);
		break;
	}
	process.stdin.resume(); // what writes there may go on
}
