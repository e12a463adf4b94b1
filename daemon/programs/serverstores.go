package programs

import (
	"context"
	"errors"
	"net/url"

	"nize/store"
)

// The stores that the pool of sessions uses, backed by this package's servers. They are
// read-only for the pool: a session that ends must not bring a server back.

var errReadOnly = errors.New("temporary servers can only be created by requests")

// servers are the records of open servers.
type servers struct{ p *ServerPool }

func (s servers) GetServer(_ context.Context, name string) (store.Server, error) {
	if one := s.p.get(name); one != nil {
		return one.record, nil
	}
	return store.Server{}, store.ErrNotFound
}

func (s servers) ListServers(context.Context) ([]store.Server, error) { return nil, nil }

func (s servers) PutServer(context.Context, store.Caller, store.Server, uint64) (store.Server, error) {
	return store.Server{}, errReadOnly
}

func (s servers) DeleteServer(context.Context, store.Caller, string) error { return errReadOnly }

// tools are the tools that they list.
type tools struct{ p *ServerPool }

func (t tools) ListTools(_ context.Context, name string) ([]store.Tool, error) {
	s := t.p.get(name)
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[:len(s.tools):len(s.tools)], nil
}

func (t tools) GetTool(_ context.Context, id string) (store.Tool, error) {
	name, _, _ := store.SplitToolID(id)
	if s := t.p.get(name); s != nil {
		if one, ok := s.tool(id); ok {
			return one.Tool, nil
		}
	}
	return store.Tool{}, store.ErrNotFound
}

// PutTools takes over a server's tools, and stores them before any call is made.
func (t tools) PutTools(ctx context.Context, _ store.Caller, name string, list []store.Tool) (diff store.ToolDiff, err error) {
	s := t.p.get(name)
	if s == nil {
		return diff, store.ErrNotFound
	}
	s.setTools(list)
	return diff, s.save(ctx)
}

func (t tools) AcceptTool(context.Context, store.Caller, string, string) error { return errReadOnly }

// credentials are the values of headers, by header name.
type credentials struct{ p *ServerPool }

func (c credentials) GetCredential(ctx context.Context, key store.CredentialKey) (none store.Credential, err error) {
	s := c.p.get(key.Service)
	if s == nil || key.Scope != "system" {
		return none, store.ErrNotFound
	}
	h, ok := s.given.Headers[key.Name]
	if !ok {
		return none, store.ErrNotFound
	}
	if h.SecretKey == "" {
		u, err := url.Parse(s.given.URL)
		if err != nil {
			return none, err
		}
		return store.Credential{CredentialKey: key, Host: u.Host, Secret: h.Text}, nil
	}
	held, err := c.p.opt.Credentials.GetCredential(ctx, s.given.CredentialKey(s.project, h))
	held.CredentialKey = key
	return held, err
}

// PutCredential binds a project's credential to the first host that it was sent to.
func (c credentials) PutCredential(ctx context.Context, by store.Caller, bound store.Credential) error {
	s := c.p.get(bound.Service)
	if s == nil {
		return store.ErrNotFound
	}
	bound.CredentialKey = s.given.CredentialKey(s.project, s.given.Headers[bound.Name])
	return c.p.opt.Credentials.PutCredential(ctx, by, bound)
}

func (c credentials) ListCredentials(context.Context) ([]store.Credential, error) { return nil, nil }

func (c credentials) DeleteCredential(context.Context, store.Caller, store.CredentialKey) error {
	return errReadOnly
}

var (
	_ store.Servers     = servers{}
	_ store.Tools       = tools{}
	_ store.Credentials = credentials{}
)
