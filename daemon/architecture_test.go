package daemon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of architecture, checked in the sources. Each rule has its reason. A new package or
// library needs a row here, and a reason.

// layer lists the packages of this module that a package may import, in addition to store,
// store/printable and store/outage. Its tests may import more: see testMay.
type layer struct {
	may string // package paths, separated by spaces; * is all
	why string // the reason for the limit
}

// layers has a row for each package. Imports point down: cmd, daemon, platforms and providers, the
// three siblings, their leaves and records, the writer, the storage interface, store.
var layers = map[string]layer{
	".":                              {"", "It embeds the documentation, and go:embed reads only below its own directory."},
	"store":                          {"store/secrettext", "The lowest layer: shared types on the standard library alone."},
	"store/printable":                {"", "A leaf that makes untrusted text printable. Every package may use it."},
	"store/outage":                   {"store/backoff", "A leaf for retries during a database outage. Every package may use it."},
	"store/secrettext":               {"", "A leaf that hides secrets in text. Package store uses it to mask what it prints."},
	"store/seal":                     {"", "Keys don't depend on what they encrypt."},
	"store/kv":                       {"", "The storage interface: engines implement it and records use it, so it knows neither."},
	"store/kv/kvtest":                {"store/kv", "The contract test of the storage interface, for every engine."},
	"store/kv/transfer":              {"store/kv", "It copies between engines through the interface, so it knows no engine and no record."},
	"store/kv/bolt":                  {"store/kv", "An engine stores keys and values and knows no record."},
	"store/kv/postgres":              {"store/kv", "An engine stores keys and values and knows no record."},
	"store/kv/postgres/postgrestest": {"", "It creates empty databases for tests and knows nothing of their content."},
	"store/hooks":                    {"", "Types of configured hooks, shared by several layers."},
	"store/plan":                     {"", "Types of plans, shared by several layers."},
	"store/eventstream":              {"", "A leaf: events in, bytes of a stream out."},
	"store/follow":                   {"", "A leaf: events in, events out, whatever they are about."},
	"store/backoff":                  {"", "A leaf: numbers of failures in, delays out."},
	"store/webhook":                  {"", "A leaf that signs requests."},
	"store/credential":               {"", "Types of declared credentials, shared by native tools, servers and chats."},
	"store/display":                  {"", "Types of displayed results. The gateway makes them and platforms render them."},
	"store/toolschema":               {"", "A leaf: JSON in, JSON out. The gateway and model protocols rewrite schemas for different readers."},
	"store/project":                  {"", "Types of projects and their keys."},
	"store/identity":                 {"store/oauth", "Types of identity providers."},
	"store/oauth":                    {"", "Types of sign-in."},
	"store/record":                   {"store/display store/hooks store/kv store/oauth store/project", "It encodes records as keys and values. Opening the disk is its caller's job."},
	"store/journal":                  {"", "A leaf that appends to a file. The writer decides what an entry means."},
	"store/compact":                  {"", "It turns bytes into fewer bytes and knows no record, only frequent words."},
	"store/commit":                   {"store/compact store/journal store/kv store/kv/bolt store/record store/seal", "The writer seals values and appends the audit trail for every record, so it knows no record."},
	"store/record/access":            {"store/commit store/kv store/oauth store/record", "Records that share transactions. Each package knows those above it in this list and none below."},
	"store/record/catalog":           {"store/commit store/kv store/record store/record/access", "As access."},
	"store/record/spending":          {"store/commit store/kv store/project store/record store/record/access", "As access."},
	"store/record/threads":           {"store/commit store/kv store/project store/record", "As access."},
	"store/record/incidents":         {"store/commit store/kv store/record", "As access."},
	"store/record/calls":             {"store/commit store/compact store/kv store/project store/record store/record/access store/record/spending store/record/threads", "As access."},
	"store/record/people":            {"store/commit store/identity store/kv store/oauth store/record store/record/access store/record/calls store/record/catalog store/record/spending", "As access."},
	"store/record/retention":         {"store/commit store/kv store/record store/record/access store/record/calls store/record/incidents store/record/people store/record/spending store/record/threads", "It deletes old records of every kind, so it knows all of them."},
	"store/database":                 {"store/commit store/kv store/kv/bolt store/kv/transfer store/record store/record/access store/record/calls store/record/catalog store/record/incidents store/record/people store/record/retention store/record/spending store/record/threads store/seal", "It opens a database and assembles the records."},
	"store/database/databasetest":    {"store/database store/kv store/kv/bolt store/seal", "Databases for tests. It knows no record."},
	"store/storetest":                {"", "The contract holds for every backend, so it knows none."},

	"bots":                          {"store/backoff bots/outbox bots/phrases bots/queue store/display store/hooks store/project bots/arguments", "A sibling of llm and mcp: they meet in the composition root, through types of store."},
	"bots/outbox":                   {"bots/phrases bots/queue", "Delivery to any platform. It knows neither the agent nor commands."},
	"bots/phrases":                  {"", "Text only."},
	"bots/queue":                    {"", "A leaf: keys, lanes and times."},
	"bots/arguments":                {"store/printable", "Arguments as rows, for every surface."},
	"bots/markdown":                 {"", "A leaf that splits text, for every platform."},
	"bots/sweep":                    {"bots/queue", "It removes people who left a platform. The platform supplies the list."},
	"bots/account":                  {"bots bots/outbox bots/phrases bots/queue", "Code that the bots of all platforms share, so it knows none of them."},
	"bots/terminal":                 {"bots bots/outbox store/follow", "One platform: the terminal chat of nizectl."},
	"bots/web":                      {"bots bots/outbox bots/phrases bots/theme store/follow", "One platform: the chat page. It renders and decides nothing."},
	"bots/slack":                    {"store/backoff bots bots/account bots/outbox bots/phrases bots/queue bots/slack/attachments bots/slack/home bots/slack/incoming bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire", "One platform. It renders and receives, and decides nothing."},
	"bots/slack/home":               {"bots bots/phrases bots/queue bots/slack/incoming bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire", "The App Home. A change there runs as a typed command."},
	"bots/slack/attachments":        {"bots bots/account bots/slack/incoming bots/slack/people bots/slack/wire", "Files of incoming messages. It posts nothing."},
	"bots/slack/posting":            {"bots bots/outbox bots/phrases bots/queue bots/slack/incoming bots/slack/manifest bots/slack/people bots/slack/view bots/slack/wire", "Outgoing messages. It knows no incoming ones."},
	"bots/slack/people":             {"bots bots/account bots/phrases bots/queue bots/slack/incoming bots/slack/manifest bots/slack/wire bots/sweep", "Identities of people in Slack. It posts nothing."},
	"bots/slack/incoming":           {"bots", "A decoder: bytes from Slack in, checked values out. It makes no request."},
	"bots/slack/wire":               {"bots bots/queue bots/slack/incoming bots/slack/manifest store/backoff", "Requests to Slack, whatever their purpose."},
	"bots/slack/view":               {"bots bots/markdown bots/phrases bots/slack/incoming store/display bots/arguments", "A renderer: values in, blocks out. It makes no request."},
	"bots/slack/manifest":           {"", "nizectl prints it without the bot."},
	"bots/botstest":                 {"bots bots/outbox", "The script holds for every platform, so it knows none."},
	"bots/slack/slacktest/page":     {"bots/slack/slacktest bots/chattest/page", "The fake Slack as a web page."},
	"bots/discord/discordtest/page": {"bots/chattest bots/discord/discordtest bots/chattest/page", "The fake Discord as a web page."},
	"bots/theme":                    {"", "The style of nize's own pages. It knows no page."},
	"bots/chattest/page":            {"bots/theme", "A chat client in the browser for the fakes. It draws their state."},
	"bots/chattest":                 {"", "The base of every fake platform. It knows no platform, and nothing of nize."},
	"bots/discord":                  {"bots bots/account bots/discord/incoming bots/discord/invite bots/discord/people bots/discord/posting bots/discord/view bots/discord/wire bots/outbox bots/phrases bots/queue store/backoff", "One platform. It renders and receives, and decides nothing."},
	"bots/discord/posting":          {"bots bots/discord/incoming bots/discord/invite bots/discord/people bots/discord/view bots/discord/wire bots/outbox bots/phrases bots/queue", "Outgoing messages. It knows no incoming ones."},
	"bots/discord/people":           {"bots bots/account bots/discord/incoming bots/discord/wire bots/phrases bots/sweep", "Identities of people in Discord. It posts nothing."},
	"bots/discord/incoming":         {"bots", "A decoder: bytes from Discord in, checked values out. It makes no request."},
	"bots/discord/wire":             {"bots/queue store/backoff", "Requests to Discord and its gateway, whatever their purpose."},
	"bots/discord/view":             {"bots bots/markdown bots/phrases store/display bots/arguments", "A renderer: values in, messages and dialogs out. It makes no request."},
	"bots/discord/invite":           {"", "nizectl prints this address without the bot."},
	"bots/discord/discordtest":      {"bots/chattest", "A fake Discord. It shares no code with nize, so that a mistake on either side shows."},
	"bots/slack/slacktest":          {"bots/chattest", "A fake Slack. It shares no code with nize, so that a mistake on either side shows."},
	"llm":                           {"", "A sibling of bots and mcp."},
	"llm/openai":                    {"llm store/toolschema store/backoff", "A leaf: one protocol."},
	"llm/openai/openaitest":         {"", "A fake model service. It shares no code with nize, so that a mistake on either side shows."},
	"llm/offline":                   {"llm", "A leaf without network."},
	"llm/llmtest":                   {"llm", "A scripted model."},
	"mcp":                           {"mcp/catalog mcp/commandline mcp/policy mcp/expose mcp/feature mcp/feedback mcp/fixtures mcp/question mcp/reply mcp/schema mcp/sessions mcp/taskwire mcp/view mcp/index store/eventstream store/project store/toolschema", "A sibling of bots and llm. The gateway is the one entry point for tools; it knows no transport, no hook and no database."},
	"mcp/policy":                    {"mcp/commandline mcp/feature mcp/view store/credential store/identity", "A leaf: rules over stored state. They run nothing."},
	"mcp/catalog":                   {"mcp/feature mcp/policy", "A leaf that lists tools. Package policy decides who may use them."},
	"mcp/view":                      {"store/display", "A leaf: view metadata of tools in, policies and pages out; a renderer and a result in, a displayed result out. It makes no request."},
	"mcp/native/chart":              {"mcp/native", "One tool. It draws its arguments."},
	"mcp/native":                    {"mcp/policy mcp/view store/credential", "A leaf. Its tools get their dependencies as fields."},
	"mcp/native/filetext":           {"mcp/native/page", "A leaf: bytes of a file in, text out."},
	"daemon/documents":              {"daemon/api daemon/module daemon/mux mcp/native mcp/native/filetext store/kv store/project", "A module: documents, their records, their tools and access to them."},
	"daemon/spending":               {"daemon/api daemon/control daemon/module daemon/mux daemon/people daemon/programs llm mcp/native mcp/policy store/kv store/plan store/project", "A module: plans, budgets, prices and usage."},
	"mcp/native/page":               {"", "A leaf: bytes of a page in, Markdown out."},
	"mcp/native/web":                {"mcp/native mcp/native/page", "One tool. It gets the guarded HTTP client as a field."},
	"mcp/egress/egresstest":         {"", "A test for every user of the guarded client."},
	"mcp/commandline":               {"", "A leaf that parses a shell command line."},
	"mcp/feature":                   {"", "A leaf: the kinds of features, for packages that list, judge or call them."},
	"mcp/expose":                    {"mcp/feature store/toolschema", "A leaf: the names and forms that clients see. The gateway checks access."},
	"mcp/fixtures":                  {"", "A leaf for the conformance suite, built only with its tag."},
	"mcp/feedback":                  {"", "A leaf: searches in, learned words out. It gets the index and the database as fields."},
	"mcp/reply":                     {"store/eventstream", "A leaf: bytes of the protocol. It doesn't interpret messages."},
	"mcp/question":                  {"mcp/schema mcp/taskwire", "A leaf: a server's question in, a form or a refusal out. The gateway finds the person."},
	"mcp/taskwire":                  {"", "A leaf: task messages on the wire, for both ends."},
	"mcp/schema":                    {"store/toolschema", "A leaf: validation of arguments."},
	"mcp/index":                     {"", "A leaf that can be rebuilt from the store."},
	"mcp/index/eval":                {"mcp mcp/index", "It measures the index alone, in the form in which package mcp answers."},
	"mcp/upstream":                  {"store/backoff mcp/egress mcp/feature mcp/taskwire mcp/upstream/mask mcp/upstream/oauth mcp/upstream/openapi mcp/upstream/process mcp/upstream/wire mcp/view store/credential", "A leaf: the pool. It reaches scan and schema through an interface of its own."},
	"mcp/upstream/openapi":          {"mcp/upstream/process mcp/upstream/wire", "A document in, tools and requests out. It knows no server, session or record."},
	"mcp/upstream/mask":             {"", "A leaf: bytes and secrets in, bytes out."},
	"mcp/upstream/oauth":            {"", "A leaf: the client side of OAuth. It stores nothing."},
	"mcp/upstream/login":            {"mcp/upstream/oauth store/credential", "Logins at servers. The pool reaches it through an interface of its own."},
	"mcp/upstream/authtest":         {"", "A fake authorization server. It shares no code with nize, so that a mistake on either side shows."},
	"mcp/upstream/wire":             {"store/backoff store/eventstream mcp/taskwire mcp/upstream/process mcp/view", "Transports. They carry messages and know no server, session or record."},
	"mcp/upstream/process":          {"", "It starts and ends processes, whatever they speak."},
	"mcp/scan":                      {"", "A leaf."},
	"mcp/egress":                    {"", "A leaf that guards addresses, whatever is requested of them."},
	"mcp/mcptest":                   {"", "A fake upstream."},
	"daemon/api":                    {"store/credential store/display store/hooks store/plan store/project", "The contract between nizectl and nized. It can't import the server."},
	"daemon/control":                {"bots bots/terminal daemon/api daemon/mux daemon/people llm llm/openai mcp mcp/catalog mcp/expose mcp/feature mcp/index mcp/policy mcp/upstream mcp/upstream/openapi mcp/view store/hooks store/oauth store/project store/follow", "Operations of the control API. They get their dependencies as fields and don't see HTTP."},
	"daemon/commands":               {"bots bots/phrases daemon/api daemon/connect daemon/control daemon/credentials daemon/people daemon/plot daemon/settings daemon/signin daemon/spending", "Chat commands. They call the operations that nizectl calls and don't see the store."},
	"daemon/metrics":                {"daemon/api llm mcp mcp/policy", "It observes the interfaces between bots, llm and mcp, and decides nothing."},
	"daemon/trace":                  {"store/backoff bots llm mcp", "It observes the interfaces between bots, llm and mcp, and decides nothing."},
	"daemon/monitor":                {"bots bots/phrases daemon/alert daemon/api daemon/backup daemon/doctor daemon/mux daemon/people mcp mcp/upstream store/database store/oauth store/webhook", "Health of nized. It reads the packages that it reports on."},
	"daemon/indexer":                {"daemon/api daemon/control daemon/mux llm llm/openai mcp mcp/feature mcp/index mcp/scan mcp/upstream", "It keeps the index of tools equal to the store."},
	"daemon/credentials":            {"bots daemon/api daemon/control daemon/module daemon/mux daemon/people daemon/programs mcp/policy mcp/upstream mcp/upstream/login store/credential store/kv", "A module: credentials, their declarations, and which value a call has."},
	"daemon/hooks":                  {"bots bots/phrases daemon/api daemon/control daemon/module daemon/mux daemon/people mcp mcp/feature mcp/policy mcp/upstream/process store/hooks store/webhook", "A module: hooks around calls. It starts programs as the pool does."},
	"daemon/extensions":             {"daemon/api daemon/module mcp/native mcp/policy mcp/schema mcp/upstream/mask mcp/upstream/process mcp/view store/kv store/toolschema", "A module: the operator's programs as native tools, started as the pool starts servers, and their acceptances."},
	"daemon/imports":                {"daemon/api daemon/control daemon/mcpfile daemon/mux store/backoff", "It turns entries of a file into servers, through the operations on servers."},
	"daemon/module":                 {"bots daemon/mux mcp/native store/kv", "The parts of a capability that the composition root connects. It knows no capability."},
	"daemon/failure":                {"daemon/api", "It writes errors over HTTP, whatever they are about."},
	"daemon/mux":                    {"daemon/api", "It serves operations over HTTP, whatever they do."},
	"daemon/rounds":                 {"daemon/api daemon/failure llm store/project store/follow", "The loop that answers programs. It serves no HTTP, and reaches the gateway through an interface of its own."},
	"daemon/openapi":                {"daemon/api daemon/failure", "It describes operations, whatever serves them."},
	"daemon/programs":               {"daemon/api daemon/module daemon/mux daemon/openapi daemon/people daemon/rounds mcp/policy mcp/upstream mcp/upstream/wire store/eventstream store/project", "A module: projects, the HTTP API for programs, and the servers that these bring. Package rounds runs the rounds."},
	"daemon/fileconfig":             {"daemon/api daemon/control daemon/people daemon/settings llm llm/openai", "It applies the configuration file beyond settings, through the operations that nizectl calls."},
	"daemon/chatclient":             {"bots daemon/api daemon/control daemon/failure daemon/mux daemon/openapi daemon/rounds daemon/settings store/eventstream store/plan", "Chat clients over HTTP. They call the operations that nizectl calls."},
	"daemon/browser":                {"bots bots/account bots/outbox bots/phrases bots/web daemon/api daemon/chatclient daemon/control daemon/credentials daemon/failure daemon/hooks daemon/limit daemon/mux daemon/settings store/eventstream daemon/spending", "Requests of the chat page. They call the operations that nizectl and chat clients call."},
	"mcp/sessions":                  {"", "It counts and evicts sessions. The server decides what a session does."},
	"daemon/connections":            {"daemon/api daemon/failure", "It counts and limits connections, whatever they serve. It gets the signed-in user from its caller."},
	"daemon/limit":                  {"", "It counts attempts, whatever they are."},
	"daemon/views":                  {"daemon/api daemon/limit daemon/module daemon/mux mcp/catalog mcp/feature mcp/policy mcp/view store/display store/kv store/toolschema", "A module: results shown by views and renderers, and links to views. It runs tools only through the gateway, which it gets as a field."},
	"daemon/pages":                  {"bots/phrases daemon/failure", "The frame of HTML pages, whatever their content."},
	"daemon/signin":                 {"daemon/alert daemon/api daemon/failure daemon/limit daemon/mux daemon/pages daemon/people mcp/expose store/oauth", "Authentication in browsers and of HTTP clients. It calls no tool."},
	"daemon/company":                {"daemon/api daemon/failure daemon/limit daemon/mux daemon/signin mcp/upstream/oauth store/identity store/oauth", "A company's identity provider: it verifies identities. Other packages decide about rights."},
	"daemon/company/oidctest":       {"", "A fake identity provider. It shares no code with nize, so that a mistake on either side shows."},
	"daemon/connect":                {"daemon/api daemon/control daemon/failure daemon/mux daemon/pages daemon/signin mcp/egress mcp/upstream mcp/upstream/login mcp/upstream/oauth store/credential", "Pages and flows by which a person signs in at a server. Lower packages keep the tokens."},
	"daemon/peer":                   {"", "A leaf that asks the kernel, for both ends of the socket."},
	"daemon/people":                 {"bots daemon/api daemon/limit daemon/module daemon/mux store/identity store/oauth store/project", "Users, identities and access to nize, and stored data about people."},
	"daemon/standby":                {"daemon/api daemon/failure", "It forwards requests to the active node. The host check runs before it."},
	"daemon/backup":                 {"daemon/api daemon/mux daemon/standby store/database store/kv store/kv/bolt store/kv/postgres store/seal", "Files, server and key of the database, for every surface."},
	"daemon/settings":               {"daemon/alert daemon/api daemon/mux daemon/people daemon/registry daemon/trace llm mcp/egress store/webhook", "Settings and the source of their values. It uses the packages that validate values."},
	"daemon/alert":                  {"store/backoff store/webhook", "A leaf that keeps and sends incidents, whatever they are about."},
	"daemon/doctor":                 {"daemon/api", "Rules over facts. nizectl applies those about files if no daemon runs."},
	"daemon/agenthook":              {"daemon/api", "A leaf: the hook formats of coding agents, for nized and nizectl."},
	"daemon/asks":                   {"daemon/agenthook daemon/api daemon/failure daemon/mux daemon/openapi mcp", "Requests for approval by other programs. The gateway decides."},
	"daemon/mcpfile":                {"", "A leaf that edits configuration files of other clients as text. It makes no request."},
	"daemon/registry":               {"daemon/api daemon/mux", "It queries an MCP registry. It stores and runs nothing from there."},
	"daemon/plot":                   {"", "A leaf: numbers in, a picture out."},
	"cmd/nized/setup":               {"cmd/nizectl/command cmd/nizectl/display daemon/api", "It does what a person would do with nizectl, through the same operations."},
	"cmd/nized":                     {"cmd/nized/setup cmd/nizectl/command daemon daemon/api daemon/backup daemon/settings", "main parses flags, builds, runs and exits."},
	"cmd/nizectl/clients":           {"cmd/nizectl/command cmd/nizectl/display daemon/agenthook daemon/api daemon/mcpfile mcp/commandline store/backoff", "MCP clients of this machine. It carries their messages without reading them."},
	"cmd/nizectl":                   {". cmd/nizectl/chat cmd/nizectl/clients cmd/nizectl/command cmd/nizectl/dev cmd/nizectl/display cmd/nizectl/servers daemon/api daemon/doctor bots/discord/invite bots/slack/manifest store/credential store/hooks store/plan store/project", "It uses the control socket and nothing else."},
	"cmd/nizectl/dev":               {"bots/chattest/page bots/discord/discordtest bots/discord/discordtest/page bots/slack/manifest bots/slack/slacktest bots/slack/slacktest/page cmd/nizectl/command cmd/nizectl/display daemon/api", "It serves the fake platforms and points the daemon at them."},
	"cmd/nizectl/chat":              {"bots bots/phrases cmd/nizectl/display daemon/api store/backoff", "The terminal chat. It shows cards and messages as package bots words them."},
	"cmd/nizectl/command":           {"cmd/nizectl/display daemon/api daemon/peer", "The base of every command. It knows no noun."},
	"cmd/nizectl/servers":           {"cmd/nizectl/command cmd/nizectl/display daemon/api", "One noun that needs several files."},
	"cmd/nizectl/display":           {"", "A leaf that counts columns."},
	"cmd/manpage":                   {"", "It reads commands and writes a manual page."},
	"cmd/nize-toolbox":              {"", "An MCP server like any other, and an example."},
	"scripts/bench":                 {"bots/slack/slacktest daemon/api daemon/documents daemon/trace mcp/index store/database store/journal store/kv store/kv/bolt store/kv/postgres/postgrestest store/oauth store/seal store/eventstream", "It measures the programs from outside, the index and the disk directly, and fills databases for that."},
	"daemon":                        {"*", "The composition root: the only package that knows all others."},
	"scripts/agents":                {"bots/slack/slacktest daemon/api", "It drives the programs and coding agents from outside."},
	"scripts/failover":              {"daemon/api store/eventstream", "It kills the programs and queries them from outside."},
	"scripts/conformance/addhdr":    {"", "A proxy."},
	"scripts/conformance/server":    {"", "A server with the tools of the conformance suite, built only with its tag. It shares no code with nize."},
	"scripts/conformance/client":    {"mcp/feature mcp/scan mcp/taskwire mcp/upstream mcp/upstream/login mcp/upstream/oauth store/database store/seal", "The pool alone as a client of the conformance suite, built only with its tag."},
	"scripts/web/history":           {"store/database store/kv store/record store/seal", "It fills a database for the tests of the chat page."},
	"scripts/wordtable":             {"", "It makes a table from a third-party package."},

	"mcp/upstream/openapi/openapitest": {"", "A fake HTTP service. It shares no code with nize, so that a mistake on either side shows."},
}

// libraries lists the packages that may import a foreign library. Its types don't leave them, so
// that the library can be replaced there. The longest prefix decides.
var libraries = map[string]string{
	"go.etcd.io/bbolt":                                "store/kv/bolt",
	"github.com/klauspost/compress":                   "store/compact",
	"github.com/jackc/pgx/v5":                         "store/kv/postgres store/kv/postgres/postgrestest",
	"github.com/philippgille/chromem-go":              "mcp/index",
	"github.com/kljensen/snowball":                    "mcp/index",
	"github.com/modelcontextprotocol/go-sdk":          "mcp mcp/expose mcp/fixtures mcp/upstream mcp/upstream/oauth mcp/upstream/wire mcp/mcptest cmd/nize-toolbox scripts/bench scripts/conformance/server scripts/failover",
	"github.com/santhosh-tekuri/jsonschema/v6":        "mcp/schema",
	"github.com/google/jsonschema-go":                 "cmd/nize-toolbox daemon/openapi", // the form of a schema; the SDK brings it along
	"github.com/yosida95/uritemplate/v3":              "mcp/expose",                      // which addresses a server's template has; the SDK uses it for its own
	"golang.org/x/time":                               "mcp mcp/upstream/wire",
	"golang.org/x/image":                              "daemon/plot",
	"golang.org/x/image/colornames":                   "cmd/nize-toolbox",
	"github.com/expr-lang/expr":                       "cmd/nize-toolbox",         // the calculator
	"golang.org/x/image/webp":                         "bots/slack/posting",       // Slack's blocks show no WebP, so it becomes PNG
	"github.com/sashabaranov/go-openai":               "llm/openai scripts/bench", // which compares with what is written on it directly
	"github.com/bwmarrin/discordgo":                   "bots/discord bots/discord/incoming bots/discord/people bots/discord/posting bots/discord/view bots/discord/wire",
	"github.com/slack-go/slack":                       "bots/slack bots/slack/attachments bots/slack/home bots/slack/incoming bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire",
	"github.com/gorilla/websocket":                    "bots/chattest bots/discord/wire bots/slack bots/slack/wire",
	"github.com/urfave/cli/v3":                        "cmd/nized cmd/nizectl cmd/nizectl/clients cmd/nizectl/command cmd/nizectl/dev cmd/nizectl/servers cmd/manpage",
	"github.com/robfig/cron/v3":                       "daemon/settings",
	"code.dny.dev/ssrf":                               "mcp/egress",
	"github.com/coreos/go-oidc/v3":                    "daemon/company",
	"golang.org/x/oauth2":                             "daemon/company mcp/upstream/oauth", // go-oidc's types of a client; the URL of a login
	"codeberg.org/readeck/go-readability/v2":          "mcp/native/page",                   // which part of a page is its article
	"github.com/JohannesKaufmann/html-to-markdown/v2": "mcp/native/page",                   // tables, lists and code as CommonMark
	"github.com/ledongthuc/pdf":                       "mcp/native/filetext",               // what stands in a PDF, and where
	"golang.org/x/net/html":                           "mcp/native/page mcp/view",          // where the scripts of a template are
	"github.com/prometheus/client_golang":             "daemon/metrics",
	"github.com/coreos/go-systemd/v22":                "daemon",
	"github.com/pelletier/go-toml/v2":                 "daemon/settings daemon/mcpfile",
	"go.yaml.in/yaml/v3":                              "daemon/mcpfile mcp/upstream/openapi mcp/upstream/openapi/openapitest", // files of LibreChat, Goose and Continue
	"github.com/tailscale/hujson":                     "daemon/mcpfile",                                                       // lists in JSON with comments
	"mvdan.cc/sh/v3/syntax":                           "mcp/commandline",                                                      // what a shell would run
	"golang.org/x/term":                               "cmd/nized cmd/nizectl cmd/nizectl/chat",
	"golang.org/x/text/language":                      "mcp/view", // the likeliest region of a language
	"golang.org/x/text/unicode/norm":                  "daemon/rounds mcp/native/filetext",
	"golang.org/x/text/width":                         "cmd/nizectl/display",
	"golang.org/x/sys":                                "daemon/peer mcp/upstream/process cmd/nizectl/chat store/database store/kv/postgres cmd/nized",

	// For tests and fakes everywhere, and for nothing else.
	"github.com/google/go-cmp":                   "tests",
	"github.com/go-jose/go-jose/v4":              "tests", // go-oidc verifies with it; doubles sign with it
	"github.com/getkin/kin-openapi":              "tests", // somebody else's reading of OpenAPI, as a judge of requests
	"go.uber.org/goleak":                         "tests",
	"github.com/rogpeppe/go-internal/testscript": "tests",
	"github.com/creack/pty":                      "tests",
}

// siblings never import one another, not even in tests. A test that needs two of them belongs to
// the composition root.
var siblings = []string{"bots", "llm", "mcp"}

// bannedNames are directory names that don't describe their content.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "internal", "pkg", "misc", "lib"}

// untyped lists the permitted maps of any on the call path, each with its reason. Such a map
// rounds large numbers.
var untyped = map[string]string{
	"mcp/apps.go":   "a client's capabilities, which the SDK decoded; they contain no numbers that are used",
	"mcp/server.go": "the SDK's auth.TokenInfo.Extra has that type; the caller is put in and taken out as it is",
}

// source is one Go file.
type source struct {
	path string // from the module's root, with slashes
	pkg  string
	test bool
	file *ast.File
}

func (s source) double() bool { return s.test || strings.HasSuffix(s.pkg, "test") }

// sources parses every Go file of the module, whatever its build tags.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(p, ".."+string(filepath.Separator)))
		if d.IsDir() {
			if name := d.Name(); p != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); p != ".." && err == nil {
				return fs.SkipDir // a module of its own, which the programs don't import
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{path: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), file: f})
		return nil
	})
	if err != nil {
		t.Fatalf("reading the sources: %v", err)
	}
	if len(all) < 100 {
		t.Fatalf("read %d Go files: this is not the whole module", len(all))
	}
	return fset, all
}

func (s source) imports() []string {
	var list []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser accepted it
		list = append(list, p)
	}
	return list
}

func TestLayers(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		row, ok := layers[s.pkg]
		if !ok {
			t.Errorf("%s: package %s has no row in layers", s.path, s.pkg)
			continue
		}
		for _, imp := range s.imports() {
			own, ours := strings.CutPrefix(imp, "nize/")
			if imp == "nize" {
				own, ours = ".", true
			}
			if !ours || own == s.pkg || own == "store" || own == "store/printable" || own == "store/outage" {
				continue
			}
			if siblingOf(s.pkg) != "" && siblingOf(own) != "" && siblingOf(own) != siblingOf(s.pkg) {
				t.Errorf("%s imports %s: siblings don't import one another; they meet in the composition root, through types of store", s.path, own)
				continue
			}
			may := strings.Fields(row.may)
			if slices.Contains(may, "*") || slices.Contains(may, own) {
				continue
			}
			if s.test && testMay(s.pkg, own) {
				continue
			}
			t.Errorf("%s imports %s: %s may import only store %s. %s", s.path, own, s.pkg, row.may, row.why)
		}
	}
	pkgs := map[string]bool{}
	for _, s := range all {
		pkgs[s.pkg] = true
	}
	for name := range layers {
		if !pkgs[name] {
			t.Errorf("layers has a row for %s, which is not a package", name)
		}
	}
}

// testMay reports whether a test may import a package: tests use real packages below the
// composition root, and tests of commands use all.
func testMay(from, own string) bool {
	if strings.HasPrefix(from, "cmd/") {
		return true
	}
	return own != "daemon" && !strings.HasPrefix(own, "cmd/") && !strings.HasPrefix(own, "scripts/")
}

// siblingOf returns the sibling that a package belongs to, or "".
func siblingOf(pkg string) string {
	top, _, _ := strings.Cut(pkg, "/")
	if slices.Contains(siblings, top) {
		return top
	}
	return ""
}

func TestLibrariesHaveOnePackage(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		for _, imp := range s.imports() {
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				continue // ours, or the standard library
			}
			lib := library(imp)
			if lib == "" {
				t.Errorf("%s imports %s, which no package may import: give the reason in the commit, then add a row to libraries", s.path, imp)
				continue
			}
			pkgs := strings.Fields(libraries[lib])
			switch {
			case slices.Contains(pkgs, s.pkg):
			case slices.Contains(pkgs, "tests") && s.double():
			case s.test && mayTestAgainst(s.pkg, pkgs):
			default:
				t.Errorf("%s imports %s, which only %s may import", s.path, imp, libraries[lib])
			}
		}
	}
}

// mayTestAgainst reports whether the tests of a package may use a library of the same sibling, to
// speak a protocol from the other end: a client of our server, a server for our client.
func mayTestAgainst(from string, pkgs []string) bool {
	return slices.ContainsFunc(pkgs, func(r string) bool {
		return siblingOf(r) != "" && (siblingOf(r) == siblingOf(from) || from == "daemon")
	})
}

func library(imp string) string {
	best := ""
	for lib := range libraries {
		if (imp == lib || strings.HasPrefix(imp, lib+"/")) && len(lib) > len(best) {
			best = lib
		}
	}
	return best
}

func TestFolderNames(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		for part := range strings.SplitSeq(s.pkg, "/") {
			if slices.Contains(bannedNames, part) {
				t.Errorf("%s: a directory called %q doesn't describe its content; name it by its noun", s.path, part)
			}
		}
	}
}

// refusedInWords reports whether a format has ErrRefused as a clause of its own. People read a
// sentence, not a chain of errors.
func refusedInWords(names map[string]string, call *ast.CallExpr) bool {
	format, ok := call.Args[0].(*ast.BasicLit)
	return ok && (strings.Contains(format.Value, "%w:") || strings.Contains(format.Value, ": %w")) && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		e, ok := arg.(*ast.SelectorExpr)
		return ok && selected(names, e) == "nize/store.ErrRefused"
	})
}

func TestBannedCalls(t *testing.T) {
	fset, all := sources(t)
	callPath := []string{"mcp", "mcp/upstream", "mcp/upstream/wire", "daemon/hooks"}
	for _, s := range all {
		names := importNames(s.file)
		bubbles := bubbles(names, s.file)
		ast.Inspect(s.file, func(n ast.Node) bool {
			at := func() string { return fset.Position(n.Pos()).String() }
			switch n := n.(type) {
			case *ast.CallExpr:
				if shell := shellCall(names, n); shell != "" && !s.test {
					t.Errorf("%s runs %s: argv, never a shell", at(), shell)
				}
				if what := selected(names, n.Fun); !s.test && (what == "fmt.Errorf" || what == "nize/store.Errorf") && refusedInWords(names, n) {
					t.Errorf("%s says \"refused:\" before the reason: give the reason alone, with store.Mark(err, store.ErrRefused)", at())
				}
			case *ast.SelectorExpr:
				what := selected(names, n)
				if !s.test && slices.Contains([]string{"net/http.DefaultClient", "net/http.DefaultTransport", "net/http.Get", "net/http.Post", "net/http.PostForm", "net/http.Head"}, what) {
					t.Errorf("%s uses %s: it has no deadline, follows redirects with our headers, and is shared by the whole process", at(), what)
				}
				if what == "net/http.Error" && !s.double() && strings.HasPrefix(s.pkg, "daemon") && s.pkg != "daemon/failure" {
					t.Errorf("%s uses %s: an error has a row in the table of package api and a form of package failure", at(), what)
				}
				if what == "syscall.Umask" {
					t.Errorf("%s uses %s: it changes the whole process, also for files that other goroutines create meanwhile: set the mode of the file", at(), what)
				}
				if s.test && what == "time.Sleep" && !within(bubbles, n.Pos()) {
					t.Errorf("%s sleeps: wait for the event itself, or use testing/synctest", at())
				}
			case *ast.MapType:
				if !s.test && slices.Contains(callPath, s.pkg) && isAnyMap(n) && untyped[s.path] == "" {
					t.Errorf("%s: map[string]any on the call path rounds numbers over 2^53", at())
				}
			}
			return true
		})
	}
}

// importNames maps the names of a file's imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser accepted it
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}

// selected returns "path.Name" for a name of an imported package, else "".
func selected(names map[string]string, e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok || names[id.Name] == "" {
		return ""
	}
	return names[id.Name] + "." + sel.Sel.Name
}

// bubbles returns the functions that a file passes to synctest.Test. A sleep there takes no time.
func bubbles(names map[string]string, f *ast.File) []ast.Node {
	var found []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && selected(names, call.Fun) == "testing/synctest.Test" {
			found = append(found, call)
		}
		return true
	})
	return found
}

func within(nodes []ast.Node, at token.Pos) bool {
	return slices.ContainsFunc(nodes, func(n ast.Node) bool { return n.Pos() <= at && at < n.End() })
}

// shellCall returns the shell that a call of os/exec starts, or "".
func shellCall(names map[string]string, call *ast.CallExpr) string {
	arg := 0
	switch selected(names, call.Fun) {
	case "os/exec.Command":
	case "os/exec.CommandContext":
		arg = 1
	default:
		return ""
	}
	if len(call.Args) <= arg {
		return ""
	}
	lit, ok := call.Args[arg].(*ast.BasicLit)
	if !ok {
		return ""
	}
	name, _ := strconv.Unquote(lit.Value) // the parser accepted it
	if slices.Contains([]string{"sh", "bash", "dash", "zsh", "cmd", "cmd.exe", "powershell"}, path.Base(name)) {
		return name
	}
	return ""
}

func isAnyMap(m *ast.MapType) bool {
	key, ok := m.Key.(*ast.Ident)
	if !ok || key.Name != "string" {
		return false
	}
	switch v := m.Value.(type) {
	case *ast.Ident:
		return v.Name == "any"
	case *ast.InterfaceType:
		return len(v.Methods.List) == 0
	}
	return false
}

// TestOperationsAreMounted: each operation that daemon/api declares is mounted once, at a path of
// its own.
func TestOperationsAreMounted(t *testing.T) {
	mounted := map[string]bool{}
	for _, op := range Operations() {
		route := op.Method + " " + op.Path
		if mounted[route] {
			t.Errorf("%s is mounted twice", route)
		}
		if op.Summary == "" || !strings.HasPrefix(op.Path, "/v1/") {
			t.Errorf("%s has the path or summary %q", route, op.Summary)
		}
		mounted[route] = true
	}
	_, all := sources(t)
	declared := 0
	for _, s := range all {
		if s.pkg != "daemon/api" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isOperation(lit.Type) {
				return true
			}
			method, path := lit.Elts[0].(*ast.BasicLit).Value, lit.Elts[1].(*ast.BasicLit).Value
			if route := strings.Trim(method, `"`) + " " + strings.Trim(path, `"`); !mounted[route] && !strings.Contains(path, `"/auth/`) && !strings.Contains(path, `"/api/`) && !strings.Contains(path, `"/asks`) {
				t.Errorf("%s: no handler serves %s", s.path, route)
			}
			declared++
			return true
		})
	}
	if declared < len(mounted) {
		t.Errorf("%d operations are mounted, and package api declares %d", len(mounted), declared)
	}
}

// isOperation reports whether a type is one of the four kinds of operations.
func isOperation(t ast.Expr) bool {
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	id, ok := t.(*ast.Ident)
	return ok && slices.Contains([]string{"Op", "Stream", "Download", "Upload"}, id.Name)
}

// TestOperationsSeeNoHTTP: nizectl, chats and pages call the same operations, so that those don't
// depend on a request.
func TestOperationsSeeNoHTTP(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		operations := slices.Contains([]string{"daemon/control", "daemon/documents", "daemon/spending", "daemon/credentials", "daemon/extensions", "daemon/fileconfig", "daemon/people", "daemon/settings", "daemon/backup", "daemon/monitor", "daemon/commands", "daemon/imports", "daemon/indexer"}, s.pkg)
		operations = operations || slices.Contains([]string{"daemon/hooks", "daemon/programs"}, s.pkg) && slices.Contains(s.imports(), "nize/daemon/mux") // other files of these serve HTTP, or call webhooks
		if operations && !s.test && slices.Contains(s.imports(), "net/http") {
			t.Errorf("%s imports net/http: package mux decodes requests before they get here", s.path)
		}
	}
}
