package api

// Route is one request that the daemon answers.
type Route struct {
	Method  string
	Path    string // a pattern of http.ServeMux
	Admin   bool   // for admins only; members may use the others for what is theirs
	Summary string
}

// Routes is every request, by path, then method. A test in daemon compares it
// with the handlers there.
var Routes = []Route{
	{"GET", "/v1/agents", false, "list agents"},
	{"DELETE", "/v1/agents/{id}", true, "remove an agent"},
	{"PUT", "/v1/agents/{id}", true, "make or change an agent"},
	{"GET", "/v1/approvals", false, "list calls that wait for a person"},
	{"GET", "/v1/approvals/{id}", false, "show one call's card"},
	{"POST", "/v1/approvals/{id}", false, "decide on a call"},
	{"GET", "/v1/audit", true, "read or follow the audit trail (stream)"},
	{"GET", "/v1/audit/verify", true, "verify the audit chain"},
	{"GET", "/v1/calls/{id}", false, "show one call"},
	{"GET", "/v1/chat/threads", false, "list conversations"},
	{"POST", "/v1/chat/threads", false, "start a conversation"},
	{"GET", "/v1/chat/threads/{id}", false, "show a conversation"},
	{"GET", "/v1/chat/threads/{id}/events", false, "follow a conversation (stream)"},
	{"POST", "/v1/chat/threads/{id}/messages", false, "send a message"},
	{"POST", "/v1/chat/threads/{id}/stop", false, "stop the running turn"},
	{"GET", "/v1/config", false, "list settings"},
	{"DELETE", "/v1/config/{key}", false, "unset a setting"},
	{"PUT", "/v1/config/{key}", false, "set a setting"},
	{"DELETE", "/v1/credentials", true, "remove a credential"},
	{"GET", "/v1/credentials", true, "list credentials, without their values"},
	{"PUT", "/v1/credentials", true, "set a credential"},
	{"GET", "/v1/domains", false, "list tool domains"},
	{"GET", "/v1/domains/{id}", false, "browse a tool domain"},
	{"GET", "/v1/grants", false, "list standing answers"},
	{"DELETE", "/v1/grants/{id}", false, "revoke a standing answer"},
	{"GET", "/v1/models", false, "list model names"},
	{"DELETE", "/v1/models/{logical}", true, "remove a model name"},
	{"PUT", "/v1/models/{logical}", true, "map a model name"},
	{"POST", "/v1/models/{logical}/default", true, "make a model name the default"},
	{"PUT", "/v1/models/{logical}/fallbacks", true, "set a model name's fallbacks"},
	{"GET", "/v1/providers", true, "list providers"},
	{"POST", "/v1/providers", true, "add a provider, or give it a new key"},
	{"DELETE", "/v1/providers/{name}", true, "remove a provider"},
	{"POST", "/v1/providers/{name}/disable", true, "disable a provider"},
	{"POST", "/v1/providers/{name}/enable", true, "enable a provider"},
	{"POST", "/v1/providers/{name}/test", true, "test a provider's key"},
	{"POST", "/v1/reindex", true, "refresh tools and vectors (stream)"},
	{"GET", "/v1/servers", false, "list servers"},
	{"POST", "/v1/servers", true, "register a server"},
	{"POST", "/v1/servers/import", true, "register the servers of an MCP client's file (stream)"},
	{"DELETE", "/v1/servers/{name}", true, "remove a server"},
	{"GET", "/v1/servers/{name}", false, "show a server and its tools"},
	{"PATCH", "/v1/servers/{name}", true, "change a server"},
	{"GET", "/v1/servers/{name}/logs", true, "read or follow a server's stderr (stream)"},
	{"POST", "/v1/servers/{name}/restart", true, "restart a server"},
	{"POST", "/v1/servers/{name}/test", true, "test a server, step by step"},
	{"GET", "/v1/servers/{name}/trust", true, "show what waits for acceptance"},
	{"POST", "/v1/servers/{name}/trust", true, "accept tools' definitions"},
	{"GET", "/v1/status", false, "the daemon's state"},
	{"DELETE", "/v1/tokens", false, "revoke all tokens"},
	{"GET", "/v1/tokens", false, "list tokens"},
	{"POST", "/v1/tokens", false, "create a token"},
	{"DELETE", "/v1/tokens/{name}", false, "revoke a token"},
	{"POST", "/v1/tokens/{name}/rotate", false, "replace a token"},
	{"GET", "/v1/tools", false, "list tools"},
	{"GET", "/v1/tools/search", false, "find tools by what they do"},
	{"GET", "/v1/tools/{id}", false, "show a tool and its schema"},
	{"POST", "/v1/tools/{id}/call", false, "call a tool"},
	{"GET", "/v1/usage", false, "what model and tool calls cost"},
	{"GET", "/v1/users", true, "list users"},
}
