package storetest

import (
	"slices"

	"nize/store"
)

// liveGroups: who is in a group of a platform is known by identity, and only
// what changed leaves an event.
func liveGroups(e *env) {
	ctx := e.Context()
	a := must(e.EnsureUser(ctx, "slack:T:A", "A", store.Member))(e)
	b := must(e.EnsureUser(ctx, "slack:T:B", "B", store.Member))(e)
	e.is(last(e.AddGroup(ctx, ada, store.Group{Name: "ops", Source: "slack:T:S1", Members: []string{a.ID}})), store.ErrInvalid)
	g := must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Source: "slack:T:S1", Handle: "ops"}))(e)
	if !g.Live() || g.Handle != "ops" || !g.Checked.IsZero() {
		e.Fatalf("made %+v", g)
	}
	e.same(len(must(e.GroupsOf(ctx, a.ID))(e)), 0)
	seen := must(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:A", "slack:T:NEW", "slack:T:A"}}))(e)
	if !slices.Equal(seen.Members, []string{a.ID}) || seen.Checked.IsZero() {
		e.Fatalf("seen %+v", seen)
	}
	e.same(must(e.GroupsOf(ctx, a.ID))(e), []string{"ops"})
	e.same(len(must(e.GroupsOf(ctx, b.ID))(e)), 0)
	e.same(len(must(e.GroupsOf(ctx, "nobody"))(e)), 0)

	e.same(must(e.GroupsAwaiting(ctx, "slack:T:NEW"))(e), []string{"ops"})
	e.same(len(must(e.GroupsAwaiting(ctx, "slack:T:B"))(e)), 0)
	e.same(len(must(e.GroupsAwaiting(ctx, ""))(e)), 0)

	// Somebody new is in it from the start, who is linked by each identity.
	fresh := must(e.EnsureUser(ctx, "slack:T:NEW", "New", store.Member))(e)
	e.same(must(e.GroupsOf(ctx, fresh.ID))(e), []string{"ops"})
	hash := secretOf("live")
	must(e.PutLink(ctx, ada, fresh.ID, hash))(e)
	must(e.Join(ctx, store.Caller{User: b.ID, Role: store.Member, Surface: store.OnSlack}, hash, ""))(e)
	e.same(must(e.GroupsOf(ctx, b.ID))(e), []string{"ops"})
	must(e.Unlink(ctx, ada, b.ID, "slack:T:NEW"))(e)
	e.same(len(must(e.GroupsOf(ctx, b.ID))(e)), 0)

	// A failed look leaves who is in it, and says why.
	before := must(e.Events(ctx, store.EventQuery{Limit: 1}))(e)
	failed := must(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1", Error: "no answer"}))(e)
	if failed.Error != "no answer" || !failed.Checked.Equal(seen.Checked) || len(failed.Members) != 1 {
		e.Fatalf("failed %+v", failed)
	}
	again := must(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:NEW", "slack:T:A"}}))(e)
	if again.Error != "" {
		e.Fatalf("again %+v", again)
	}
	e.same(must(e.Events(ctx, store.EventQuery{Limit: 1}))(e)[0].Seq, before[0].Seq)
	must(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1"}))(e)
	e.same(len(must(e.GroupsOf(ctx, a.ID))(e)), 0)
	e.same(must(e.Events(ctx, store.EventQuery{Limit: 1}))(e)[0].Kind, "group.members")

	e.is(last(e.EditGroup(ctx, ada, "ops", []string{a.ID}, nil)), store.ErrRefused)
	e.is(last(e.RecordGroupCheck(ctx, ada, "none", store.GroupCheck{})), store.ErrNotFound)
	must(e.AddGroup(ctx, ada, store.Group{Name: "list"}))(e)
	e.is(last(e.RecordGroupCheck(ctx, ada, "list", store.GroupCheck{})), store.ErrInvalid)
	e.is(last(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S2", Identities: []string{"slack:T:A"}})), store.ErrInvalid)
	e.is(last(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1", Identities: []string{""}})), store.ErrInvalid)

	e.ok(e.PutSetting(ctx, ada, "", "bots.access", "group:ops"))
	e.is(e.DeleteGroup(ctx, ada, "ops"), store.ErrRefused)
	e.ok(e.PutSetting(ctx, ada, "", "bots.access", ""))

	// Who leaves nize is in it still, as far as the platform says; and one that
	// is made again under that name has nobody in it.
	must(e.RecordGroupCheck(ctx, ada, "ops", store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:A"}}))(e)
	e.reopen()
	e.same(must(e.GroupsOf(ctx, a.ID))(e), []string{"ops"})
	e.ok(e.RemoveUser(ctx, ada, a.ID))
	e.same(len(must(e.ListGroups(ctx))(e)[1].Members), 0)
	e.ok(e.DeleteGroup(ctx, ada, "ops"))
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Source: "slack:T:S1"}))(e)
	back := must(e.EnsureUser(ctx, "slack:T:A", "A", store.Member))(e)
	e.same(len(must(e.GroupsOf(ctx, back.ID))(e)), 0)
}
