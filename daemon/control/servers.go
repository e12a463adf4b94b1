package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp"
	"nize/mcp/catalog"
	"nize/mcp/feature"
	"nize/mcp/policy"
	"nize/mcp/upstream"
	"nize/store"
)

// Servers implements the operations on registered MCP servers.
//
// Members see the servers that are shared with them and their state; how they are run
// (commands, environment, addresses, last errors) is visible to admins only. The error for
// a server that is not shared is the same as for one that does not exist.
type Servers struct {
	Store interface {
		store.Servers
		store.Credentials
		GetTool(ctx context.Context, id string) (store.Tool, error)
		ListTools(ctx context.Context, server string) ([]store.Tool, error)
		AcceptTool(ctx context.Context, by store.Caller, id, pin string) error
		AddEvent(by store.Caller, e store.Event)
	}
	Pool      *upstream.Pool
	Gateway   *mcp.Gateway
	Directory *people.Directory
	Now       func() time.Time
	Log       *slog.Logger
	// CheckCredential returns an error for a server whose values name an undeclared
	// credential.
	CheckCredential func(context.Context, store.Server) error
	// Extensions are the server native, whose tools admins accept; daemon/extensions implements
	// it.
	Extensions interface {
		Health() (h api.Health, ok bool)
		Untrusted(tool string) ([]api.TrustView, error)
		Trust(ctx context.Context, by store.Caller, tool, pin string) error
	}
	// NotAdded returns the entries of the file of servers that are not servers.
	NotAdded func() []api.ServerView
}

// Mount registers the operations.
func (s *Servers) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListServers, s.All)
	mux.Handle(m, api.ListUntrusted, s.ListUntrusted)
	mux.Handle(m, api.TrustTools, s.Trust)
	mux.Handle(m, api.AddServer, s.Add)
	mux.Handle(m, api.RemoveServer, s.Remove)
	mux.Handle(m, api.GetServer, s.Get)
	mux.Handle(m, api.PatchServer, s.Patch)
	mux.HandleStream(m, api.ServerLogs, s.Logs)
	mux.Handle(m, api.RestartServer, s.Restart)
	mux.Handle(m, api.TestServer, s.Test)
}

// All returns the servers that the caller may see. For admins it includes native, if there
// are extensions, and the entries of the servers file that are not servers.
func (s *Servers) All(ctx context.Context, by store.Caller, req api.Empty) (api.List[api.ServerView], error) {
	list, err := s.List(ctx, by, req)
	if err != nil || !by.IsAdmin() {
		return list, err
	}
	list.Items = append(list.Items, s.NotAdded()...)
	if health, ok := s.Extensions.Health(); ok {
		record := s.Gateway.Catalog.Server(policy.NativeServer)
		list.Items = append(list.Items, api.ServerView{Health: health, Server: store.Server{Name: record.Name, About: record.About}})
	}
	return list, nil
}

// List returns the registered servers that the caller may see.
func (s *Servers) List(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ServerView], err error) {
	servers, err := s.known(ctx, by)
	if err != nil {
		return none, err
	}
	counts, err := s.Gateway.Catalog.CountTools(ctx)
	if err != nil {
		return none, fmt.Errorf("counting tools: %w", err)
	}
	states := s.States()
	views := make([]api.ServerView, len(servers))
	for i, server := range servers {
		views[i] = forCaller(by, api.ServerView{Health: HealthOf(server, states, counts[server.Name]), Server: server})
	}
	return api.Items(views), nil
}

// known returns the servers that the caller may see.
func (s *Servers) known(ctx context.Context, by store.Caller) ([]store.Server, error) {
	all, err := s.Store.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	groups := s.Directory.GroupsOf(ctx, by)
	return slices.DeleteFunc(all, func(server store.Server) bool { return !server.SharedWith(by, groups) }), nil
}

// UsableBy returns the enabled servers that the caller may use.
func (s *Servers) UsableBy(ctx context.Context, by store.Caller) ([]store.Server, error) {
	known, err := s.known(ctx, by)
	return slices.DeleteFunc(known, func(server store.Server) bool { return server.Disabled }), err
}

// Names returns the names of the servers that the caller may see.
func (s *Servers) Names(ctx context.Context, by store.Caller) ([]string, error) {
	known, err := s.known(ctx, by)
	names := make([]string, len(known))
	for i, server := range known {
		names[i] = server.Name
	}
	return names, err
}

// Find returns a server that the caller may see. Its error suggests similar names among
// those.
func (s *Servers) Find(ctx context.Context, by store.Caller, name string) (store.Server, error) {
	if by.IsAdmin() {
		if server, err := s.Store.GetServer(ctx, name); !errors.Is(err, store.ErrNotFound) {
			return server, err
		}
	}
	known, err := s.known(ctx, by)
	if err != nil {
		return store.Server{}, err
	}
	names := make([]string, len(known))
	for i, server := range known {
		if server.Name == name {
			return server, nil
		}
		names[i] = server.Name
	}
	return store.Server{}, store.Unknown("server", name, names)
}

// Check returns an error if the caller may not see the server of that name.
func (s *Servers) Check(ctx context.Context, by store.Caller, name string) error {
	_, err := s.Find(ctx, by, name)
	return err
}

// forCaller returns a view without the fields for admins, unless the caller is one.
func forCaller(by store.Caller, v api.ServerView) api.ServerView {
	if by.IsAdmin() {
		return v
	}
	v.LastError, v.Warnings = "", nil
	v.Server = store.Server{Name: v.Server.Name, About: v.Server.About, Transport: v.Server.Transport, Domain: v.Server.Domain, Disabled: v.Server.Disabled, Created: v.Server.Created, Revision: v.Server.Revision}
	v.Tools = slices.DeleteFunc(v.Tools, func(t api.ToolView) bool { return t.State != store.ToolAccepted })
	return v
}

// Get returns one server and its tools.
func (s *Servers) Get(ctx context.Context, by store.Caller, req api.ServerRequest) (api.ServerView, error) {
	server, err := s.Find(ctx, by, req.Name)
	if err != nil {
		return api.ServerView{}, err
	}
	view, err := s.view(ctx, server)
	return forCaller(by, view), err
}

// view returns the whole view of a server.
func (s *Servers) view(ctx context.Context, server store.Server) (api.ServerView, error) {
	tools, err := s.Store.ListTools(ctx, server.Name)
	if err != nil {
		return api.ServerView{}, fmt.Errorf("listing tools of %s: %w", server.Name, err)
	}
	count := 0
	for _, t := range tools {
		if feature.IsTool(t.Name) {
			count++
		}
	}
	view := api.ServerView{Health: HealthOf(server, s.States(), catalog.ToolCounts{Tools: count}), Server: server}
	for _, t := range tools {
		view.Tools = append(view.Tools, toolView(t, server.Normal().Domain))
		switch t.State {
		case store.ToolAccepted:
		case store.ToolRefused:
			view.Refused++
			view.Warnings = append(view.Warnings, fmt.Sprintf("%s is refused: %s; only a change at its server can help", t.ID(), strings.Join(t.Findings, "; ")))
		default:
			view.Held++
			view.Warnings = append(view.Warnings, fmt.Sprintf("%s is held: %s; see nizectl servers trust %s", t.ID(), strings.Join(t.Findings, "; "), server.Name))
		}
	}
	return view, nil
}

// reread returns the view of a server as it is stored now.
func (s *Servers) reread(ctx context.Context, name string) (api.ServerView, error) {
	server, err := s.Store.GetServer(ctx, name)
	if err != nil {
		return api.ServerView{}, err
	}
	return s.view(ctx, server)
}

// Add registers a server. It connects first, and stores nothing if the server can't be
// reached, unless Force is set.
func (s *Servers) Add(ctx context.Context, by store.Caller, req api.AddServerRequest) (api.ServerView, error) {
	req.Server.Origin = store.Origin{} // only servers of the watched file have an origin
	return s.Register(ctx, by, req.Server, req.Force)
}

// Register validates a server, connects to it unless it is disabled, and stores it. If it
// can't be reached, it is stored only with force.
func (s *Servers) Register(ctx context.Context, by store.Caller, server store.Server, force bool) (none api.ServerView, err error) {
	if err := CheckServer(&server); err != nil {
		return none, err
	}
	if _, err := s.Store.GetServer(ctx, server.Name); err == nil {
		return none, fmt.Errorf("server %q %w; to change it: nizectl servers edit %s", server.Name, store.ErrExists, server.Name)
	}
	if err := s.CheckCredential(ctx, server); err != nil {
		return none, err
	}
	if err := s.resolveNames(ctx, by, &server); err != nil {
		return none, err
	}
	server.Created, server.Revision, server.URLFromDocument = s.Now(), 0, false
	if err := s.bindCredentials(ctx, by, server); err != nil {
		return none, err
	}
	var probeErr error
	needsLogin := false
	var notes []string // operations of an OpenAPI document that can't become tools, and values it needs
	if !server.Disabled && server.Transport != store.External {
		var probe *upstream.Probe
		probe, probeErr = s.Pool.Probe(ctx, server)
		// The server's own title applies if no other was given. It is copied once, so the
		// server can't change it later. Its instructions are for the models that use it and
		// never become its description.
		server.Title = cmp.Or(server.Title, probe.Title)
		if server.Transport == store.OpenAPI {
			if probeErr == nil {
				notes = probe.Warnings
				if probe.Wants != "" {
					notes = append(notes, probe.Wants)
				}
			}
			if server.URL == "" && probe.URL != "" {
				server.URL, server.URLFromDocument = probe.URL, true
			}
			if server.URL == "" {
				force = false // its URL is unknown
			}
		}
		if probe.NeedsLogin { // the server was reached; what is missing is a sign-in
			needsLogin, force = true, true
			server.Headers = WithLogin(server.Headers)
		}
	}
	if probeErr != nil && !force && server.Transport == store.OpenAPI && server.URL == "" {
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not added: %v", server.Name, probeErr)}
	}
	if probeErr != nil && !force {
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not added: %v; add it all the same with --force", server.Name, probeErr)}
	}
	if server, err = s.Store.PutServer(ctx, by, server, 0); err != nil {
		return none, fmt.Errorf("storing server %s: %w", server.Name, err)
	}
	_, syncErr := s.Pool.Sync(ctx, by, server.Name)
	if syncErr != nil && !force {
		if err := s.Store.DeleteServer(ctx, by, server.Name); err != nil {
			s.Log.Error("removing a server that could not be listed", "server", server.Name, "err", err)
		}
		_, _ = s.Pool.Sync(context.WithoutCancel(ctx), by, server.Name) // closes the sessions; the error was reported
		return none, &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not added: %v", server.Name, syncErr)}
	}
	if err := s.Gateway.Catalog.Refresh(ctx, server.Name); err != nil {
		return none, err
	}
	view, err := s.reread(ctx, server.Name)
	if err != nil {
		return none, err
	}
	view.Warnings = append(view.Warnings, notes...)
	switch {
	case needsLogin:
		view.Warnings = append(view.Warnings, "it needs a sign-in: nizectl servers login "+server.Name)
	case probeErr != nil:
		view.Unreachable = true
		view.Warnings = append(view.Warnings, "it could not be reached: "+probeErr.Error())
	}
	return view, nil
}

// WithLogin returns the headers of a server that is called with logins.
func WithLogin(headers map[string]store.Value) map[string]store.Value {
	with := map[string]store.Value{"Authorization": {SecretKey: store.LoginName}}
	maps.Copy(with, headers)
	return with
}

// resolveNames replaces the names of people in a record with their ids.
func (s *Servers) resolveNames(ctx context.Context, by store.Caller, server *store.Server) (err error) {
	if server.Visibility, err = s.Directory.Audience(ctx, by, server.Visibility); err != nil {
		return err
	}
	server.Approvers, err = s.Directory.Approvers(ctx, server.Approvers)
	return err
}

// bindCredentials binds credentials that were set before the server existed to its host, so
// that they are sent nowhere else.
func (s *Servers) bindCredentials(ctx context.Context, by store.Caller, server store.Server) error {
	host := HostOf(server)
	if host == "" {
		return nil
	}
	all, err := s.Store.ListCredentials(ctx)
	if err != nil {
		return fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range all {
		if c.Service != server.Name || c.Host != "" {
			continue
		}
		whole, err := s.Store.GetCredential(ctx, c.CredentialKey)
		if err != nil {
			return fmt.Errorf("reading credential %s: %w", c.Name, err)
		}
		whole.Host = host
		if err := s.Store.PutCredential(ctx, by, whole); err != nil {
			return fmt.Errorf("binding credential %s to %s: %w", c.Name, host, err)
		}
	}
	return nil
}

// Patch changes the fields of a server that a request sets.
func (s *Servers) Patch(ctx context.Context, by store.Caller, req api.PatchServerRequest) (none api.ServerView, err error) {
	server, err := s.Find(ctx, by, req.Name)
	if err != nil {
		return none, err
	}
	if req.Revision == 0 {
		req.Revision = server.Revision
	}
	api.Change(&server, req)
	switch {
	case req.URL != nil:
		server.URLFromDocument = false
	case req.Document != nil && server.URLFromDocument:
		server.URL = "" // another document may have another URL
	}
	if err := CheckServer(&server); err != nil {
		return none, err
	}
	if err := s.FindURL(ctx, &server); err != nil {
		return none, err
	}
	if err := s.CheckCredential(ctx, server); err != nil {
		return none, err
	}
	if err := s.resolveNames(ctx, by, &server); err != nil {
		return none, err
	}
	syncErr, err := s.Replace(ctx, by, server, req.Revision)
	if err != nil {
		return none, err
	}
	view, err := s.reread(ctx, req.Name)
	if err == nil && syncErr != nil {
		view.Warnings = append(view.Warnings, "the change is stored, but the server could not be listed: "+syncErr.Error())
	}
	return view, err
}

// FindURL reads the URL of an enabled OpenAPI server from its document if none was given.
func (s *Servers) FindURL(ctx context.Context, server *store.Server) error {
	if server.Transport != store.OpenAPI || server.URL != "" || server.Disabled {
		return nil
	}
	probe, err := s.Pool.Probe(ctx, *server)
	if err != nil {
		return &api.Error{Code: "unavailable", Message: fmt.Sprintf("server %s was not changed: %v", server.Name, err)}
	}
	server.URL, server.URLFromDocument = probe.URL, true
	return nil
}

// Replace stores a validated record if the stored one has the given revision, and lists the
// server's tools; syncErr is set if they could not be listed.
func (s *Servers) Replace(ctx context.Context, by store.Caller, server store.Server, revision uint64) (syncErr, err error) {
	if _, err := s.Store.PutServer(ctx, by, server, revision); err != nil {
		return nil, fmt.Errorf("storing server %s: %w", server.Name, err)
	}
	_, syncErr = s.Pool.Sync(ctx, by, server.Name)
	return syncErr, s.Gateway.Catalog.Refresh(ctx, server.Name)
}

// Remove removes a server and its tools.
func (s *Servers) Remove(ctx context.Context, by store.Caller, req api.ServerRequest) (none api.Empty, err error) {
	if _, err := s.Find(ctx, by, req.Name); err != nil {
		return none, err
	}
	if err := s.Store.DeleteServer(ctx, by, req.Name); err != nil {
		return none, fmt.Errorf("removing server %s: %w", req.Name, err)
	}
	if err := s.Gateway.Catalog.Refresh(ctx, req.Name); err != nil {
		return none, err
	}
	if _, err := s.Pool.Sync(ctx, by, req.Name); err != nil && !errors.Is(err, store.ErrNotFound) {
		return none, fmt.Errorf("closing server %s: %w", req.Name, err)
	}
	return none, nil
}
