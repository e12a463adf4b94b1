package expose

import (
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

// The notifications about changed lists.
const (
	ToolsChanged     = "notifications/tools/list_changed"
	PromptsChanged   = "notifications/prompts/list_changed"
	ResourcesChanged = "notifications/resources/list_changed"
)

// Lists holds digests of the lists that one caller sees, by the notification of a change.
type Lists map[string][32]byte

// Watch tracks the sessions that want notifications about changes of their lists. The SDK
// notifies all of its sessions; Watch determines which of them are affected. Its zero value
// is ready for use and safe for concurrent use.
type Watch struct {
	mu       sync.Mutex
	sessions map[*sdk.ServerSession]*watched
}

type watched struct {
	by    store.Caller
	shows bool // its client shows views
	lists Lists
	due   []string // notifications that are due
}

// Begin starts watching a session with its current lists. shows reports whether its client
// shows views.
func (w *Watch) Begin(s *sdk.ServerSession, by store.Caller, shows bool, lists Lists) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions == nil {
		w.sessions = map[*sdk.ServerSession]*watched{}
	}
	w.sessions[s] = &watched{by: by, shows: shows, lists: lists}
}

// End stops watching a session.
func (w *Watch) End(s *sdk.ServerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, s)
}

// Compare compares the lists of every session again, forgets sessions that are no longer
// live, and returns the notifications that are due for any session. look is called once for
// all sessions of a token that show views, and once for the others; if it fails, the
// session gets all notifications.
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

// TakeDue reports whether a notification to a session is due. It returns true once per
// change.
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
