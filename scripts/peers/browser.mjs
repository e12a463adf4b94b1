// A person's browser, as far as signing in goes: it opens an address, reads the code
// on the page, confirms it with nizectl, types the number in, and goes where it is
// sent. As a program it opens the first address that it finds on standard input.
import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// browse opens the address of a client's sign-in and returns where it ends.
export async function browse(address) {
	const asked = await fetch(address, { redirect: "manual" });
	const page = new URL(asked.headers.get("location") ?? "", address);
	const cookie = (asked.headers.get("set-cookie") ?? "").split(";")[0];
	const id = page.searchParams.get("request");
	if (asked.status !== 303 || !id) throw new Error(`${address} answers ${asked.status}: ${await asked.text()}`);
	const shown = await (await fetch(page, { headers: { cookie } })).text();
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
