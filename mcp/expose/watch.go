package expose

import (
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// The lists whose changes a client is told of.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
)

// Lists are digests of the lists that one caller sees, by the notice of a change.
type Lists map[string][32]byte

// Watch knows which sessions want to be told that a list of theirs changed. The
// SDK tells all of its sessions; Watch says to which it is true. Its zero value
// is ready and safe for concurrent use.
type Watch struct {
	mu       sync.Mutex
	sessions map[*sdk.ServerSession]*watched
}

type watched struct {
	by    store.Caller
	shows bool // views
	lists Lists
	due   []string // notices that are on their way to it
}

// Begin watches the lists of a session, as they are now; shows says that its client
// shows views.
func (w *Watch) Begin(s *sdk.ServerSession, by store.Caller, shows bool, lists Lists) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions == nil {
		w.sessions = map[*sdk.ServerSession]*watched{}
	}
	w.sessions[s] = &watched{by: by, shows: shows, lists: lists}
}

// End forgets a session.
func (w *Watch) End(s *sdk.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, s)
}

// Compare looks at the lists of every session again, forgets those that are not
// live any more, and returns the notices that somebody is due. look is asked once
// for all sessions of a token that show views, or don't; where it fails the session is told of everything.
func (w *Watch) Compare(live iter.Seq[*sdk.ServerSession], look func(by store.Caller, shows bool) (Lists, error)) []string {
	type owner struct {
		user, token string
		shows       bool
	}
	kept := map[*sdk.ServerSession]*watched{}
	w.mu.Lock()
	for s := range live {
		if k := w.sessions[s]; k != nil {
			kept[s] = k
		}
	}
	w.sessions = kept
	callers := map[owner]store.Caller{}
	for _, k := range kept {
		callers[owner{k.by.User, k.by.Token, k.shows}] = k.by
	}
	w.mu.Unlock()

	now := map[owner]Lists{}
	for o, by := range callers {
		if lists, err := look(by, o.shows); err == nil {
			now[o] = lists
		}
	}

	var notices []string
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.sessions {
		lists, ok := now[owner{k.by.User, k.by.Token, k.shows}]
		if !ok {
			lists = Lists{}
		}
		for notice, was := range k.lists {
			if lists[notice] != was && !slices.Contains(k.due, notice) {
				k.due = append(k.due, notice)
			}
		}
		if ok {
			k.lists = lists
		}
		for _, n := range k.due {
			if !slices.Contains(notices, n) {
				notices = append(notices, n)
			}
		}
	}
	return notices
}

// TakeDue says whether a notice that goes to a session is true of it. It is so
// once for each change.
func (w *Watch) TakeDue(s *sdk.ServerSession, notice string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.sessions[s]
	if k == nil {
		return false
	}
	i := slices.Index(k.due, notice)
	if i >= 0 {
		k.due = slices.Delete(k.due, i, i+1)
	}
	return i >= 0
}
