package storetest

import (
	"slices"

	"nize/store"
)

func groups(e *env) {
	ctx := e.Context()
	a := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	b := must(e.EnsureUser(ctx, "local:2", "B", store.Member))(e)
	got := e.race(20, func(int) error {
		_, err := e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{a.ID}})
		return err
	})
	e.same(got, map[string]int{"ok": 1, "already exists": 19})
	g := must(e.EditGroup(ctx, ada, "ops", []string{b.ID, a.ID, b.ID}, nil))(e)
	both := []string{a.ID, b.ID}
	slices.Sort(both)
	if !slices.Equal(g.Members, both) || g.Created.IsZero() {
		e.Fatalf("members: %+v", g)
	}
	e.same(must(e.EditGroup(ctx, ada, "ops", nil, []string{a.ID, "nobody"}))(e).Members, []string{b.ID})
	e.same(must(e.GroupsOf(ctx, b.ID))(e), []string{"ops"})
	e.same(len(must(e.GroupsOf(ctx, a.ID))(e)), 0)
	for _, err := range []error{
		last(e.EditGroup(ctx, ada, "ops", []string{"nobody"}, nil)), last(e.EditGroup(ctx, ada, "none", nil, nil)),
		last(e.AddGroup(ctx, ada, store.Group{Name: "dev", Members: []string{"nobody"}})), e.DeleteGroup(ctx, ada, "dev"),
	} {
		e.is(err, store.ErrNotFound)
	}
	e.is(last(e.AddGroup(ctx, ada, store.Group{Name: "Not A Slug"})), store.ErrInvalid)
	s := must(e.PutServer(ctx, ada, store.Server{Name: "box", Visibility: []string{"group:ops"}}, 0))(e)
	e.is(e.DeleteGroup(ctx, ada, "ops"), store.ErrRefused)
	s.Visibility = nil
	must(e.PutServer(ctx, ada, s, s.Revision))(e)
	e.ok(e.PutAgent(ctx, ada, store.Agent{ID: "helper", Who: []string{"group:ops"}}))
	e.is(e.DeleteGroup(ctx, ada, "ops"), store.ErrRefused)
	e.ok(e.PutAgent(ctx, ada, store.Agent{ID: "helper"}))
	e.ok(e.PutModel(ctx, ada, store.ModelName{Name: "fast", Target: "a/b", Who: []string{"group:ops"}}))
	e.is(e.DeleteGroup(ctx, ada, "ops"), store.ErrRefused)
	e.ok(e.PutModel(ctx, ada, store.ModelName{Name: "fast", Target: "a/b"}))
	e.is(e.PutAgent(ctx, ada, store.Agent{ID: "helper", Who: []string{"group:none"}}), store.ErrNotFound)
	e.is(e.PutModel(ctx, ada, store.ModelName{Name: "fast", Target: "a/b", Who: []string{"group:none"}}), store.ErrNotFound)
	e.reopen()
	e.ok(e.DeleteGroup(ctx, ada, "ops"))
	e.same(len(must(e.GroupsOf(ctx, b.ID))(e)), 0)
	e.is(last(e.PutServer(ctx, ada, store.Server{Name: "hut", Visibility: []string{"group:ops"}}, 0)), store.ErrNotFound)
	e.same(len(must(e.ListGroups(ctx))(e)), 0)
	e.same(e.kinds(), "user.put user.put group.put group.put group.put server.put server.put agent.put agent.put model.put model.put group.delete")
}

func last[T any](_ T, err error) error { return err }
