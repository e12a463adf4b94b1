package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"nize/store"
	"nize/store/credential"
	"nize/store/identity"
)

// RunsAs describes the credentials that a call uses.
type RunsAs struct {
	Words    store.Text
	personal bool // it includes one of the requester's own
	shared   bool // it includes one of another holder
}

// RunsAs returns the credentials that a call uses, and whether they are shared. Calls that
// use a shared credential need an admin's approval, unless the caller has credentials of
// their own. It returns a CallError if the server's auth requires a credential that isn't
// set.
func (p *Engine) RunsAs(ctx context.Context, by store.Caller, t *Tool) (RunsAs, error) {
	if t.runsAs != (store.Text{}) {
		return RunsAs{Words: t.runsAs}, nil
	}
	if t.credential != "" {
		return p.runsAsDeclared(ctx, by, t.credential)
	}
	names := t.secrets()
	if len(names) == 0 {
		return RunsAs{Words: store.Textf("no credential")}, nil
	}
	memberships, err := p.store.ListMembers(ctx, "", by.User)
	if err != nil {
		return RunsAs{}, fmt.Errorf("reading teams: %w", err)
	}
	var teams []string
	for _, m := range memberships {
		teams = append(teams, m.Team)
	}
	list := strings.Join(names, ", ")
	for _, h := range t.Record.Auth.Holders(by.User, teams) {
		if h.Scope == "system" {
			break
		}
		has, err := p.countCredentials(ctx, h, t.Server, names)
		switch {
		case err != nil:
			return RunsAs{}, err
		case h.Scope == "user" && (has == len(names) || has > 0 && t.Record.Auth == store.AuthUser):
			return RunsAs{Words: store.Textf("the requester's own credential %s", list), personal: true}, nil
		case h.Scope == "user" && has > 0:
			return RunsAs{Words: store.Textf("the requester's own and shared credentials %s", list), personal: true, shared: true}, nil
		case has > 0:
			return RunsAs{Words: store.Textf("the credential %s of the team %s", list, h.Owner), shared: true}, nil
		}
	}
	if t.Record.Enterprise {
		return p.runsAsCompany(ctx, by)
	}
	if t.Record.Auth != store.AuthAny {
		return RunsAs{}, store.NotConnected(t.Server, names[0], t.Record.Auth)
	}
	return RunsAs{Words: store.Textf("the shared credential %s", list), shared: true}, nil
}

// runsAsCompany is RunsAs for a tool of a server at which the company's identity provider
// signs people in.
func (p *Engine) runsAsCompany(ctx context.Context, by store.Caller) (RunsAs, error) {
	u, err := p.store.GetUser(ctx, by.User)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // a program has no account
		return RunsAs{}, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	if !slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, identity.Prefix) }) {
		return RunsAs{}, &store.CallError{Code: store.CodeUnavailable, Message: identity.NotSignedIn}
	}
	return RunsAs{Words: store.Textf("the requester's own company account"), personal: true}, nil
}

// runsAsDeclared is RunsAs for a tool with a declared credential.
func (p *Engine) runsAsDeclared(ctx context.Context, by store.Caller, id string) (RunsAs, error) {
	if p.credentials == nil {
		return RunsAs{}, credential.NotDeclared(id)
	}
	_, v, err := p.credentials.Find(ctx, by.User, id)
	switch {
	case err != nil:
		return RunsAs{}, err
	case v.Holder.Scope == "user":
		return RunsAs{Words: store.Textf("the requester's own credential %s", id), personal: true}, nil
	case v.Holder.Scope == "project":
		return RunsAs{Words: store.Textf("the project's credential %s", id)}, nil
	}
	return RunsAs{Words: store.Textf("the credential %s of the team %s", id, v.Holder.Owner), shared: true}, nil
}

// wouldRunAs is RunsAs for a tool that is only described, not called: a missing credential
// is described in words.
func (p *Engine) wouldRunAs(ctx context.Context, by store.Caller, t *Tool) (RunsAs, error) {
	as, err := p.RunsAs(ctx, by, t)
	var lacks *store.CallError
	if errors.As(err, &lacks) {
		return RunsAs{Words: store.Textf("nobody: %s", lacks.Message)}, nil
	}
	return as, err
}

// Private reports whether a tool's results are only for the requester, because it uses one
// of their own credentials or its server is marked private.
func (t *Tool) Private(as RunsAs) bool { return as.personal || t.Record.Private }

// ReturnsPrivately reports whether the tool's results for the caller would be private.
func (p *Engine) ReturnsPrivately(ctx context.Context, by store.Caller, id string) (bool, error) {
	v, err := p.View(ctx, by, store.Scope{Tools: []string{id}})
	if err != nil {
		return false, err
	}
	t, err := p.Find(v, id)
	if err != nil {
		return false, err
	}
	as, err := p.wouldRunAs(ctx, by, t)
	return err == nil && t.Private(as), err
}

// countCredentials returns how many of the credentials a holder has.
func (p *Engine) countCredentials(ctx context.Context, h store.Holder, server string, names []string) (int, error) {
	n := 0
	for _, name := range names {
		_, err := p.store.GetCredential(ctx, h.Key(server, name))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return 0, fmt.Errorf("reading credential %s of %s: %w", name, server, err)
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}
