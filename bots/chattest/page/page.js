// The page draws what /dev/state tells and posts what a person does to
// /dev/act. It never makes markup of a string: text becomes text nodes.
"use strict";

const $ = (id) => document.getElementById(id);
const key = location.hash.slice(1);
const here = { user: "", channel: "", thread: "", home: false };
let picture = { revision: -1, users: [], channels: [] };
let asking = null;

// el makes an element; children are elements or strings.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

const ended = () => `nizectl dev ${(picture.platform || "").toLowerCase()} has ended`;

function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = !text;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { $("toast").hidden = true; }, 6000);
}

async function act(deed) {
  const answer = await fetch("dev/act", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Key": key },
    body: JSON.stringify({ user: here.user, channel: here.channel, ...deed }),
  }).catch(() => null);
  if (!answer) return toast(ended());
  if (answer.status === 403) return toast(await answer.text());
  const got = await answer.json();
  if (got.error) toast(got.error);
  return got;
}

// refresh asks for the present picture; the loop then waits for the next.
function refresh() {
  picture.revision = -1;
  if (asking) asking.abort();
}

async function watch() {
  for (;;) {
    asking = new AbortController();
    const q = new URLSearchParams({ user: here.user, channel: here.channel, thread: here.thread, since: picture.revision });
    try {
      const answer = await fetch("dev/state?" + q, { headers: { "X-Key": key }, signal: asking.signal });
      if (answer.status === 403) return toast(await answer.text());
      picture = await answer.json();
      if (!here.user) {
        Object.assign(here, { user: picture.you, channel: picture.where });
        refresh();
        continue;
      }
      draw();
    } catch (err) {
      if (err.name === "AbortError") continue;
      $("linked").textContent = ended();
      await new Promise((r) => setTimeout(r, 2000));
    }
  }
}

// Names.

const nameOf = (id) => (picture.users.find((u) => u.id === id) || { name: id }).name;
const channelName = (id) => (picture.channels.find((c) => c.id === id) || { name: id }).name || "direct message";
const unescape = (s) => s.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

function linkTo(url, label) {
  if (!/^(https?|mailto):/i.test(url)) return el("span", {}, label || url);
  return el("a", { href: url, target: "_blank", rel: "noreferrer noopener" }, label || url);
}

// reference is what stands between < and > in Slack's markup.
function reference(ref) {
  const bar = ref.indexOf("|");
  const target = bar < 0 ? ref : ref.slice(0, bar);
  const label = bar < 0 ? "" : unescape(ref.slice(bar + 1));
  if (target.startsWith("@")) return el("span", { class: "ref" }, "@" + nameOf(target.slice(1)));
  if (target.startsWith("#")) return el("span", { class: "ref" }, "#" + channelName(target.slice(1)));
  if (target.startsWith("!date^")) return el("span", {}, label || target);
  if (target.startsWith("!")) return el("span", { class: "ref" }, "@" + (label.replace(/^@/, "") || target.slice(1).replace(/^subteam\^/, "")));
  return linkTo(unescape(target), label);
}

// inline turns spans of a line into nodes. marks are [pattern, make], where the
// pattern's first group is what stands inside.
function inline(text, marks, plain) {
  let first = null;
  for (const [pattern, make] of marks) {
    const m = pattern.exec(text);
    if (m && (!first || m.index < first.m.index)) first = { m, make };
  }
  if (!first) return text ? [plain(text)] : [];
  const { m, make } = first;
  const before = text.slice(0, m.index);
  return [before ? plain(before) : null, make(m), ...inline(text.slice(m.index + m[0].length), marks, plain)];
}

const slackMarks = [
  [/```([\s\S]+?)```/, (m) => el("pre", {}, inline(m[1].replace(/^\n/, ""), [[/<([^<>]+)>/, (n) => reference(n[1])]], unescape))],
  [/`([^`\n]+)`/, (m) => el("code", {}, inline(m[1], [[/<([^<>]+)>/, (n) => reference(n[1])]], unescape))],
  [/<([^<>]+)>/, (m) => reference(m[1])],
  [/(?<![\w*])\*([^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])/, (m) => el("b", {}, inline(m[1], slackMarks, unescape))],
  [/(?<![\w_])_([^\s_](?:[^_\n]*[^\s_])?)_(?![\w_])/, (m) => el("i", {}, inline(m[1], slackMarks, unescape))],
  [/(?<![\w~])~([^\s~](?:[^~\n]*[^\s~])?)~(?![\w~])/, (m) => el("s", {}, inline(m[1], slackMarks, unescape))],
  [/(?:^|\n)((?:&gt;[^\n]*(?:\n|$))+)/, (m) => el("blockquote", {}, inline(m[1].replace(/^&gt; ?/gm, ""), slackMarks, unescape))],
  [/\n/, () => el("br")],
  [/(https?:\/\/[^\s<>|]+)/, (m) => linkTo(unescape(m[1]))],
];

const mrkdwn = (text) => inline(text, slackMarks, unescape);

// same is text of Markdown, in which the three entities stand for their signs.
const same = unescape;
const lineMarks = [
  [/`([^`]+)`/, (m) => el("code", {}, m[1])],
  [/\*\*([^\s*](?:.*?[^\s])?)\*\*/, (m) => el("b", {}, inline(m[1], lineMarks, same))],
  [/~~([^\s~](?:.*?[^\s])?)~~/, (m) => el("s", {}, inline(m[1], lineMarks, same))],
  [/(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])/, (m) => el("i", {}, inline(m[1], lineMarks, same))],
  [/(?<![\w_])_([^\s_](?:[^_]*[^\s_])?)_(?![\w_])/, (m) => el("i", {}, inline(m[1], lineMarks, same))],
  [/\[([^\]]+)\]\(<?([^)\s>]+)>?\)/, (m) => linkTo(m[2], m[1])],
  [/<t:(\d+)(?::(\w))?>/, (m) => when(Number(m[1]), m[2])],
  [/<@[!&]?(\d+)>/, (m) => reference("@" + m[1])],
  [/<([@#!][^<>]+|https?:[^<>]+)>/, (m) => reference(m[1])],
  [/(https?:\/\/[^\s<>)]+)/, (m) => linkTo(m[1])],
  [/\\([\\`*_{}[\]()#+\-.!<>|~&])/, (m) => m[1]],
];

// when is a time as Discord writes it: how far off it is, or its date and hour.
function when(seconds, form) {
  const minutes = Math.round((seconds * 1000 - Date.now()) / 60000);
  return el("span", {}, form === "R" ? (minutes < 0 ? `${-minutes} min ago` : `in ${minutes} min`) : new Date(seconds * 1000).toLocaleString());
}

// markdown draws standard Markdown: fences, headings, lists, quotes, tables
// and the spans of lineMarks.
function markdown(text) {
  const out = [];
  const lines = text.split("\n");
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      const body = [];
      while (++i < lines.length && !lines[i].trim().startsWith(fence[1])) body.push(lines[i]);
      out.push(el("pre", {}, body.join("\n")));
    } else if (/^\s*\|.*\|\s*$/.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[i + 1] || "")) {
      const table = el("table", {}, el("tr", {}, cells(line).map((c) => el("th", {}, inline(c, lineMarks, same)))));
      for (i += 2; i < lines.length && /^\s*\|/.test(lines[i]); i++) table.append(el("tr", {}, cells(lines[i]).map((c) => el("td", {}, inline(c, lineMarks, same)))));
      i--;
      out.push(table);
    } else if (/^ {0,3}#{1,6} /.test(line)) out.push(el("div", {}, el("b", {}, inline(line.replace(/^ *#+ /, ""), lineMarks, same))));
    else if (/^ {0,3}> ?/.test(line)) out.push(el("blockquote", {}, inline(line.replace(/^ *> ?/, ""), lineMarks, same)));
    else if (/^-# /.test(line)) out.push(el("div", { class: "note" }, inline(line.slice(3), lineMarks, same)));
    else if (/^\s*[-*+] /.test(line)) out.push(el("div", {}, "• ", inline(line.replace(/^\s*[-*+] /, ""), lineMarks, same)));
    else if (line.trim() === "") out.push(el("br"));
    else out.push(el("div", {}, inline(line, lineMarks, same)));
  }
  return out;
}

const lined = (s) => s.split("\n").flatMap((line, i) => (i ? [el("br"), line] : [line]));
const textOf = (t) => (!t ? [] : t.type === "mrkdwn" ? mrkdwn(t.text) : lined(t.text));

function richElement(e) {
  let node;
  switch (e.type) {
    case "text": node = el("span", {}, lined(e.text)); break;
    case "link": node = linkTo(e.url, e.text); break;
    case "user": node = el("span", { class: "ref" }, "@" + nameOf(e.user_id)); break;
    case "usergroup": node = el("span", { class: "ref" }, "@" + e.usergroup_id); break;
    case "channel": node = el("span", { class: "ref" }, "#" + channelName(e.channel_id)); break;
    case "broadcast": node = el("span", { class: "ref" }, "@" + e.range); break;
    case "emoji": node = el("span", {}, ":" + e.name + ":"); break;
    case "date": node = el("span", {}, new Date(e.timestamp * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })); break;
    default: node = el("span", {}, e.fallback || "[" + e.type + "]");
  }
  const style = e.style || {};
  for (const [name, tag] of [["bold", "b"], ["italic", "i"], ["strike", "s"], ["code", "code"]]) if (style[name]) node = el(tag, {}, node);
  return node;
}

function rich(part) {
  const inside = () => part.elements.map((e) => (e.elements ? rich(e) : richElement(e)));
  switch (part.type) {
    case "rich_text_preformatted": return el("pre", {}, inside());
    case "rich_text_quote": return el("blockquote", {}, inside());
    case "rich_text_list": return el(part.style === "ordered" ? "ol" : "ul", {}, part.elements.map((e) => el("li", {}, rich(e))));
    default: return el("div", {}, inside());
  }
}

// image draws a file that is a picture; its text stands in its place until it is
// there, and where it can't be shown.
function image(b) {
  const box = el("div", { class: "block image" }, el("span", { class: "note" }, "[image: " + b.alt_text + "]"));
  if (!b.slack_file) return box;
  fetch("dev/file/" + encodeURIComponent(b.slack_file.id), { headers: { "X-Key": key } }).then(async (answer) => {
    if (!answer.ok) return;
    const shown = el("img", { alt: b.alt_text, src: URL.createObjectURL(await answer.blob()) });
    shown.addEventListener("load", () => URL.revokeObjectURL(shown.src));
    box.replaceChildren(shown);
  }).catch(() => {});
  return box;
}

// Elements. press is called with (block_id/action_id, values).

function confirmed(ask, then) {
  if (!ask) return then();
  const box = $("dialog"), over = $("over");
  const end = (yes) => { over.hidden = true; drawn.dialog = ""; drawDialog(); if (yes) then(); };
  box.replaceChildren(el("h2", {}, textOf(ask.title)), el("p", {}, textOf(ask.text)), el("div", { class: "row" },
    el("button", { type: "button", class: ask.style || "primary", onclick: () => end(true) }, textOf(ask.confirm)),
    el("button", { type: "button", onclick: () => end(false) }, textOf(ask.deny))));
  over.hidden = false;
  box.querySelector("button").focus();
}

const optionsOf = (e) => e.options || (e.option_groups || []).flatMap((g) => g.options);

function element(e, name, press) {
  const pick = (values) => confirmed(e.confirm, () => press(name, values));
  const initial = (e.initial_options || (e.initial_option ? [e.initial_option] : [])).map((o) => o.value);
  switch (e.type) {
    case "button":
      return el("button", { type: "button", class: e.style, "data-action": e.action_id, onclick: () => {
        if (e.url) window.open(e.url, "_blank", "noreferrer,noopener");
        confirmed(e.confirm, () => press(name, []));
      } }, textOf(e.text));
    case "link_button": // of which the app hears nothing
      return el("button", { type: "button", onclick: () => window.open(e.url, "_blank", "noreferrer,noopener") }, textOf(e.text));
    case "overflow":
    case "radio_buttons":
    case "static_select":
    case "users_select":
    case "channels_select":
    case "conversations_select": {
      const list = choices(e);
      const placeholder = e.type === "overflow" ? "⋯" : e.placeholder ? e.placeholder.text : "Choose";
      const first = initial[0] || e.initial_user || e.initial_channel || e.initial_conversation;
      return el("select", { class: e.type, "data-action": e.action_id, "aria-label": e.type === "overflow" ? "More" : undefined, onchange: (ev) => pick([ev.target.value]) },
        el("option", { value: "", disabled: true, selected: !first }, placeholder),
        list.map((o) => el("option", { value: o.value, selected: o.value === first }, o.label)));
    }
    case "multi_static_select":
    case "multi_users_select":
    case "multi_channels_select":
    case "multi_conversations_select":
      return el("select", { multiple: true, "data-action": e.action_id, onchange: (ev) => pick([...ev.target.selectedOptions].map((o) => o.value)) },
        choices(e).map((o) => el("option", { value: o.value, selected: initial.includes(o.value) || (e.initial_users || []).includes(o.value) }, o.label)));
    case "radio_buttons":
    case "checkboxes": {
      const group = el("div", { "data-action": e.action_id });
      const changed = () => pick([...group.querySelectorAll("input:checked")].map((i) => i.value));
      for (const o of e.options) group.append(el("div", {}, el("input", { type: e.type === "checkboxes" ? "checkbox" : "radio", name, value: o.value, checked: initial.includes(o.value), "aria-label": o.text.text, onchange: changed }), " ", textOf(o.text), o.description ? el("div", { class: "note" }, textOf(o.description)) : null));
      return group;
    }
    case "plain_text_input":
      return el(e.multiline ? "textarea" : "input", { rows: e.multiline ? 6 : undefined, maxlength: e.max_length || 3000, placeholder: e.placeholder && e.placeholder.text, "data-action": e.action_id, onchange: (ev) => pick([ev.target.value]) }, e.multiline ? e.initial_value || "" : null);
    case "email_text_input":
    case "url_text_input":
    case "number_input":
      return el("input", { type: { email_text_input: "email", url_text_input: "url", number_input: "number" }[e.type], step: "any", "data-action": e.action_id, onchange: (ev) => pick([ev.target.value]) });
    case "datepicker":
    case "timepicker":
      return el("input", { type: e.type === "datepicker" ? "date" : "time", value: e.initial_date || e.initial_time, "data-action": e.action_id, onchange: (ev) => pick([ev.target.value]) });
    case "image":
      return el("span", { class: "note" }, "[image: " + e.alt_text + "]");
    case "feedback_buttons":
      return el("span", { class: "note" }, textOf(e.positive_button.text), " / ", textOf(e.negative_button.text));
    default:
      return el("span", { class: "note" }, "[" + e.type + "]");
  }
}

function choices(e) {
  if (e.type.includes("users_select")) return picture.users.map((u) => ({ value: u.id, label: u.name }));
  if (e.type.includes("channels_select") || e.type.includes("conversations_select")) return picture.channels.map((c) => ({ value: c.id, label: channelName(c.id) }));
  return optionsOf(e).map((o) => ({ value: o.value, label: o.text.text }));
}

// blocks draws a list of blocks. inputs, if given, gathers what is filled in.
function blocks(list, press, inputs, errors) {
  return (list || []).map((b, i) => {
    const at = (e, j) => (b.block_id || "auto-" + i) + "/" + (e.action_id || `auto-${i}-${j}`);
    switch (b.type) {
      case "section": {
        const body = el("div", {}, b.text ? el("div", {}, textOf(b.text)) : null, b.fields ? el("div", { class: "fields" }, b.fields.map((f) => el("div", {}, textOf(f)))) : null);
        return el("div", { class: "block side" }, body, b.accessory ? element(b.accessory, at(b.accessory, 0), press) : null);
      }
      case "header": return el("h2", { class: "block" }, textOf(b.text));
      case "divider": return el("hr");
      case "context": return el("div", { class: "block row context" }, b.elements.map((e) => el("span", {}, e.type === "image" ? element(e) : textOf(e))));
      case "actions":
      case "context_actions": return el("div", { class: "block row" }, b.elements.map((e, j) => element(e, at(e, j), press)));
      case "markdown": return el("div", { class: "block" }, markdown(b.text));
      case "rich_text": return el("div", { class: "block" }, b.elements.map(rich));
      case "table": return el("table", { class: "block" }, b.rows.map((r) => el("tr", {}, r.map((c) => el("td", {}, c.elements ? c.elements.map(rich) : String(c.text ?? c.value))))));
      case "task_card": return el("div", { class: "block context" }, ({ complete: "✓ ", error: "✗ ", in_progress: "… " })[b.status] || "· ", b.title);
      case "image": return image(b);
      case "card": return el("div", { class: "block" }, el("b", {}, textOf(b.title)), el("div", {}, textOf(b.body)), el("div", { class: "row" }, (b.actions || []).map((e, j) => element(e, at(e, j), press))));
      case "input": {
        const name = at(b.element, 0);
        const node = element(b.element, name, b.dispatch_action ? press : () => {});
        if (b.element.initial_value && "value" in node) node.value = b.element.initial_value;
        if (inputs) inputs.set(name, node);
        const id = "in-" + i;
        node.id = id;
        return el("div", { class: "block input" }, el("label", { for: id }, textOf(b.label), b.optional ? el("span", { class: "note" }, " (optional)") : null), node,
          b.hint ? el("div", { class: "note" }, textOf(b.hint)) : null, errors && errors[b.block_id] ? el("div", { class: "error", role: "alert" }, errors[b.block_id]) : null);
      }
      default: return el("div", { class: "block note" }, "[" + b.type + "]");
    }
  });
}

function valuesOf(node) {
  if (node.tagName === "SELECT") return [...node.selectedOptions].map((o) => o.value).filter((v) => v);
  if (node.tagName === "DIV") return [...node.querySelectorAll("input:checked")].map((i) => i.value);
  return [node.value];
}

const isDM = () => picture.channels.some((c) => c.id === here.channel && c.dm);
const title = () => (isDM() ? "✉ nize" : "# " + channelName(here.channel));

// Drawing. drawn holds what stands there, so that a change elsewhere does not
// take the focus or what somebody is typing.
const drawn = {};

function put(id, value, make) {
  const now = JSON.stringify(value);
  if (drawn[id] === now) return;
  drawn[id] = now;
  const box = $(id);
  const low = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  box.replaceChildren(...make());
  if (low) box.scrollTop = box.scrollHeight;
}

// avatar is the first letter of somebody's name, in a colour of their own.
const avatar = (id) => el("span", { class: "avatar c" + (picture.users.findIndex((u) => u.id === id) + 6) % 6, "aria-hidden": "true" }, nameOf(id).slice(0, 1).toUpperCase());

// seen is the newest message of each channel that was looked at, by who looked.
const seen = new Map();
const unread = (c) => c.last && c.id !== here.channel && seen.get(here.user + c.id) !== c.last;

// welcome says what to type where nothing stands.
function welcome() {
  const lines = picture.linked ? ["Nothing has been said here yet. Try:", "@nize what can you do?", "/nize help"] : ["No app is connected yet: the terminal says how nized is connected to this page.", "Then send the line /nize claim CODE that it prints here, to become an admin.", "nizectl dev " + (picture.platform || "").toLowerCase() + " --connect does both."];
  return [el("div", { class: "welcome" }, lines.map((l) => el("p", {}, l.startsWith("@") || l.startsWith("/") ? el("button", { type: "button", onclick: () => { $("text").value = l; $("text").focus(); } }, l) : l)))];
}

function messageNode(m, inThread) {
  const press = (name, values) => act({ do: "press", ts: m.ts, action: name, values, thread: inThread ? here.thread : "" });
  const time = new Date(m.at).toLocaleTimeString();
  const head = el("header", {}, avatar(m.user), el("b", {}, nameOf(m.user)), el("span", {}, time), m.ephemeral ? el("span", {}, "only you see this") : null,
    m.edits > 0 && !m.streaming ? el("span", {}, "changed " + m.edits + "×") : null,
    m.pings && m.pings.length ? el("span", { class: "ping" }, "pings " + m.pings.map((p) => "@" + nameOf(p)).join(" ")) : null);
  const body = el("div", { class: "body" }, m.blocks && m.blocks.length ? blocks(m.blocks, press) : el("div", {}, mrkdwn(m.text)));
  const foot = el("div", { class: "row note" }, (m.reactions || []).map((r) => el("span", {}, ":" + r + ":")),
    inThread || !m.thread ? null : el("button", { type: "button", class: m.replies ? "replies" : "more", onclick: () => openThread(m.thread) }, m.replies ? m.replies + (m.replies === 1 ? " reply" : " replies") : "Reply"),
    (picture.menus || []).map((c) => el("button", { type: "button", class: "more", onclick: () => act({ do: "shortcut", ts: m.ts, action: c.action, thread: inThread ? here.thread : "" }) }, c.title)));
  if (m.quiet) return el("article", { class: "note", "data-ts": m.ts }, el("span", {}, mrkdwn(m.text)), " · " + time);
  return el("article", { class: (m.ephemeral ? "ephemeral " : "") + (m.streaming ? "streaming" : ""), "data-ts": m.ts }, head, body,
    (m.files || []).map((f) => f.id ? image({ alt_text: f.name, slack_file: f }) : el("details", {}, el("summary", {}, f.name + ", " + f.size + " bytes"), el("pre", {}, f.text))), m.ephemeral ? null : foot);
}

function draw() {
  if (picture.draft && drawn.draft !== picture.draft && !$("text").value) {
    $("text").value = picture.draft;
    $("text").focus();
  }
  drawn.draft = picture.draft;
  put("user", picture.users, () => picture.users.filter((u) => !u.bot).map((u) => el("option", { value: u.id, selected: u.id === here.user }, u.name + " (" + u.note + ")")));
  document.title = picture.platform + ", pretended";
  $("home").hidden = !picture.homes;
  $("linked").textContent = picture.linked ? `The app is connected. ${picture.counts}.` : "No app is connected yet.";
  for (const c of picture.channels || []) if (c.id === here.channel) seen.set(here.user + c.id, c.last);
  put("channels", [picture.channels, here], () => (picture.channels || []).map((c) => el("li", {}, el("button", { type: "button", class: c.id === here.channel && !here.home ? "here" : unread(c) ? "unread" : "", onclick: () => go(c.id, "") }, (c.dm ? "✉ nize" : "# " + c.name) + (unread(c) ? " •" : "")))));
  put("refused", picture.refused, () => (picture.refused || []).map((r) => el("li", {}, r.method + ": " + r.error)));
  const session = picture.session || {};
  $("title").textContent = here.home ? "App Home" : title();
  if (here.home) put("list", ["home", picture.home], () => (picture.home ? blocks(picture.home.blocks, (name, values) => act({ do: "view", view: picture.home.id, action: name, values })) : [el("p", {}, "The app has not published a Home for you.")]));
  else put("list", [here.channel, picture.messages, picture.users, picture.linked], () => ((picture.messages || []).length ? picture.messages.map((m) => messageNode(m, false)) : welcome()));
  $("say").hidden = here.home;
  put("prompts", here.home ? [] : picture.prompts, () => prompts(here.home ? [] : picture.prompts, ""));
  $("pane").hidden = !here.thread;
  $("threadtitle").textContent = session.title || "Thread";
  put("thread", [here.thread, picture.thread, picture.users], () => (picture.thread || []).map((m) => messageNode(m, true)));
  put("threadprompts", session.prompts, () => prompts(session.prompts, here.thread));
  $("status").textContent = [statuses[session.status], session.loading].filter((s) => s).join(" · ");
  $("stop").hidden = session.status !== "processing";
  drawDialog();
}

// What the platform shows of a session's status.
const statuses = { processing: "Working", suspended: "Waiting for an answer", closed: "Closed" };

const prompts = (list, thread) => (list || []).map((p) => el("button", { type: "button", onclick: () => say(p.message, thread) }, p.title));

function drawDialog() {
  const d = picture.dialog;
  const now = d ? JSON.stringify([d.id, d.looks, d.errors]) : "";
  if (drawn.dialog === now) return;
  drawn.dialog = now;
  $("over").hidden = !d;
  if (!d) return;
  const kept = new Map();
  const box = $("dialog");
  if (box.dataset.view === d.id + "/" + d.looks) for (const [name, node] of drawDialog.inputs) kept.set(name, node.value);
  const inputs = new Map();
  drawDialog.inputs = inputs;
  box.dataset.view = d.id + "/" + d.looks;
  const submit = () => act({ do: "submit", view: d.id, inputs: Object.fromEntries([...inputs].map(([name, node]) => [name, valuesOf(node)])) });
  box.replaceChildren(el("h2", {}, d.title), ...blocks(d.blocks, (name, values) => act({ do: "view", view: d.id, action: name, values }), inputs, d.errors),
    el("div", { class: "row block" }, d.submit ? el("button", { type: "button", class: "primary", id: "submit", onclick: submit }, d.submit) : null,
      el("button", { type: "button", id: "close", onclick: () => act({ do: "close", view: d.id }) }, "Close")));
  for (const [name, value] of kept) if (inputs.has(name) && value !== undefined) inputs.get(name).value = value;
  (box.querySelector("input, textarea, select") || box.querySelector("button")).focus();
}
drawDialog.inputs = new Map();

function go(channel, thread) {
  Object.assign(here, { channel, thread, home: false });
  refresh();
}

function openThread(ts) {
  here.thread = ts;
  refresh();
  $("pane").hidden = false;
  $("replytext").focus();
}

// attached reads the files that were chosen, in base64.
function attached(field) {
  return Promise.all([...$(field).files].map((f) => new Promise((done, fail) => {
    const r = new FileReader();
    r.onload = () => done({ name: f.name, content: r.result.slice(r.result.indexOf(",") + 1) });
    r.onerror = () => fail(r.error);
    r.readAsDataURL(f);
  })));
}

async function say(text, thread, files) {
  const got = await act({ do: "say", text, thread, files });
  if (!got || got.error) return false;
  if (got.channel && got.channel !== here.channel) go(got.channel, "");
  if (got.thread && isDM() && !here.thread) openThread(got.thread);
  return true;
}

// offers are what the word at the caret may become: [what to write, what to say
// of it]. A command is completed as the whole line.
function offers(field) {
  const before = field.value.slice(0, field.selectionStart);
  const lines = /^\/[^\n]*$/.test(before) ? (picture.commands || []).filter((c) => c.line.startsWith(before) && c.line !== before) : [];
  if (lines.length) return { from: 0, list: lines.map((c) => [c.line, c.about]) };
  const word = /(?:^|\s)([@#])([\w-]*)$/.exec(before);
  if (!word) return { from: 0, list: [] };
  const names = word[1] === "#" ? picture.channels.filter((c) => !c.dm).map((c) => [c.name, ""]) : [...picture.users.map((u) => [u.name, u.note]), ...(picture.groups || []).map((g) => [g, "group"])];
  return { from: before.length - word[2].length - 1, list: names.filter(([name]) => name.toLowerCase().startsWith(word[2].toLowerCase())).map(([name, note]) => [word[1] + name, note]) };
}

// completion shows offers above a field: Tab or Enter takes the marked one,
// the arrows mark another, Escape closes. It says whether it took a key.
function completion(field) {
  const box = el("ul", { class: "offers", role: "listbox", id: field.id + "offers", hidden: true });
  field.parentNode.append(box);
  field.setAttribute("aria-autocomplete", "list");
  field.setAttribute("aria-controls", box.id);
  let now = { from: 0, list: [] }, at = 0;
  const show = () => {
    box.hidden = !now.list.length;
    box.replaceChildren(...now.list.map(([name, note], i) => el("li", { role: "option", id: box.id + i, "aria-selected": i === at ? "true" : "false", onmousedown: (e) => { e.preventDefault(); take(i); } }, el("b", {}, name), note ? el("span", { class: "note" }, " " + note) : null)));
    if (box.hidden) field.removeAttribute("aria-activedescendant");
    else { field.setAttribute("aria-activedescendant", box.id + at); box.children[at].scrollIntoView({ block: "nearest" }); }
  };
  const look = () => { now = offers(field); now.list = now.list.slice(0, 12); at = 0; show(); };
  const close = () => { now = { from: 0, list: [] }; show(); };
  const take = (i) => {
    const end = field.selectionStart;
    const text = now.list[i][0] + " ";
    field.setRangeText(text, now.from, end, "end");
    field.focus();
    look();
  };
  field.addEventListener("input", look);
  field.addEventListener("click", look);
  field.addEventListener("blur", close);
  return (e) => {
    if (box.hidden || e.isComposing) return false;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") at = (at + (e.key === "ArrowDown" ? 1 : now.list.length - 1)) % now.list.length;
    else if (e.key === "Escape") now.list = [];
    else if (e.key === "Tab" && !e.shiftKey) { e.preventDefault(); take(at); return true; }
    else if (e.key === "Enter" && !e.shiftKey && now.list[at][0].startsWith("/") === false) { e.preventDefault(); take(at); return true; }
    else return false;
    e.preventDefault();
    e.stopPropagation();
    show();
    return true;
  };
}

function composer(form, field, picker, thread) {
  const send = async () => {
    const text = $(field).value;
    const files = await attached(picker);
    if (!text.trim() && !files.length) return;
    $(field).value = "";
    $(field).dispatchEvent(new Event("input"));
    if (await say(text, thread(), files)) { $(picker).value = ""; $(picker).className = ""; }
    else $(field).value = text;
  };
  $(form).addEventListener("submit", (e) => { e.preventDefault(); send(); });
  $(picker).addEventListener("change", () => { $(picker).className = $(picker).files.length ? "chosen" : ""; });
  const complete = completion($(field));
  $(field).addEventListener("keydown", (e) => { if (complete(e)) return; if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(); } });
}

composer("say", "text", "files", () => "");
composer("reply", "replytext", "replyfiles", () => here.thread);
$("user").addEventListener("change", (e) => { Object.assign(here, { user: e.target.value, thread: "", home: false }); drawn.dialog = ""; refresh(); });
$("home").addEventListener("click", () => { Object.assign(here, { home: true, thread: "" }); act({ do: "home" }); refresh(); });
$("dm").addEventListener("click", async () => { const got = await act({ do: "dm" }); if (got && got.channel) go(got.channel, got.thread || ""); });
$("leave").addEventListener("click", () => { here.thread = ""; refresh(); });
$("stop").addEventListener("click", () => act({ do: "stop", thread: here.thread }));
document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !$("over").hidden && $("close")) $("close").click(); });
watch();
