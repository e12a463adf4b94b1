// Package hooks holds the words of the hooks that admins and people configure:
// what mcp/hook runs, what the database keeps and what the control API shows.
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

// The types of hooks.
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

// Types are all of them.
var Types = []string{Audit, Access, RateLimit, Sanitizer, Truncation, Redaction, Exec, Webhook}

// PersonalTypes are those that people may set for their own calls. The others run
// programs, reach services, or are about what admins decide.
var PersonalTypes = []string{RateLimit, Sanitizer, Truncation, Redaction}

// Scope says for whose calls a hook runs.
type Scope string

const (
	Global     Scope = "global"
	Server     Scope = "server"
	User       Scope = "user"
	UserServer Scope = "user_server"
)

// Scopes are all of them, in the order in which their hooks run before a call.
var Scopes = []Scope{Global, Server, User, UserServer}

// DefaultPriority is that of a hook for which none was given; lower ones run
// first.
const DefaultPriority = 100

// Hook is a configured hook.
type Hook struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`            // unique among those of its owner
	Owner    string          `json:"owner,omitempty"` // the user who set it for their own calls; empty: an admin's
	Type     string          `json:"hook_type"`
	Scope    Scope           `json:"scope"`
	ScopeID  string          `json:"scope_id,omitempty"` // a server, a user's id, or user/server
	Tool     string          `json:"tool,omitempty"`     // a pattern; a meta-tool is nize:NAME
	Config   json.RawMessage `json:"config"`
	Secret   store.Secret    `json:"-"`                // of a webhook; sealed at rest
	Signed   bool            `json:"signed,omitempty"` // there is one
	Enabled  bool            `json:"enabled"`
	Priority int             `json:"priority"`
	Revision uint64          `json:"revision"`
	Created  time.Time       `json:"created"`
	Updated  time.Time       `json:"updated"`
}

// Ref names this revision of the hook.
func (h Hook) Ref() store.HookRef {
	return store.HookRef{ID: h.ID, Revision: h.Revision, Name: h.Name, Personal: h.Owner != ""}
}

// Matches says whether the hook is for this user's use of that tool.
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

// Compare orders hooks as they run before a call: those of admins, then those of
// people; of each global, server, user, user and server, and within a scope by
// priority, then by name.
func Compare(a, b Hook) int {
	return cmp.Or(
		cmp.Compare(min(len(a.Owner), 1), min(len(b.Owner), 1)),
		cmp.Compare(slices.Index(Scopes, a.Scope), slices.Index(Scopes, b.Scope)),
		cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
}

// maxConfig bounds a hook's configuration; maxPersonal, that of a person's.
const (
	maxConfig   = 64 << 10
	maxPersonal = 8 << 10
)

// toolPattern is what MatchTool understands.
var toolPattern = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]+:[^*\s]*\*?)$`)

// Check says why the hook cannot be one; what its type makes of the
// configuration is mcp/hook's to say.
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

// checkPersonal says why the hook can't be one that a person sets. Its ScopeID is
// checked once it holds an id in place of a name.
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

// Store keeps hooks. Each change makes a new revision, and the older ones stay
// for the calls that began with them.
//
// A hook is named by its owner and its name; the owner of an admin's hook is "".
// Of a person's hook at most [MaxRevisions] revisions stay, and none once it was
// removed, so that nobody fills the disk by changing one.
type Store interface {
	// PutHook stores a hook of that owner and name. Revision 0 makes a new one and
	// is ErrExists if there is one; any other must be the stored hook's, or it is
	// ErrConflict. A new one of a person who has most already is ErrRefused. It
	// returns the hook as stored.
	PutHook(ctx context.Context, by store.Caller, h Hook, most int) (Hook, error)
	// GetHook opens the secret.
	GetHook(ctx context.Context, owner, name string) (Hook, error)
	// ListHooks returns all, with their secrets.
	ListHooks(ctx context.Context) ([]Hook, error)
	// HookRevision returns a hook as it was, also an admin's that was removed.
	HookRevision(ctx context.Context, id string, revision uint64) (Hook, error)
	DeleteHook(ctx context.Context, by store.Caller, owner, name string) error
}

// MaxRevisions is how many revisions are kept of a person's hook.
const MaxRevisions = 20
