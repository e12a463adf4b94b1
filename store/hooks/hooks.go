// Package hooks defines the hooks that admins and users configure.
//
// daemon/hooks runs them, the database stores them and the control API shows them.
package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// Types of hooks.
const (
	Audit      = "audit"
	Access     = "access-control"
	RateLimit  = "rate-limit"
	Sanitizer  = "param-sanitizer"
	Truncation = "response-truncation"
	Redaction  = "secret-redaction"
	Exec       = "exec"
	Webhook    = "webhook"
)

// Types lists all types.
var Types = []string{Audit, Access, RateLimit, Sanitizer, Truncation, Redaction, Exec, Webhook}

// PersonalTypes are the types that users may set for their own calls. The others run
// programs, contact services, or concern decisions of admins.
var PersonalTypes = []string{RateLimit, Sanitizer, Truncation, Redaction}

// Scope selects whose calls a hook runs for.
type Scope string

const (
	Global     Scope = "global"
	Server     Scope = "server"
	User       Scope = "user"
	UserServer Scope = "user_server"
)

// Scopes lists all scopes, in the order in which their hooks run before a call.
var Scopes = []Scope{Global, Server, User, UserServer}

// DefaultPriority is the priority of a hook without one; lower ones run first.
const DefaultPriority = 100

// Hook is a configured hook.
type Hook struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`            // unique per owner
	Owner    string          `json:"owner,omitempty"` // the user who set it for their own calls; empty: an admin
	Type     string          `json:"hook_type"`
	Scope    Scope           `json:"scope"`
	ScopeID  string          `json:"scope_id,omitempty"` // a server, a user's id, or user/server
	Tool     string          `json:"tool,omitempty"`     // a pattern; a meta-tool is nize:NAME
	Config   json.RawMessage `json:"config"`
	Secret   store.Secret    `json:"-"`                // of a webhook; sealed at rest
	Signed   bool            `json:"signed,omitempty"` // it has a secret
	Enabled  bool            `json:"enabled"`
	Priority int             `json:"priority"`
	Revision uint64          `json:"revision"`
	Created  time.Time       `json:"created"`
	Updated  time.Time       `json:"updated"`
}

// Ref returns a reference to this revision of the hook.
func (h Hook) Ref() store.HookRef {
	return store.HookRef{ID: h.ID, Revision: h.Revision, Name: h.Name, Personal: h.Owner != ""}
}

// Matches reports whether the hook runs for this user's use of that tool.
func (h Hook) Matches(user, tool string) bool {
	server, _, _ := strings.Cut(tool, ":")
	switch h.Scope {
	case Server:
		if h.ScopeID != server {
			return false
		}
	case User:
		if h.ScopeID != user {
			return false
		}
	case UserServer:
		if h.ScopeID != user+"/"+server {
			return false
		}
	}
	return h.Tool == "" || store.MatchTool(h.Tool, tool)
}

// Compare orders hooks as they run before a call: those of admins, then those of users;
// within these by scope (global, server, user, user and server), then by priority, then by
// name.
func Compare(a, b Hook) int {
	return cmp.Or(
		cmp.Compare(min(len(a.Owner), 1), min(len(b.Owner), 1)),
		cmp.Compare(slices.Index(Scopes, a.Scope), slices.Index(Scopes, b.Scope)),
		cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
}

// maxConfig limits a hook's configuration, and maxPersonal that of a user's hook.
const (
	maxConfig   = 64 << 10
	maxPersonal = 8 << 10
)

// toolPattern matches the patterns that MatchTool understands.
var toolPattern = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]+:[^*\s]*\*?)$`)

// Check returns an error if the hook is invalid; daemon/hooks checks the configuration of its
// type.
func (h *Hook) Check() error {
	if err := store.CheckSlug(h.Name); err != nil {
		return store.Errorf("%w name of a hook “%s”: use 1 to 63 of `a-z`, `0-9` and `-`, not starting with `-`, and not `native`, `agent` or `nize`", store.ErrInvalid, h.Name)
	}
	h.Type = strings.ReplaceAll(h.Type, "_", "-")
	h.Scope = cmp.Or(h.Scope, Global)
	switch {
	case !slices.Contains(Types, h.Type):
		return store.Unknown("hook type", h.Type, Types)
	case !slices.Contains(Scopes, h.Scope):
		return fmt.Errorf("%w scope %q: want global, server, user or user_server", store.ErrInvalid, h.Scope)
	case h.Scope == Global && h.ScopeID != "":
		return fmt.Errorf("%w scope_id %q: the scope global has none", store.ErrInvalid, h.ScopeID)
	case h.Scope != Global && h.ScopeID == "":
		return fmt.Errorf("%w scope_id: the scope %s needs one", store.ErrInvalid, h.Scope)
	case h.Tool != "" && !toolPattern.MatchString(h.Tool):
		return fmt.Errorf("%w tool pattern %q: write server:tool, server:* or *; a meta-tool is nize:NAME", store.ErrInvalid, h.Tool)
	case h.Priority < -1_000_000 || h.Priority > 1_000_000:
		return fmt.Errorf("%w priority %d: want -1000000 to 1000000", store.ErrInvalid, h.Priority)
	case len(h.Config) > maxConfig:
		return fmt.Errorf("%w config: %d bytes, at most %d are kept", store.ErrInvalid, len(h.Config), maxConfig)
	}
	if h.Owner != "" {
		if err := h.checkPersonal(); err != nil {
			return err
		}
	}
	if len(h.Config) == 0 {
		h.Config = json.RawMessage("{}")
	}
	canonical, err := store.Canonical(h.Config)
	if err != nil || canonical[0] != '{' {
		return fmt.Errorf("%w config: want a JSON object", store.ErrInvalid)
	}
	h.Config = canonical
	return nil
}

// checkPersonal returns an error if a user may not set this hook. Its ScopeID is checked
// once it contains an id instead of a name.
func (h *Hook) checkPersonal() error {
	switch {
	case !slices.Contains(PersonalTypes, h.Type):
		return store.Mark(store.Errorf("only an admin may set a hook of type %s; your own may be of type %s", h.Type, strings.Join(PersonalTypes, ", ")), store.ErrRefused)
	case h.Scope != User && h.Scope != UserServer:
		return store.Mark(store.Errorf("only an admin may set a hook of scope %s; your own have the scope user or user_server", string(h.Scope)), store.ErrRefused)
	case len(h.Config) > maxPersonal:
		return store.Errorf("%w config: %d bytes, and a person's hook has at most %d", store.ErrInvalid, len(h.Config), maxPersonal)
	}
	return nil
}

// Store stores hooks. Each change creates a new revision, and older ones are kept for the
// calls that began with them.
//
// A hook is identified by its owner and its name; the owner of an admin's hook is "". Of a
// user's hook at most [MaxRevisions] revisions are kept, and none once it is removed, so
// that changing it repeatedly doesn't fill the disk.
type Store interface {
	// PutHook stores a hook of that owner and name. Revision 0 creates a new one and
	// returns ErrExists if there is one; any other must be the stored hook's, or PutHook
	// returns ErrConflict. It returns ErrRefused for a new hook of a user who already has
	// most of them. It returns the stored hook.
	PutHook(ctx context.Context, by store.Caller, h Hook, most int) (Hook, error)
	// GetHook returns a hook with its secret unsealed.
	GetHook(ctx context.Context, owner, name string) (Hook, error)
	// ListHooks returns all hooks, with their secrets.
	ListHooks(ctx context.Context) ([]Hook, error)
	// HookRevision returns an earlier revision of a hook, even of an admin's hook that was
	// removed.
	HookRevision(ctx context.Context, id string, revision uint64) (Hook, error)
	DeleteHook(ctx context.Context, by store.Caller, owner, name string) error
}

// MaxRevisions is how many revisions of a user's hook are kept.
const MaxRevisions = 20
