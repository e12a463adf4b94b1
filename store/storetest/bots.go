package storetest

import (
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"nize/store"
)

func botAccounts(e *env) {
	ctx := e.Context()
	_, err := e.GetBot(ctx, store.OnSlack)
	e.is(err, store.ErrNotFound)
	b := store.Bot{Surface: store.OnSlack, Enabled: true, Mode: "socket", Team: "T1", TeamName: "Acme", User: "U0", Connected: time.Now().UTC(),
		Tokens: map[string]store.Secret{"bot_token": store.NewSecret("xoxb-1"), "app_token": store.NewSecret("xapp-1")}}
	e.is(e.PutBot(ctx, ada, store.Bot{Surface: store.OnSlack, Team: "T1", User: "U0"}), store.ErrInvalid)
	e.ok(e.PutBot(ctx, ada, b))
	e.reopen()
	got := must(e.GetBot(ctx, store.OnSlack))(e)
	e.same(got.Tokens["app_token"].Reveal(), "xapp-1")
	got.Enabled, got.Tokens = false, nil
	e.ok(e.PutBot(ctx, ada, got))
	again := must(e.GetBot(ctx, store.OnSlack))(e)
	e.same(again.Enabled, false)
	e.same(again.Tokens["bot_token"].Reveal(), "xoxb-1")
	e.ok(e.DeleteBot(ctx, ada, store.OnSlack))
	e.is(e.DeleteBot(ctx, ada, store.OnSlack), store.ErrNotFound)
	_, err = e.GetBot(ctx, store.OnSlack)
	e.is(err, store.ErrNotFound)
}

func claims(e *env) {
	ctx := e.Context()
	later := time.Now().Add(time.Hour)
	who := store.Claimer{Identity: "slack:T1:U7", Name: "zoe"}
	first, second := sha256.Sum256([]byte("first")), sha256.Sum256([]byte("second"))
	_, err := e.Claim(ctx, store.OnSlack, first, who)
	e.is(err, store.ErrNotFound)
	e.ok(e.PutClaim(ctx, ada, store.OnSlack, first, later))
	e.ok(e.PutClaim(ctx, ada, store.OnSlack, second, later))
	_, err = e.Claim(ctx, store.OnSlack, first, who)
	e.is(err, store.ErrNotFound) // the newer one took its place
	_, err = e.Claim(ctx, store.OnDiscord, second, who)
	e.is(err, store.ErrNotFound)
	e.ok(e.PutClaim(ctx, ada, store.OnDiscord, second, time.Now().Add(-time.Second)))
	_, err = e.Claim(ctx, store.OnDiscord, second, who)
	e.is(err, store.ErrExpired)

	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			u, err := e.Claim(ctx, store.OnSlack, second, who)
			switch {
			case err == nil && u.Role == store.Admin:
				won.Add(1)
			case !errors.Is(err, store.ErrNotFound):
				e.Errorf("claim: %+v, %v", u, err)
			}
		})
	}
	wg.Wait()
	e.same(won.Load(), int64(1))
	u := must(e.EnsureUser(ctx, who.Identity, "x", store.Member))(e)
	e.same(u.Role, store.Admin)

	other := must(e.EnsureUser(ctx, "slack:T1:U8", "yan", store.Member))(e)
	other.State = store.Disabled
	e.ok(e.PutUser(ctx, ada, other))
	e.ok(e.PutClaim(ctx, ada, store.OnSlack, first, later))
	_, err = e.Claim(ctx, store.OnSlack, first, store.Claimer{Identity: "slack:T1:U8"})
	e.is(err, store.ErrRefused)
	e.same(must(e.Claim(ctx, store.OnSlack, first, who))(e).ID, u.ID)
}

func places(e *env) {
	ctx := e.Context()
	at := store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: "17.1", Message: "17.2"}
	_, err := e.FindThread(ctx, at)
	e.is(err, store.ErrNotFound)
	var made atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			got, fresh, err := e.ThreadAt(ctx, ada, store.Thread{ID: id("p", i), User: "ada", Address: at})
			if err != nil || got.Address != at {
				e.Errorf("thread at %+v: %+v, %v", at, got, err)
			}
			if fresh {
				made.Add(1)
			}
		})
	}
	wg.Wait()
	e.same(made.Load(), int64(1))
	elsewhere := at
	elsewhere.Message = ""
	th := must(e.FindThread(ctx, elsewhere))(e)
	elsewhere.Team = "T2"
	_, err = e.FindThread(ctx, elsewhere)
	e.is(err, store.ErrNotFound)
	_, _, err = e.ThreadAt(ctx, ada, store.Thread{ID: "px", Address: store.Address{Surface: store.OnSlack, Channel: "C\x00", Thread: "1"}})
	e.is(err, store.ErrInvalid)

	edited := must(e.EditThread(ctx, ada, th.ID, func(t *store.Thread) { t.Muted, t.ID, t.Open, t.Address.Thread = true, "other", true, "18.0" }))(e)
	e.same([]any{edited.Muted, edited.ID, edited.Open, edited.Address}, []any{true, th.ID, false, at})
	_, err = e.EditThread(ctx, ada, "none", func(*store.Thread) {})
	e.is(err, store.ErrNotFound)

	_, err = e.GetPlace(ctx, th.ID, "m")
	e.is(err, store.ErrNotFound)
	e.ok(e.PutPlace(ctx, th.ID, "m", at))
	e.is(e.PutPlace(ctx, "none", "m", at), store.ErrNotFound)
	call := newCall(store.Pending)
	call.ID = "c-places"
	e.ok(e.Begin(ctx, ada, call))
	e.ok(e.PutPlace(ctx, "c-places", "copy/ada", at))
	e.same(must(e.ListPlaces(ctx, "c-places"))(e), map[string]store.Address{"copy/ada": at})
	e.same(len(must(e.ListPlaces(ctx, "none"))(e)), 0)
	e.ok(e.MovePlace(ctx, th.ID, "m", "draft", at))
	_, err = e.GetPlace(ctx, th.ID, "m")
	e.is(err, store.ErrNotFound)
	e.ok(e.MovePlace(ctx, th.ID, "draft", "", at))
	e.same(len(must(e.ListPlaces(ctx, th.ID))(e)), 0)
	e.is(e.MovePlace(ctx, "none", "draft", "m", at), store.ErrNotFound)
	e.ok(e.PutPlace(ctx, store.DoubtfulPlaces, "m", at))
	e.same(must(e.ListPlaces(ctx, store.DoubtfulPlaces))(e), map[string]store.Address{"m": at})
	e.ok(e.MovePlace(ctx, store.DoubtfulPlaces, "m", "", at))
	e.ok(e.PutPlace(ctx, th.ID, "m", at))
	e.reopen()
	e.same(must(e.GetPlace(ctx, th.ID, "m"))(e), at)
	e.same(must(e.FindThread(ctx, at))(e).ID, th.ID)

	if _, err := e.Prune(ctx, store.Retention{Conversations: time.Nanosecond}); err != nil {
		e.Fatal(err)
	}
	_, err = e.FindThread(ctx, at)
	e.is(err, store.ErrNotFound)
	_, err = e.GetPlace(ctx, th.ID, "m")
	e.is(err, store.ErrNotFound)
}

func channels(e *env) {
	ctx := e.Context()
	got := must(e.GetChannel(ctx, "slack:T1:C1"))(e)
	e.same(got, store.Channel{Place: "slack:T1:C1"})
	must(e.EditChannel(ctx, ada, "slack:T1:C1", func(c *store.Channel) { c.Mode, c.Place = store.ModeAll, "other" }))(e)
	must(e.EditChannel(ctx, ada, "slack:T1:C1", func(c *store.Channel) { c.Model = "fast" }))(e)
	_, err := e.EditChannel(ctx, ada, "slack:T1:C1", func(c *store.Channel) { c.Mode = "loud" })
	e.is(err, store.ErrInvalid)
	e.reopen()
	got = must(e.GetChannel(ctx, "slack:T1:C1"))(e)
	e.same(got, store.Channel{Place: "slack:T1:C1", Model: "fast", Mode: store.ModeAll})
	e.same(must(e.GetChannel(ctx, "slack:T1:C2"))(e).Mode, "")
}

// channelLists: an empty list of servers is not the same as none, a channel
// without settings goes, and whom a channel names is there.
func channelLists(e *env) {
	ctx := e.Context()
	edit := func(place string, f func(*store.Channel)) error {
		_, err := e.EditChannel(ctx, ada, place, f)
		return err
	}
	e.is(edit("slack:T1:C1", func(c *store.Channel) { c.Admins = []string{"user:nobody"} }), store.ErrNotFound)
	e.is(edit("slack:T1:C1", func(c *store.Channel) { c.Admins = []string{"group:ops"} }), store.ErrNotFound)
	e.is(edit("slack:T1:C1", func(c *store.Channel) { c.Admins = []string{"admins"} }), store.ErrInvalid)
	e.is(edit("slack:T1:C1", func(c *store.Channel) { c.Approvers = "user:nobody" }), store.ErrNotFound)
	e.is(edit("slack:T1:C1", func(c *store.Channel) { c.Approvers = "everyone" }), store.ErrInvalid)
	e.same(len(must(e.ListChannels(ctx))(e)), 0)

	ben := must(e.AddUser(ctx, ada, store.User{Name: "ben", Role: store.Member, Identities: []string{"slack:T1:UBEN"}}))(e)
	must(e.AddGroup(ctx, ada, store.Group{Name: "ops", Members: []string{ben.ID}}))(e)
	e.ok(edit("slack:T1:C2", func(c *store.Channel) { c.Servers = []string{} }))
	e.ok(edit("slack:T1:C1", func(c *store.Channel) {
		c.Servers, c.Approvers, c.Language = []string{"box"}, "2 of group:ops,user:"+store.Policy(ben.ID), "zh-Hans"
		c.Admins = []string{"group:ops", "user:" + ben.ID}
	}))
	e.is(e.DeleteGroup(ctx, ada, "ops"), store.ErrRefused)
	e.reopen()
	list := must(e.ListChannels(ctx))(e)
	e.same(len(list), 2)
	e.same(list[0].Servers, []string{"box"})
	e.same([]bool{list[0].AllowsServer("box"), list[0].AllowsServer("other"), list[1].Servers != nil, list[1].AllowsServer("box")}, []bool{true, false, true, false})

	must(e.PutServer(ctx, ada, store.Server{Name: "box", Command: "x"}, 0))(e)
	e.ok(e.DeleteServer(ctx, ada, "box"))
	narrowed := must(e.GetChannel(ctx, "slack:T1:C1"))(e)
	e.same([]bool{narrowed.Servers != nil, len(narrowed.Servers) == 0, narrowed.AllowsServer("box")}, []bool{true, true, false})

	// Who is gone administers nothing, and stays in the policy: one name less
	// might let others press.
	e.ok(e.RemoveUser(ctx, ada, ben.ID))
	got := must(e.GetChannel(ctx, "slack:T1:C1"))(e)
	e.same(got.Admins, []string{"group:ops"})
	e.same(got.Approvers, "2 of group:ops,user:"+store.Policy(ben.ID))
	e.ok(edit("slack:T1:C1", func(c *store.Channel) { c.Mode = store.ModeAll })) // in spite of that

	for _, place := range []string{"slack:T1:C1", "slack:T1:C2", "slack:T1:C3"} {
		e.ok(edit(place, func(c *store.Channel) { *c = store.Channel{} }))
	}
	e.same(len(must(e.ListChannels(ctx))(e)), 0)
	e.ok(e.DeleteGroup(ctx, ada, "ops"))
}
