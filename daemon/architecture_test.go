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

// The house rules, read from the sources. Each ban stands beside its reason; a
// new room or library is argued for by adding its row here.

// room says what the code of a folder may import of ours, besides store and
// store/printable. Tests may also use what lies below their room, and doubles.
type room struct {
	may string // folders, separated by spaces
	why string // ...not more
}

// floors is the picture of the house as a table.
var floors = map[string]room{
	".":                              {"", "the pages of documentation: go:embed only reaches down, so they are embedded from the module's root"},
	"store":                          {"store/secrettext", "the ground floor: words that all share, on the standard library alone"},
	"store/printable":                {"", "characters in, harmless ones out: every room that shows something may use it"},
	"store/outage":                   {"", "what is done again: every room that works in the background may use it"},
	"store/secrettext":               {"", "a leaf: texts in, dots out; the ground floor hides what it shows by it"},
	"store/seal":                     {"", "keys know nothing of what they seal"},
	"store/kv":                       {"", "the waist under what is kept: an engine above it, nouns over it, and it sees neither"},
	"store/kv/kvtest":                {"store/kv", "the contract of the waist, for every engine"},
	"store/kv/transfer":              {"store/kv", "from one engine to another: it knows neither, and no noun"},
	"store/kv/bolt":                  {"store/kv", "an engine: it knows no noun"},
	"store/kv/postgres":              {"store/kv", "an engine: it knows no noun"},
	"store/kv/postgres/postgrestest": {"", "databases for tests; it makes them, and knows nothing of them"},
	"store/hooks":                    {"", "words of configured hooks, which need several rooms"},
	"store/plan":                     {"", "the words of plans"},
	"store/fulltext":                 {"", "words of texts in, lists and scores out; where lists are kept is for who keeps them"},
	"store/document":                 {"store/fulltext", "the words of documents; which lines a query finds is the index's word for word"},
	"store/webhook":                  {"", "a signature"},
	"store/credential":               {"", "the words of declared credentials; native tools, servers and chats need them"},
	"store/display":                  {"", "the words of how a result is shown; the gateway makes them, platforms draw them"},
	"store/toolschema":               {"", "JSON in, JSON out: the gateway and the model's protocol both rewrite schemas for their readers"},
	"store/trust":                    {"", "the words of code that somebody accepted; nothing else needs them"},
	"store/project":                  {"", "the words of what programs belong to; nothing else needs them"},
	"store/identity":                 {"store/oauth", "the words of identity providers; nothing else needs them"},
	"store/oauth":                    {"", "the words of signing in; nothing else needs them"},
	"store/record":                   {"store/credential store/display store/document store/fulltext store/hooks store/kv store/oauth store/plan store/project store/trust", "what a noun is in keys and values; the disk is for who keeps them"},
	"store/journal":                  {"", "a file of records; what they say is for who commits them"},
	"store/commit":                   {"store/journal store/kv store/kv/bolt store/record store/seal", "it seals what it writes, so that no one above can forget to, and knows no noun"},
	"store/record/access":            {"store/commit store/kv store/oauth store/plan store/record", "nouns that share transactions: each knows those that stand before it here, and none behind it"},
	"store/record/catalog":           {"store/commit store/kv store/record store/record/access", "as access"},
	"store/record/spending":          {"store/commit store/kv store/project store/record store/record/access", "as access"},
	"store/record/threads":           {"store/commit store/kv store/project store/record", "as access"},
	"store/record/incidents":         {"store/commit store/kv store/record", "as access"},
	"store/record/calls":             {"store/commit store/kv store/project store/record store/record/access store/record/spending store/record/threads", "as access"},
	"store/record/people":            {"store/commit store/identity store/kv store/oauth store/record store/record/access store/record/calls store/record/catalog store/record/spending", "as access"},
	"store/record/retention":         {"store/commit store/kv store/record store/record/access store/record/calls store/record/incidents store/record/people store/record/spending store/record/threads", "it forgets, so it knows all of them"},
	"store/database":                 {"store/commit store/kv store/kv/bolt store/kv/transfer store/record store/record/access store/record/calls store/record/catalog store/record/incidents store/record/people store/record/retention store/record/spending store/record/threads store/seal", "it opens a database and puts the nouns together"},
	"store/database/databasetest":    {"store/database store/kv store/kv/bolt store/seal", "databases for tests; what is tested decides nothing there"},
	"store/storetest":                {"", "the contract holds for every backend, so it sees none"},

	"bots":                          {"bots/outbox bots/phrases bots/queue store/display store/hooks store/project bots/arguments", "a sister of llm and mcp: they meet on the roof, by words of store"},
	"bots/outbox":                   {"bots/phrases bots/queue", "what stands where in a chat, for every platform: it knows neither the agent nor what people say"},
	"bots/phrases":                  {"", "text"},
	"bots/queue":                    {"", "a leaf: keys, lanes and times"},
	"bots/arguments":                {"store/printable", "arguments as rows: a description of data, for every surface"},
	"bots/markdown":                 {"", "a leaf: where a text is cut, whatever platform takes it"},
	"bots/sweep":                    {"bots/queue", "who left a platform: it is told who is gone, and asks no platform itself"},
	"bots/account":                  {"bots bots/outbox bots/phrases bots/queue", "what the bots of all platforms have in common: it knows none of them"},
	"bots/terminal":                 {"bots bots/outbox", "one platform: what the terminal chat of nizectl follows"},
	"bots/web":                      {"bots bots/outbox bots/phrases bots/theme", "one platform: the chat page, which it shows and decides nothing in"},
	"bots/slack":                    {"bots bots/account bots/outbox bots/phrases bots/queue bots/slack/attachments bots/slack/home bots/slack/incoming bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire", "one platform: it shows and takes in, and decides nothing"},
	"bots/slack/home":               {"bots bots/phrases bots/queue bots/slack/incoming bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire", "the App Home alone: a change in it is a command, run as if it had been typed"},
	"bots/slack/attachments":        {"bots bots/account bots/slack/incoming bots/slack/people bots/slack/wire", "what comes with a message: it says nothing to anybody"},
	"bots/slack/posting":            {"bots bots/outbox bots/phrases bots/queue bots/slack/incoming bots/slack/manifest bots/slack/people bots/slack/view bots/slack/wire", "what goes out: it does not know what came in"},
	"bots/slack/people":             {"bots bots/account bots/phrases bots/queue bots/slack/incoming bots/slack/manifest bots/slack/wire bots/sweep", "who is who there: it posts nothing"},
	"bots/slack/incoming":           {"bots", "bytes of Slack's in, checked values out: it asks nobody"},
	"bots/slack/wire":               {"bots bots/queue bots/slack/incoming bots/slack/manifest", "requests to Slack: it knows nothing of what they are for"},
	"bots/slack/view":               {"bots bots/markdown bots/phrases bots/slack/incoming store/display bots/arguments", "blocks out of values: it asks nobody"},
	"bots/slack/manifest":           {"", "a file that nizectl prints without the bot around it"},
	"bots/botstest":                 {"bots bots/outbox", "the script holds for every platform, so it sees none"},
	"bots/slack/slacktest/page":     {"bots/slack/slacktest bots/chattest/page", "the double of Slack as the page shows it"},
	"bots/discord/discordtest/page": {"bots/chattest bots/discord/discordtest bots/chattest/page", "the double of Discord as the page shows it"},
	"bots/theme":                    {"", "how nize's own pages look: it knows none of them"},
	"bots/chattest/page":            {"bots/theme", "a chat client in the browser for the doubles; it draws what they tell"},
	"bots/chattest":                 {"", "what every double of a platform stands on: it knows none of them, and nothing of nize"},
	"bots/discord":                  {"bots bots/account bots/discord/incoming bots/discord/invite bots/discord/people bots/discord/posting bots/discord/view bots/discord/wire bots/outbox bots/phrases bots/queue", "one platform: it shows and takes in, and decides nothing"},
	"bots/discord/posting":          {"bots bots/discord/incoming bots/discord/people bots/discord/view bots/discord/wire bots/outbox bots/phrases bots/queue", "what goes out: it does not know what came in"},
	"bots/discord/people":           {"bots bots/account bots/discord/incoming bots/discord/wire bots/phrases bots/sweep", "who is who there: it posts nothing"},
	"bots/discord/incoming":         {"bots", "bytes of Discord's in, checked values out: it asks nobody"},
	"bots/discord/wire":             {"bots/queue", "requests to Discord and its gateway: it knows nothing of what they are for"},
	"bots/discord/view":             {"bots bots/markdown bots/phrases store/display bots/arguments", "messages and dialogs out of values: it asks nobody"},
	"bots/discord/invite":           {"", "an address that nizectl prints without the bot around it"},
	"bots/discord/discordtest":      {"bots/chattest", "a double of Discord: it knows nothing of nize, so that a mistake of either shows"},
	"bots/slack/slacktest":          {"bots/chattest", "a double of Slack: it knows nothing of nize, so that a mistake of either shows"},
	"llm":                           {"", "a sister of bots and mcp"},
	"llm/openai":                    {"llm store/toolschema", "a leaf: one protocol"},
	"llm/openai/openaitest":         {"", "a double of a model service: it knows nothing of nize, so that a mistake of either shows"},
	"llm/offline":                   {"llm", "a leaf: no network"},
	"llm/llmtest":                   {"llm", "a double of a model"},
	"mcp":                           {"mcp/apps mcp/callbudget mcp/catalog mcp/commandline mcp/policy mcp/expose mcp/feature mcp/feedback mcp/fixtures mcp/question mcp/rejections mcp/reply mcp/schema mcp/sessions mcp/tasks mcp/taskwire mcp/index store/project store/toolschema", "a sister of bots and llm; the one door sees no transport, no hook and no database"},
	"mcp/policy":                    {"mcp/commandline mcp/feature mcp/view store/credential", "a leaf: rules over what the store has; they run nothing"},
	"mcp/catalog":                   {"mcp/feature mcp/policy", "a leaf: what there is; who may have it is asked of the rules"},
	"mcp/extension":                 {"mcp/native mcp/renderer mcp/schema mcp/upstream/mask mcp/upstream/process mcp/view store/toolschema store/trust", "a leaf: programs of the operator's as native tools, started as the pool starts its own"},
	"mcp/renderer":                  {"store/display", "a leaf: a template and a result in, what people see of it out"},
	"mcp/view":                      {"", "a leaf: what tools say of their views in, policies and pages out; it asks nobody"},
	"mcp/native/chart":              {"mcp/native", "one tool: what it is given, it draws"},
	"mcp/native":                    {"mcp/policy mcp/view store/credential", "a leaf: what its tools need of the house is handed to them"},
	"mcp/native/planusage":          {"mcp/native store/plan", "one tool: what it tells is read for it"},
	"mcp/native/filetext":           {"mcp/native/page", "a leaf: bytes of a file in, its text out"},
	"mcp/native/documents":          {"mcp/native store/document", "four tools: who may read what is decided by whom they are handed"},
	"daemon/documents":              {"daemon/api mcp/native mcp/native/documents mcp/native/filetext store/document store/project", "documents, whoever asks, and who may read which"},
	"daemon/plans":                  {"daemon/api daemon/control mcp/native mcp/native/planusage store/plan", "plans, whoever asks; budgets are set by the operations on those"},
	"mcp/native/page":               {"", "a leaf: bytes of a page in, Markdown out"},
	"mcp/native/web":                {"mcp/native mcp/native/page", "one tool: the guarded client is handed to it"},
	"mcp/egress/egresstest":         {"", "what every user of the guarded client is tested with"},
	"mcp/callbudget":                {"mcp/policy", "a leaf: what is left of a budget; what is done about it is the gateway's"},
	"mcp/apps":                      {"mcp/expose mcp/policy mcp/view", "a leaf: what clients are told of views; who may have one is asked elsewhere"},
	"mcp/commandline":               {"", "a leaf: what a shell would make of a line of text"},
	"mcp/feature":                   {"", "a leaf: one word that all of them share who list, judge or call"},
	"mcp/expose":                    {"mcp/feature store/toolschema", "a leaf: what a client sees by name, and how; who may use it is asked elsewhere"},
	"mcp/fixtures":                  {"", "a leaf: what the conformance suite asks for, in a build with that tag alone"},
	"mcp/feedback":                  {"", "a leaf: words out of searches; the index and the database are handed to it"},
	"mcp/rejections":                {"", "a leaf: it counts and leaves events, and turns nobody away"},
	"mcp/reply":                     {"", "a leaf: bytes of a protocol; what they say is for who answers"},
	"mcp/question":                  {"mcp/schema mcp/taskwire", "a leaf: what a server asks in, a form or a refusal out; who is asked is the gateway's"},
	"mcp/taskwire":                  {"", "a leaf: messages as they stand on the wire, for both ends"},
	"mcp/tasks":                     {"", "a leaf: it runs what it is given"},
	"mcp/schema":                    {"store/toolschema", "a leaf"},
	"mcp/index":                     {"", "a leaf: it can be thrown away and rebuilt from the store"},
	"mcp/index/eval":                {"mcp mcp/index", "it measures the index alone, in the form in which mcp answers"},
	"mcp/upstream":                  {"mcp/egress mcp/feature mcp/taskwire mcp/upstream/mask mcp/upstream/oauth mcp/upstream/openapi mcp/upstream/process mcp/upstream/wire mcp/view store/credential", "a leaf: scan and schema gate reach it through an interface of its own"},
	"mcp/upstream/openapi":          {"mcp/upstream/process mcp/upstream/wire", "a document in, tools and requests out: it knows nothing of servers, sessions or the store's records"},
	"mcp/upstream/mask":             {"", "a leaf: bytes and secrets in, bytes out"},
	"mcp/upstream/oauth":            {"", "a leaf: the client's half of a protocol; it keeps nothing"},
	"mcp/upstream/login":            {"mcp/upstream/oauth store/credential", "the logins at servers: the pool reaches it through an interface of its own"},
	"mcp/upstream/authtest":         {"", "a double of an authorization server: it knows nothing of nize, so that a mistake of either shows"},
	"mcp/upstream/wire":             {"mcp/taskwire mcp/upstream/process mcp/view", "it carries messages, and knows nothing of servers, sessions or the store's records"},
	"mcp/upstream/process":          {"", "it starts and ends processes, whatever they speak"},
	"mcp/scan":                      {"", "a leaf"},
	"mcp/egress":                    {"", "a leaf: it guards addresses, whatever is asked of them"},
	"mcp/hook":                      {"mcp mcp/feature mcp/upstream/process store/hooks store/webhook", "a leaf: what a hook starts, it starts as the pool does"},
	"mcp/mcptest":                   {"", "a double of an upstream"},
	"daemon/api":                    {"store/credential store/display store/document store/hooks store/plan store/project", "what nizectl and nized agree on; it cannot see the server"},
	"daemon/control":                {"bots bots/terminal daemon/api daemon/people llm llm/openai mcp mcp/catalog mcp/expose mcp/feature mcp/hook mcp/index mcp/policy mcp/upstream mcp/upstream/openapi mcp/view store/hooks store/oauth store/project", "the operations of the control API: what they need is handed to them, and none sees HTTP"},
	"daemon/commands":               {"bots bots/phrases daemon/api daemon/connect daemon/control daemon/credentials daemon/people daemon/plot daemon/settings daemon/signin", "what people do in a chat: they call the operations that nizectl calls, and see no store"},
	"daemon/metrics":                {"daemon/api llm mcp mcp/policy", "it counts what passes the seams of the sisters, and decides nothing"},
	"daemon/trace":                  {"bots llm mcp", "it follows what passes the seams of the sisters, and decides nothing"},
	"daemon/monitor":                {"bots bots/phrases daemon/api daemon/alert daemon/backup daemon/doctor daemon/people mcp mcp/upstream store/database store/oauth store/webhook", "how nized is: it reads the rooms that it tells of"},
	"daemon/indexer":                {"daemon/api daemon/control llm llm/openai mcp mcp/feature mcp/index mcp/scan mcp/upstream", "it keeps the index of tools as the store has them"},
	"daemon/renderers":              {"daemon/api mcp/policy mcp/renderer store/display", "renderers that admins set; what one is is read elsewhere"},
	"daemon/credentials":            {"bots daemon/api daemon/control mcp/policy store/credential", "declared credentials among the operations on credentials"},
	"daemon/extensions":             {"daemon/api daemon/control daemon/imports mcp/extension mcp/native mcp/policy", "extensions among the servers of the operations"},
	"daemon/imports":                {"daemon/api daemon/control daemon/mcpfile", "it turns the entries of a file into servers, by the operations on those"},
	"daemon/mux":                    {"daemon/api", "it serves operations over HTTP, whatever they do"},
	"daemon/rounds":                 {"llm store/project", "the loop that answers programs: it sees no HTTP, and the gateway through an interface of its own"},
	"daemon/clientservers":          {"mcp/policy mcp/upstream mcp/upstream/wire store/project", "servers that programs bring: it keeps their sessions, and the gateway decides"},
	"daemon/openapi":                {"daemon/api", "what is said of operations, whatever serves them: it gives the document its form"},
	"daemon/programs":               {"daemon/api daemon/openapi daemon/rounds store/project", "who a program is, and its requests over HTTP; it decides nothing"},
	"daemon/fileconfig":             {"daemon/api daemon/control daemon/people daemon/settings llm llm/openai", "what the configuration file has beside settings, by the operations that nizectl calls"},
	"daemon/chatclient":             {"bots daemon/api daemon/control daemon/mux daemon/openapi daemon/rounds daemon/settings store/plan", "what a chat client on HTTP is told: it calls the operations that nizectl calls"},
	"daemon/browser":                {"bots bots/account bots/outbox bots/phrases bots/web daemon/api daemon/chatclient daemon/control daemon/credentials daemon/limit daemon/mux daemon/settings", "what the chat page may ask for: it calls the operations that nizectl and chat clients call"},
	"mcp/sessions":                  {"", "how many sessions are open and which one goes; what a session does is for who serves it"},
	"daemon/connections":            {"", "how much is open and for how long, whatever is served; who is signed in is told it"},
	"daemon/limit":                  {"", "it counts, whatever it is that somebody does"},
	"daemon/links":                  {"daemon/api daemon/limit daemon/mux daemon/views", "links to views; what they lead to is opened elsewhere"},
	"daemon/views":                  {"daemon/api daemon/limit daemon/mux mcp/feature mcp/policy mcp/view store/toolschema", "results shown by views: it runs no tool but through the gateway, which is handed to it"},
	"daemon/pages":                  {"bots/phrases", "the shell of pages: it knows nothing of what they are about"},
	"daemon/signin":                 {"daemon/alert daemon/api daemon/limit daemon/pages daemon/people mcp/expose store/oauth", "who a browser or a client on HTTP speaks for, and how they come to; it calls no tool"},
	"daemon/company":                {"daemon/api daemon/limit daemon/signin store/identity store/oauth", "the identity provider of a company: who a person is there, checked; what they may do is decided elsewhere"},
	"daemon/company/oidctest":       {"", "a double of an identity provider: it knows nothing of nize, so that a mistake of either shows"},
	"daemon/connect":                {"daemon/api daemon/control daemon/pages daemon/signin mcp/egress mcp/upstream mcp/upstream/login mcp/upstream/oauth store/credential", "how a person signs in at a server: pages and flows; the tokens are kept below"},
	"daemon/peer":                   {"", "a leaf: it asks the kernel; both ends of the socket do"},
	"daemon/people":                 {"bots daemon/api daemon/limit store/document store/identity store/oauth store/project", "who is who, who may come in, and what is kept about them"},
	"daemon/standby":                {"", "requests, passed on to another nized; whom it lets in is the door's"},
	"daemon/backup":                 {"daemon/api daemon/standby store/database store/kv store/kv/bolt store/kv/postgres store/seal", "the database's files, its server and its key, whoever asks"},
	"daemon/settings":               {"daemon/alert daemon/api daemon/people daemon/registry daemon/trace llm mcp/egress store/webhook", "what a setting is and where its value comes from; the rooms that know more of a value check it"},
	"daemon/alert":                  {"store/webhook", "a leaf: it keeps incidents and sends them, whatever they are about"},
	"daemon/doctor":                 {"daemon/api", "rules over facts; nizectl applies those for files where no daemon runs"},
	"daemon/agenthook":              {"daemon/api", "a leaf: the forms in which coding agents ask; nized and nizectl read them"},
	"daemon/asks":                   {"daemon/agenthook daemon/api daemon/mux daemon/openapi mcp", "what other programs ask before they run something; the gateway decides"},
	"daemon/mcpfile":                {"", "a leaf: it reads and changes what other clients wrote, as text, and contacts nothing"},
	"daemon/registry":               {"daemon/api", "it asks an MCP registry, and stores and runs nothing of what that says"},
	"daemon/plot":                   {"", "a leaf: numbers in, a picture out"},
	"cmd/nized/setup":               {"cmd/nizectl/command cmd/nizectl/display daemon/api", "what a person would do with nizectl, by the same operations"},
	"cmd/nized":                     {"cmd/nized/setup cmd/nizectl/command daemon daemon/api daemon/backup daemon/settings", "main parses, builds, runs, exits"},
	"cmd/nizectl/clients":           {"cmd/nizectl/command cmd/nizectl/display daemon/agenthook daemon/api daemon/mcpfile mcp/commandline", "the MCP clients of this machine: it carries their messages without reading them"},
	"cmd/nizectl":                   {". cmd/nizectl/chat cmd/nizectl/clients cmd/nizectl/command cmd/nizectl/dev cmd/nizectl/display cmd/nizectl/servers daemon/api daemon/doctor bots/discord/invite bots/slack/manifest store/credential store/hooks store/plan store/project", "it talks to the control socket and to nothing else"},
	"cmd/nizectl/dev":               {"bots/chattest/page bots/discord/discordtest bots/discord/discordtest/page bots/slack/manifest bots/slack/slacktest bots/slack/slacktest/page cmd/nizectl/command cmd/nizectl/display daemon/api", "it serves the doubles, and lets the daemon work on them"},
	"cmd/nizectl/chat":              {"bots bots/phrases cmd/nizectl/display daemon/api", "the client's half of a chat: it shows cards and messages as bots words them"},
	"cmd/nizectl/command":           {"cmd/nizectl/display daemon/api daemon/peer", "what every command is made of; it knows no noun"},
	"cmd/nizectl/servers":           {"cmd/nizectl/command cmd/nizectl/display daemon/api", "one noun that needs several files"},
	"cmd/nizectl/display":           {"", "a leaf: it counts columns"},
	"cmd/manpage":                   {"", "it reads commands and writes a manual page"},
	"cmd/nize-toolbox":              {"", "an MCP server like any other, and an example"},
	"scripts/bench":                 {"bots/slack/slacktest daemon/api daemon/trace mcp/index store/database store/document store/journal store/kv store/kv/bolt store/kv/postgres/postgrestest store/oauth store/seal", "it measures the programs from outside, the index and a flush by themselves, and fills a database as they would"},
	"daemon":                        {"*", "the roof: the only room that knows the others"},
	"scripts/agents":                {"bots/slack/slacktest daemon/api", "it drives the programs and the agents of others from outside"},
	"scripts/failover":              {"daemon/api", "it kills the programs, and asks them from outside"},
	"scripts/conformance/addhdr":    {"", "a proxy"},
	"scripts/conformance/server":    {"", "an upstream with the suite's tools, which knows nothing of nize; in a build with its tag"},
	"scripts/conformance/client":    {"mcp/feature mcp/scan mcp/taskwire mcp/upstream mcp/upstream/login mcp/upstream/oauth store/database store/seal", "the pool alone, as the suite's client; in a build with its tag"},
	"scripts/web/history":           {"store/database store/kv store/record store/seal", "it fills a database for the tests of the chat page"},
	"scripts/wordtable":             {"", "it makes a table from a package that others wrote, and needs nothing of the house"},

	"mcp/upstream/openapi/openapitest": {"", "a double of a service: it knows nothing of nize, so that a mistake of either shows"},
}

// libraries says where each foreign library lives: its types do not leave that
// room, so that it can be exchanged there. The longest prefix counts.
var libraries = map[string]string{
	"go.etcd.io/bbolt":                                "store/kv/bolt",
	"github.com/jackc/pgx/v5":                         "store/kv/postgres store/kv/postgres/postgrestest",
	"github.com/philippgille/chromem-go":              "mcp/index",
	"github.com/kljensen/snowball":                    "mcp/index",
	"github.com/modelcontextprotocol/go-sdk":          "mcp mcp/apps mcp/expose mcp/fixtures mcp/upstream mcp/upstream/oauth mcp/upstream/wire mcp/mcptest cmd/nize-toolbox scripts/bench scripts/conformance/server scripts/failover",
	"github.com/santhosh-tekuri/jsonschema/v6":        "mcp/schema",
	"github.com/google/jsonschema-go":                 "cmd/nize-toolbox daemon/openapi", // the form of a schema; the SDK brings it along
	"github.com/yosida95/uritemplate/v3":              "mcp/expose",                      // which addresses a server's template has; the SDK uses it for its own
	"golang.org/x/time":                               "mcp mcp/upstream/wire",
	"golang.org/x/image":                              "daemon/plot",
	"golang.org/x/image/colornames":                   "cmd/nize-toolbox",
	"github.com/expr-lang/expr":                       "cmd/nize-toolbox",         // the calculator
	"golang.org/x/image/webp":                         "bots/slack/posting",       // Slack's blocks show no WebP, so it becomes PNG
	"github.com/sashabaranov/go-openai":               "llm/openai scripts/bench", // which compares with what is written on it directly
	"github.com/slack-go/slack":                       "bots/slack bots/slack/home bots/slack/people bots/slack/posting bots/slack/view bots/slack/wire",
	"github.com/bwmarrin/discordgo":                   "bots/discord/wire",
	"github.com/gorilla/websocket":                    "bots/chattest bots/discord/wire bots/slack bots/slack/wire",
	"github.com/urfave/cli/v3":                        "cmd/nized cmd/nizectl cmd/nizectl/clients cmd/nizectl/command cmd/nizectl/dev cmd/nizectl/servers cmd/manpage",
	"github.com/robfig/cron/v3":                       "daemon/settings",
	"code.dny.dev/ssrf":                               "mcp/egress",
	"github.com/coreos/go-oidc/v3":                    "daemon/company",
	"golang.org/x/oauth2":                             "daemon/company",           // go-oidc's types of a client
	"codeberg.org/readeck/go-readability/v2":          "mcp/native/page",          // which part of a page is its article
	"github.com/JohannesKaufmann/html-to-markdown/v2": "mcp/native/page",          // tables, lists and code as CommonMark
	"github.com/ledongthuc/pdf":                       "mcp/native/filetext",      // what stands in a PDF, and where
	"golang.org/x/net/html":                           "mcp/native/page mcp/view", // where the scripts of a template are
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

	// For tests and doubles everywhere, and for nothing else.
	"github.com/google/go-cmp":                   "tests",
	"github.com/go-jose/go-jose/v4":              "tests", // go-oidc verifies with it; doubles sign with it
	"github.com/getkin/kin-openapi":              "tests", // somebody else's reading of OpenAPI, as a judge of requests
	"go.uber.org/goleak":                         "tests",
	"github.com/rogpeppe/go-internal/testscript": "tests",
	"github.com/creack/pty":                      "tests",
}

// sisters never import one another, in tests neither: what needs two of them
// is tested on the roof.
var sisters = []string{"bots", "llm", "mcp"}

// banned names of folders say nothing about what is in them.
var banned = []string{"util", "utils", "common", "helper", "helpers", "types", "internal", "pkg", "misc", "lib"}

// untyped lists the maps of any on the call path, each with its reason: a
// number that goes through one is rounded.
var untyped = map[string]string{
	"mcp/server.go": "the SDK's auth.TokenInfo.Extra has that type; the caller is put in and taken out as it is",
}

// source is one Go file.
type source struct {
	path string // from the module's root, with slashes
	room string
	test bool
	file *ast.File
}

func (s source) double() bool { return s.test || strings.HasSuffix(s.room, "test") }

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
				return fs.SkipDir // a module of its own, of which the programs import nothing
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
		all = append(all, source{path: rel, room: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"), file: f})
		return nil
	})
	if err != nil {
		t.Fatalf("reading the sources: %v", err)
	}
	if len(all) < 100 {
		t.Fatalf("read %d Go files: this is not the whole house", len(all))
	}
	return fset, all
}

func (s source) imports() []string {
	var list []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser let it pass
		list = append(list, p)
	}
	return list
}

func TestFloors(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		row, ok := floors[s.room]
		if !ok {
			t.Errorf("%s: the room %s has no row among the floors", s.path, s.room)
			continue
		}
		for _, imp := range s.imports() {
			own, ours := strings.CutPrefix(imp, "nize/")
			if imp == "nize" {
				own, ours = ".", true
			}
			if !ours || own == s.room || own == "store" || own == "store/printable" || own == "store/outage" {
				continue
			}
			if sister(s.room) != "" && sister(own) != "" && sister(own) != sister(s.room) {
				t.Errorf("%s imports %s: sisters don't import one another; they meet on the roof, by words of store", s.path, own)
				continue
			}
			may := strings.Fields(row.may)
			if slices.Contains(may, "*") || slices.Contains(may, own) {
				continue
			}
			if s.test && testMay(s.room, own) {
				continue
			}
			t.Errorf("%s imports %s: %s may import store %s: %s", s.path, own, s.room, row.may, row.why)
		}
	}
	rooms := map[string]bool{}
	for _, s := range all {
		rooms[s.room] = true
	}
	for name := range floors {
		if !rooms[name] {
			t.Errorf("the floors have a row for %s, which is no room", name)
		}
	}
}

// testMay lets tests use real neighbours below the roof, and a command's tests
// the whole house that it is a part of.
func testMay(from, own string) bool {
	if strings.HasPrefix(from, "cmd/") {
		return true
	}
	return own != "daemon" && !strings.HasPrefix(own, "cmd/") && !strings.HasPrefix(own, "scripts/")
}

// sister is which of the three a room belongs to, "" for none of them.
func sister(room string) string {
	top, _, _ := strings.Cut(room, "/")
	if slices.Contains(sisters, top) {
		return top
	}
	return ""
}

func TestLibrariesHaveOneRoom(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		for _, imp := range s.imports() {
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				continue // ours, or the standard library
			}
			lib := library(imp)
			if lib == "" {
				t.Errorf("%s imports %s, which has no room: argue for it in the commit, then add its row", s.path, imp)
				continue
			}
			rooms := strings.Fields(libraries[lib])
			switch {
			case slices.Contains(rooms, s.room):
			case slices.Contains(rooms, "tests") && s.double():
			case s.test && underneath(s.room, rooms):
			default:
				t.Errorf("%s imports %s, which lives in %s and nowhere else", s.path, imp, libraries[lib])
			}
		}
	}
}

// underneath lets the tests of a room speak a protocol from the other side
// where the library's room is the sister's: a client of our server, a server
// for our client.
func underneath(from string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return sister(r) != "" && (sister(r) == sister(from) || from == "daemon") })
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

func TestFoldersAreNamedForWhatTheyKeep(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		for part := range strings.SplitSeq(s.room, "/") {
			if slices.Contains(banned, part) {
				t.Errorf("%s: a folder called %q says nothing; name it by the noun that it keeps", s.path, part)
			}
		}
	}
}

// refusedInWords says whether a format has ErrRefused as a clause of its own:
// people read a sentence, not a chain of errors.
func refusedInWords(names map[string]string, call *ast.CallExpr) bool {
	format, ok := call.Args[0].(*ast.BasicLit)
	return ok && (strings.Contains(format.Value, "%w:") || strings.Contains(format.Value, ": %w")) && slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		e, ok := arg.(*ast.SelectorExpr)
		return ok && selected(names, e) == "nize/store.ErrRefused"
	})
}

func TestBannedWords(t *testing.T) {
	fset, all := sources(t)
	callPath := []string{"mcp", "mcp/upstream", "mcp/upstream/wire", "mcp/hook"}
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
					t.Errorf("%s uses %s: it has no deadline, follows redirects with our headers, and is shared by all", at(), what)
				}
				if what == "syscall.Umask" {
					t.Errorf("%s uses %s: it is the whole process's, and what is made elsewhere at that moment has it: give the mode to the file", at(), what)
				}
				if s.test && what == "time.Sleep" && !within(bubbles, n.Pos()) {
					t.Errorf("%s sleeps: wait for the event itself; testing/synctest runs time", at())
				}
			case *ast.MapType:
				if !s.test && slices.Contains(callPath, s.room) && isAnyMap(n) && untyped[s.path] == "" {
					t.Errorf("%s: map[string]any on the call path rounds numbers over 2^53", at())
				}
			}
			return true
		})
	}
}

// importNames maps the names that a file gives its imports to their paths.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser let it pass
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
	}
	return names
}

// selected is "path.Name" for a name of an imported package, else "".
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

// bubbles are the functions that a file hands to synctest.Test: time there is
// the bubble's own, and a sleep costs none.
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

// shellCall is the shell that an os/exec call starts, "" if none.
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
	name, _ := strconv.Unquote(lit.Value) // a literal of the parser's
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

// TestOperationsAreMounted: each operation that daemon/api declares is mounted
// once, on a route of its own.
func TestOperationsAreMounted(t *testing.T) {
	mounted := map[string]bool{}
	for _, op := range Operations() {
		route := op.Method + " " + op.Path
		if mounted[route] {
			t.Errorf("%s is mounted twice", route)
		}
		if op.Summary == "" || !strings.HasPrefix(op.Path, "/v1/") {
			t.Errorf("%s says %q", route, op.Summary)
		}
		mounted[route] = true
	}
	_, all := sources(t)
	declared := 0
	for _, s := range all {
		if s.room != "daemon/api" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isOperation(lit.Type) {
				return true
			}
			method, path := lit.Elts[0].(*ast.BasicLit).Value, lit.Elts[1].(*ast.BasicLit).Value
			if route := strings.Trim(method, `"`) + " " + strings.Trim(path, `"`); !mounted[route] && !strings.Contains(path, `"/auth/`) && !strings.Contains(path, `"/api/`) && !strings.Contains(path, `"/asks`) {
				t.Errorf("%s: nobody answers %s", s.path, route)
			}
			declared++
			return true
		})
	}
	if declared < len(mounted) {
		t.Errorf("%d operations are mounted, and package api declares %d", len(mounted), declared)
	}
}

// isOperation says whether a type is one of the four kinds of operations.
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

// TestOperationsSeeNoHTTP: what a chat and a page can ask for as well as nizectl
// knows of no request.
func TestOperationsSeeNoHTTP(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		operations := slices.Contains([]string{"daemon/control", "daemon/people", "daemon/settings", "daemon/backup", "daemon/monitor", "daemon/commands", "daemon/imports", "daemon/indexer"}, s.room)
		if operations && !s.test && slices.Contains(s.imports(), "net/http") {
			t.Errorf("%s imports net/http: a request is decoded before it gets here, by package mux", s.path)
		}
	}
}
