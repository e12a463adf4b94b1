package browser

import (
	"context"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/printable"
)

// The page's operations for admins, besides nize's status: details of servers, with
// definitions that need acceptance; model providers, and model names. Members get 404 at
// these paths. Keys can be set but are never returned.

var (
	showServer = api.Op[api.ServerRequest, serverView]{Method: "GET", Path: "/v1/house/servers/{name}", Summary: "show a server, its tools, its log and the definitions that need acceptance"}
)

// serverView is an admin's view of a server. Its secrets, and how it is started, are
// visible on the command line only.
type serverView struct {
	api.Health
	Title    string          `json:"title,omitempty"`
	Tools    []serverTool    `json:"tools"`
	Held     []api.TrustView `json:"waiting"`
	Log      []string        `json:"log"`
	Warnings []string        `json:"warnings,omitempty"`
}

type serverTool struct {
	ID          string          `json:"id"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	State       store.ToolState `json:"state"`
	Findings    []string        `json:"findings,omitempty"`
}

// maxLog is how many of the last lines of a server's log are shown.
const maxLog = 200

// admin implements the operations for admins.
type admin struct{ *Browser }

func (b admin) mount(m *mux.Mux) {
	mux.Handle(m, showServer, forAdmins(b.showServer))
	mux.Handle(m, api.TrustTools, forAdmins(b.Servers.Trust))
	mux.Handle(m, api.ListProviders, forAdmins(b.Providers.List))
	mux.Handle(m, api.AddProvider, forAdmins(b.Providers.Add))
	mux.Handle(m, api.RemoveProvider, forAdmins(b.Providers.Remove))
	mux.Handle(m, api.EnableProvider, forAdmins(b.Providers.Enable))
	mux.Handle(m, api.DisableProvider, forAdmins(b.Providers.Disable))
	mux.Handle(m, api.TestProvider, forAdmins(b.Providers.Test))
	mux.Handle(m, api.SetModel, forAdmins(b.Models.Set))
	mux.Handle(m, api.RemoveModel, forAdmins(b.Models.Remove))
	mux.Handle(m, api.SetDefaultModel, forAdmins(b.Models.SetDefault))
}

func (b admin) showServer(ctx context.Context, by store.Caller, req api.ServerRequest) (none serverView, err error) {
	s, err := b.Servers.Get(ctx, by, req)
	if err != nil {
		return none, err
	}
	out := serverView{Health: s.Health, Title: printable.Escape(s.Server.Title), Tools: []serverTool{}, Held: []api.TrustView{}, Log: []string{}, Warnings: escaped(s.Warnings)}
	out.Health.LastError = printable.EscapeLines(out.Health.LastError)
	for _, t := range s.Tools {
		out.Tools = append(out.Tools, serverTool{ID: t.ID, Title: printable.Escape(t.Title), Description: printable.EscapeLines(t.Description), State: t.State, Findings: escaped(t.Findings)})
	}
	if s.Health.Held > 0 {
		waiting, err := b.Servers.ListUntrusted(ctx, by, api.ListUntrustedRequest{Name: req.Name})
		if err != nil {
			return none, err
		}
		for _, w := range waiting.Items {
			w.Description, w.Diff, w.Findings, w.ViewSends = printable.EscapeLines(w.Description), printable.EscapeLines(w.Diff), escaped(w.Findings), escaped(w.ViewSends)
			w.Changes = slices.Clone(w.Changes)
			for i := range w.Changes {
				w.Changes[i].Old, w.Changes[i].New = printable.EscapeLines(w.Changes[i].Old), printable.EscapeLines(w.Changes[i].New)
			}
			out.Held = append(out.Held, w)
		}
	}
	// Ignore the error: a server without a process has no log.
	_ = b.Servers.Logs(ctx, by, api.ServerLogsRequest{Name: req.Name}, func(line api.LogLine) error {
		out.Log = append(out.Log, printable.EscapeLines(strings.TrimRight(line.Text, "\n")))
		if len(out.Log) > maxLog {
			out.Log = out.Log[1:]
		}
		return nil
	})
	return out, nil
}

func escaped(list []string) (out []string) {
	for _, s := range list {
		out = append(out, printable.EscapeLines(s))
	}
	return out
}
