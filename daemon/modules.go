package daemon

import (
	"nize/daemon/api"
	"nize/daemon/company"
	"nize/daemon/module"
	"nize/daemon/mux"
	"nize/daemon/registry"
	"nize/daemon/signin"
	"nize/store"
	"nize/store/kv"
)

// modules lists the capabilities that are modules, in the order in which they start.
func (o *operations) modules() []module.Module {
	return []module.Module{
		o.documents.Module(),
		o.views.Module(),

		{Name: "servers", Operations: o.servers.Mount},
		o.extensions.Module(),
		{Name: "imports", Operations: o.imports.Mount},
		{Name: "registry", Settings: registry.Settings, Operations: o.registry.Mount},
		{Name: "tools", Operations: o.tools.Mount},
		{Name: "index", Operations: o.index.Mount},
		{Name: "indexer", Operations: o.indexer.Mount},
		{Name: "unmet requests", Operations: o.unmet.Mount},
		o.hooks.Module(),
		{Name: "connections", Operations: o.serveMCP},

		{Name: "providers", Operations: o.providers.Mount},
		{Name: "models", Operations: o.models.Mount},
		{Name: "prices", Operations: o.prices.Mount},
		{Name: "agents", Operations: o.agents.Mount},
		{Name: "usage", Operations: o.usage.Mount},
		{Name: "budgets", Operations: o.budgets.Mount},
		o.plans.Module(),

		{Name: "tokens", Operations: o.tokens.Mount},
		o.credentials.Module(),
		{Name: "connect", Operations: o.connect.Mount},
		o.projects.Module(),
		{Name: "approvals", Operations: o.approvals.Mount},
		{Name: "asks", Operations: o.asks.Mount},
		{Name: "grants", Operations: o.grants.Mount},

		{Name: "users", Operations: o.users.Mount},
		{Name: "leavers", Operations: o.leavers.Mount},
		{Name: "groups", Operations: o.groups.Mount},
		{Name: "links", Operations: o.links.Mount},
		{Name: "sign-ins", Settings: signin.Settings, Operations: o.signin.Mount},
		{Name: "company", Settings: company.Settings, Operations: o.company.Mount},

		{Name: "bots", Operations: o.bots.Mount},
		{Name: "doubles", Operations: o.doubles.Mount},
		{Name: "channels", Operations: o.channels.Mount},
		{Name: "conversations", Operations: o.conversations.Mount},

		{Name: "alerts", Operations: o.alerts.Mount},
		{Name: "doctor", Operations: o.doctor.Mount},
		{Name: "status", Operations: o.status.Mount},
		{Name: "settings", Operations: o.settings.Mount},
		{Name: "backups", Operations: o.backups.Mount},
		{Name: "restores", Operations: o.restores.Mount},
		{Name: "keys", Operations: o.keys.Mount},
		{Name: "clock", Operations: o.clock.Mount},
		{Name: "records", Operations: o.records.Mount},
		{Name: "audit", Operations: o.audit.Mount},
	}
}

// serveMCP registers the connection of an MCP client to the control socket. Package mcp, which
// serves it, knows no operations.
func (o *operations) serveMCP(m *mux.Mux) { mux.HandleDuplex(m, api.ServeMCP, o.mcp.ServeConn) }

// Settings returns the settings that modules declare.
func Settings() (list []store.Key) {
	for _, m := range new(operations).modules() {
		list = append(list, m.Settings...)
	}
	return list
}

// Buckets returns the buckets of all modules, which are beside those of the store.
func Buckets() (list []kv.Bucket) {
	for _, m := range new(operations).modules() {
		list = append(list, m.Buckets...)
	}
	return list
}
