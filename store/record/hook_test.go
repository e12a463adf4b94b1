package record_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nize/store"
	"nize/store/database/databasetest"
	"nize/store/hooks"
)

// TestPersonalHooks: people's hooks have names of their own and a quota, keep a few
// revisions while they are there and none after that.
func TestPersonalHooks(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
	ann := store.Caller{User: "ANN", Name: "ann", Role: store.Member}
	put := func(owner, name string, revision uint64) (hooks.Hook, error) {
		h := hooks.Hook{Name: name, Owner: owner, Type: hooks.Redaction, Scope: hooks.User, ScopeID: owner, Revision: revision, Enabled: true}
		return db.PutHook(ctx, ann, h, 2)
	}
	must := func(h hooks.Hook, err error) hooks.Hook {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, owner := range []string{"", "ANN", "BEN"} {
		must(put(owner, "hush", 0))
		if _, err := put(owner, "hush", 0); !errors.Is(err, store.ErrExists) {
			t.Errorf("a second hush of %q: %v", owner, err)
		}
	}
	h := must(put("ANN", "short", 0))
	if _, err := put("ANN", "third", 0); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "limits.user.hooks") {
		t.Errorf("beyond the quota: %v", err)
	}
	must(put("", "third", 0)) // admins have none
	must(put("", "fourth", 0))
	for range hooks.MaxRevisions + 3 {
		h = must(put("ANN", "short", h.Revision))
	}
	if _, err := put("ANN", "short", h.Revision-1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an old revision: %v", err)
	}
	kept := func() (n int) {
		for r := uint64(1); r <= h.Revision; r++ {
			switch _, err := db.HookRevision(ctx, h.ID, r); {
			case err == nil:
				n++
			case !errors.Is(err, store.ErrNotFound):
				t.Fatal(err)
			}
		}
		return n
	}
	if n := kept(); n != hooks.MaxRevisions {
		t.Errorf("%d revisions are kept, want %d", n, hooks.MaxRevisions)
	}
	if err := db.DeleteHook(ctx, ann, "ANN", "short"); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d revisions are kept of a removed one", n)
	}
	if err := db.DeleteHook(ctx, ann, "ANN", "third"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removing an admin's as one's own: %v", err)
	}
	must(put("ANN", "third", 0))
}

// TestHooksMoveWithTheirUser: if two people turn out to be one, what stood around the
// calls of one stands around those of both, and an admin's hook can't be shed by that.
func TestHooksMoveWithTheirUser(t *testing.T) {
	db, ctx := databasetest.Open(t), t.Context()
	user := func(identity, name string, role store.Role) (store.User, store.Caller) {
		t.Helper()
		u, err := db.EnsureUser(ctx, identity, name, role)
		if err != nil {
			t.Fatal(err)
		}
		return u, store.Caller{User: u.ID, Name: name, Role: role, Surface: store.OnCLI, Identity: identity}
	}
	_, root := user("local:0", "root", store.Admin)
	a, asA := user("local:1", "a", store.Member)
	b, asB := user("slack:T1:U1", "b", store.Member)
	for _, h := range []hooks.Hook{
		{Name: "limit", Type: hooks.Webhook, Scope: hooks.User, ScopeID: b.ID, Secret: store.NewSecret("whsec_" + strings.Repeat("A", 32))},
		{Name: "box", Type: hooks.Access, Scope: hooks.UserServer, ScopeID: b.ID + "/box"},
		{Name: "others", Type: hooks.Access, Scope: hooks.User, ScopeID: a.ID},
		{Name: "mine", Owner: b.ID, Type: hooks.Redaction, Scope: hooks.User, ScopeID: b.ID},
		{Name: "mine", Owner: a.ID, Type: hooks.Redaction, Scope: hooks.UserServer, ScopeID: a.ID + "/box"},
		{Name: "short", Owner: b.ID, Type: hooks.Truncation, Scope: hooks.UserServer, ScopeID: b.ID + "/box"},
	} {
		if _, err := db.PutHook(ctx, root, h, 10); err != nil {
			t.Fatal(err)
		}
	}
	code, hash := store.NewCode()
	if _, err := db.PutLink(ctx, asB, b.ID, hash); err != nil {
		t.Fatal(err)
	}
	typed, err := store.ReadCode(code.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	j, err := db.Join(ctx, asA, typed, "")
	if err != nil {
		t.Fatal(err)
	}
	into := j.User.ID
	shown := func() (list []string) {
		all, err := db.ListHooks(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range all {
			if _, err := db.HookRevision(ctx, h.ID, h.Revision); err != nil {
				t.Errorf("revision %d of %s: %v", h.Revision, h.Name, err)
			}
			if h.Signed != (h.Secret.Reveal() != "") {
				t.Errorf("the secret of %s is lost", h.Name)
			}
			list = append(list, strings.ReplaceAll(fmt.Sprint(h.Owner, " ", h.Name, " ", h.ScopeID), into, "SAME"))
		}
		slices.Sort(list)
		return list
	}
	want := []string{" box SAME/box", " limit SAME", " others SAME", "SAME mine SAME/box", "SAME mine-2 SAME", "SAME short SAME/box"}
	if j.Absorbed.ID == a.ID {
		want = []string{" box SAME/box", " limit SAME", " others SAME", "SAME mine SAME", "SAME mine-2 SAME/box", "SAME short SAME/box"}
	}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("after the join:\n%q, want\n%q", got, want)
	}
	if err := db.RemoveUser(ctx, root, into); err != nil {
		t.Fatal(err)
	}
	if got := shown(); len(got) != 3 {
		t.Errorf("after the removal: %q", got)
	}
}
