package storetest

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/store"
)

func users(e *env) {
	ctx := e.Context()
	ids := make([]string, 30)
	got := e.race(30, func(i int) error {
		u, err := e.EnsureUser(ctx, "slack:T:U", "Ada", store.Member)
		ids[i] = u.ID
		return err
	})
	e.same(got, map[string]int{"ok": 30})
	for _, id := range ids {
		e.same(id, ids[0])
	}
	u := must(e.EnsureUser(ctx, "slack:T:U", "Other", store.Admin))(e)
	if u.Name != "Ada" || u.Role != store.Member || u.State != store.Active || u.Created.IsZero() || u.Identities[0] != "slack:T:U" {
		e.Fatalf("who is there already changes: %+v", u)
	}
	e.same(must(e.GetUser(ctx, u.ID))(e), u)
	_, err := e.GetUser(ctx, "nobody")
	e.is(err, store.ErrNotFound)
	_, err = e.EnsureUser(ctx, "discord:1", "x", "king")
	e.is(err, store.ErrInvalid)
	e.is(e.PutUser(ctx, ada, store.User{ID: "nobody", Role: store.Member, State: store.Active}), store.ErrNotFound)
	changed := u
	changed.Name, changed.Identities = "Ada L.", nil
	e.ok(e.PutUser(ctx, ada, changed))
	changed.Identities = u.Identities // those are not its business
	e.same(must(e.ListUsers(ctx))(e), []store.User{changed})
	e.same(must(e.FindUser(ctx, "slack:T:U"))(e), changed)
	e.is(last(e.FindUser(ctx, "slack:T:X")), store.ErrNotFound)
	e.is(last(e.FindUser(ctx, "")), store.ErrNotFound)
	e.ok(e.RecordPrivacyNotice(ctx, ada, u.ID))
	told := must(e.GetUser(ctx, u.ID))(e)
	if told.PrivacyNotice.IsZero() {
		e.Fatalf("told: %+v", told)
	}
	e.ok(e.RecordPrivacyNotice(ctx, ada, u.ID))
	e.ok(e.PutUser(ctx, ada, changed)) // nor is that
	e.same(must(e.GetUser(ctx, u.ID))(e), told)
	e.is(e.RecordPrivacyNotice(ctx, ada, "nobody"), store.ErrNotFound)
	e.same(e.kinds(), "user.put user.put user.told user.put")
}

func addUser(e *env) {
	ctx := e.Context()
	named := store.User{Name: "mia", Role: store.Admin, Identities: []string{"named:mia"}}
	ids := make([]string, 20)
	got := e.race(20, func(i int) error {
		u, err := e.AddUser(ctx, ada, named)
		ids[i] = u.ID
		return err
	})
	e.same(got, map[string]int{"ok": 1, "already exists": 19})
	u := must(e.EnsureUser(ctx, "named:mia", "x", store.Member))(e)
	if !slices.Contains(ids, u.ID) || u.Name != "mia" || u.Role != store.Admin || u.State != store.Active || u.Created.IsZero() {
		e.Fatalf("as stored: %+v", u)
	}
	for _, bad := range []store.User{{Name: "x", Role: "king", Identities: []string{"named:x"}}, {Name: "x", Role: store.Member}} {
		_, err := e.AddUser(ctx, ada, bad)
		e.is(err, store.ErrInvalid)
	}
	list := must(e.Events(ctx, store.EventQuery{Limit: 10}))(e)
	if len(list) != 2 || list[0].Kind != "member.put" || list[1].Kind != "user.put" || list[0].User != ada.User || list[1].User != ada.User {
		e.Fatalf("the trail has other events than of the user and its team: %+v", list)
	}
	// A person who was only named can't reach nize as an admin, and doesn't count as the last one.
	local := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	local.State = store.Disabled
	e.is(e.PutUser(ctx, ada, local), store.ErrRefused)
	u.Role = store.Member
	e.ok(e.PutUser(ctx, ada, u))
}

func lastAdmin(e *env) {
	ctx := e.Context()
	a := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	b := must(e.EnsureUser(ctx, "local:2", "B", store.Admin))(e)
	got := e.race(2, func(i int) error { // both at once must not both succeed
		u := []store.User{a, b}[i]
		u.Role = store.Member
		return e.PutUser(ctx, ada, u)
	})
	e.same(got, map[string]int{"ok": 1, "refused": 1})
	for _, u := range must(e.ListUsers(ctx))(e) {
		u.State = store.Disabled
		err := e.PutUser(ctx, ada, u)
		if u.Role == store.Admin {
			e.is(err, store.ErrRefused)
		} else {
			e.ok(err)
		}
	}
}

// secretOf makes the hash of a token that the tests know by its name.
func secretOf(name string) [32]byte { return sha256.Sum256([]byte("nize_" + name)) }

func (e *env) newToken(user, name, secret string) store.Token {
	return store.Token{Name: name, User: user, Prefix: "nize_ab", Hash: secretOf(secret), Audience: "mcp", Scopes: []string{"tools:*"}, Expires: time.Now().UTC().Add(time.Hour)}
}

func tokens(e *env) {
	ctx := e.Context()
	u := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	other := must(e.EnsureUser(ctx, "local:2", "B", store.Member))(e)
	tok := must(e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", "one"), false))(e)
	if tok.ID == "" || tok.Created.IsZero() {
		e.Fatalf("as stored: %+v", tok)
	}
	_, err := e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", "two"), false)
	e.is(err, store.ErrExists)
	_, err = e.CreateToken(ctx, ada, e.newToken(u.ID, "cli2", "one"), false)
	e.is(err, store.ErrExists) // one secret is one token
	_, err = e.CreateToken(ctx, ada, e.newToken("nobody", "cli", "two"), false)
	e.is(err, store.ErrNotFound)
	past := e.newToken(u.ID, "late", "late")
	past.Expires = time.Now().Add(-time.Hour)
	_, err = e.CreateToken(ctx, ada, past, false)
	e.is(err, store.ErrInvalid)
	must(e.CreateToken(ctx, ada, e.newToken(other.ID, "cli", "three"), false))(e)

	got, who, err := e.Authenticate(ctx, secretOf("one"))
	e.ok(err)
	e.same(got.ID, tok.ID)
	e.same(got.Hash, tok.Hash)
	e.same(who.ID, u.ID)
	_, _, err = e.Authenticate(ctx, secretOf("none"))
	e.is(err, store.ErrNotFound)
	e.ok(e.Flush(ctx))
	if list := must(e.ListTokens(ctx, u.ID))(e); len(list) != 1 || list[0].LastUsed.IsZero() {
		e.Fatalf("the use was not noted: %+v", list)
	}

	next := must(e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", "two"), true))(e)
	got, _, err = e.Authenticate(ctx, secretOf("one"))
	e.is(err, store.ErrRefused)
	e.same(got.ID, tok.ID) // for the log
	got, _, err = e.Authenticate(ctx, secretOf("two"))
	e.ok(err)
	e.same(got.ID, next.ID)

	e.same(len(must(e.ListTokens(ctx, ""))(e)), 3)
	e.same(must(e.RevokeTokens(ctx, ada, u.ID, "nothing"))(e), 0)
	e.same(must(e.RevokeTokens(ctx, ada, "", "cli"))(e), 2) // of everybody
	e.same(must(e.RevokeTokens(ctx, ada, u.ID, ""))(e), 0)
	_, _, err = e.Authenticate(ctx, secretOf("three"))
	e.is(err, store.ErrRefused)
	e.same(e.kinds(), "user.put user.put token.create token.create token.revoke token.create token.revoke token.revoke")
}

func tokenOverwriteRace(e *env) {
	ctx := e.Context()
	u := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	got := e.race(30, func(i int) error {
		_, err := e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", id("s", i)), i%2 == 0)
		return err
	})
	if got["ok"] < 15 || got["ok"]+got["already exists"] != 30 {
		e.Fatalf("outcomes: %v", got)
	}
	active := 0
	for _, t := range must(e.ListTokens(ctx, u.ID))(e) {
		if t.State(time.Now()) == "active" {
			active++
		}
	}
	e.same(active, 1)
}

func tokenRotate(e *env) {
	ctx := e.Context()
	u := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	old := must(e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", "one"), false))(e)
	next := store.TokenSecret{ID: store.NewID(time.Now()), Prefix: "nize_cd", Hash: secretOf("two")}
	got := must(e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "cli", Next: next, Grace: time.Hour}))(e)
	if got.ID != next.ID || got.Prefix != next.Prefix || got.Audience != old.Audience || len(got.Scopes) != 1 || got.Name != "cli" || !got.Revoked.IsZero() {
		e.Fatalf("rotated: %+v", got)
	}
	for _, s := range []string{"one", "two"} { // both, for the grace time
		_, _, err := e.Authenticate(ctx, secretOf(s))
		e.ok(err)
	}
	must(e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "cli", Next: store.TokenSecret{ID: store.NewID(time.Now()), Hash: secretOf("three")}}))(e)
	_, _, err := e.Authenticate(ctx, secretOf("two"))
	e.is(err, store.ErrRefused)
	_, err = e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "none", Next: store.TokenSecret{Hash: secretOf("four")}})
	e.is(err, store.ErrNotFound)
	_, err = e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "cli", Next: store.TokenSecret{Hash: secretOf("one")}})
	e.is(err, store.ErrExists)
	e.same(must(e.RevokeTokens(ctx, ada, u.ID, "cli"))(e), 2) // the one in its grace time too
	_, _, err = e.Authenticate(ctx, secretOf("one"))
	e.is(err, store.ErrRefused)
}

// tokenMakes: what a token makes ends with it at the latest, and is revoked with
// it, through any number of hands; a rotation hands it on.
func tokenMakes(e *env) {
	ctx := e.Context()
	u := must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	long := func(name string) store.Token {
		t := e.newToken(u.ID, name, name)
		t.Expires = time.Now().UTC().Add(10 * 365 * 24 * time.Hour)
		return t
	}
	by := func(t store.Token) store.Caller { who := ada; who.Token = t.ID; return who }
	maker := must(e.CreateToken(ctx, ada, e.newToken(u.ID, "maker", "maker"), false))(e)
	child := must(e.CreateToken(ctx, by(maker), long("child"), false))(e)
	grandchild := must(e.CreateToken(ctx, by(child), long("grandchild"), false))(e)
	if child.Maker != maker.ID || !child.Expires.Equal(maker.Expires) || !grandchild.Expires.Equal(maker.Expires) {
		e.Fatalf("made by one that ends at %v: %+v, %+v", maker.Expires, child, grandchild)
	}
	_, err := e.CreateToken(ctx, by(maker), long("maker"), true)
	e.is(err, store.ErrRefused) // it would end its maker
	_, err = e.CreateToken(ctx, by(store.Token{ID: "none"}), long("orphan"), false)
	e.is(err, store.ErrNotFound)

	rotated := must(e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "maker", Next: store.TokenSecret{ID: store.NewID(time.Now()), Hash: secretOf("next")}}))(e)
	_, _, err = e.Authenticate(ctx, secretOf("child"))
	e.ok(err)
	again := must(e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "child", Next: store.TokenSecret{ID: store.NewID(time.Now()), Hash: secretOf("child2")}}))(e)
	if again.Maker != rotated.ID || again.Expires.After(rotated.Expires) {
		e.Fatalf("rotated: %+v, its maker ends at %v", again, rotated.Expires)
	}
	e.same(must(e.RevokeTokens(ctx, ada, u.ID, "maker"))(e), 3)
	for _, s := range []string{"next", "child2", "grandchild"} {
		_, _, err = e.Authenticate(ctx, secretOf(s))
		e.is(err, store.ErrRefused)
	}
	_, err = e.CreateToken(ctx, by(rotated), long("late"), false)
	e.is(err, store.ErrRefused)
}

// offboarding: to disable somebody takes all at once.
func offboarding(e *env) {
	ctx := e.Context()
	must(e.EnsureUser(ctx, "local:1", "A", store.Admin))(e)
	u := must(e.EnsureUser(ctx, "local:2", "B", store.Member))(e)
	must(e.CreateToken(ctx, ada, e.newToken(u.ID, "cli", "one"), false))(e)
	e.giveGrants(u.ID)
	mine := store.CredentialKey{Scope: "user", Owner: u.ID, Service: "box", Name: "T"}
	shared := store.CredentialKey{Scope: "system", Service: "box", Name: "T"}
	for _, k := range []store.CredentialKey{mine, shared} {
		e.ok(e.PutCredential(ctx, ada, store.Credential{CredentialKey: k, Secret: store.NewSecret("x")}))
	}
	waits, runs, others := newCall(store.Pending), newCall(store.Running), newCall(store.Pending)
	waits.By, runs.By = u.ID, u.ID
	for _, c := range []store.Call{waits, runs, others} {
		e.ok(e.Begin(ctx, ada, c))
	}
	u.State = store.Disabled
	e.ok(e.PutUser(ctx, ada, u))
	_, _, err := e.Authenticate(ctx, secretOf("one"))
	e.is(err, store.ErrRefused)
	e.grantsLeft()
	_, err = e.GetCredential(ctx, mine)
	e.is(err, store.ErrNotFound)
	must(e.GetCredential(ctx, shared))(e)
	e.same(must(e.GetCall(ctx, waits.ID))(e).State, store.Cancelled)
	e.same(must(e.GetCall(ctx, runs.ID))(e).State, store.Running) // nobody can take that back
	e.same(must(e.GetCall(ctx, others.ID))(e).State, store.Pending)
}

// giveGrants makes standing answers of each kind of a user.
func (e *env) giveGrants(user string) {
	e.Helper()
	for _, g := range []store.Grant{
		{ID: "g"}, {ID: "g-deny", Deny: true}, {ID: "g-room", Scope: store.ForChannel, Channel: "slack:T1:C1"}, {ID: "g-all", Scope: store.ForEveryone},
		{ID: "g-deny-room", Deny: true, Scope: store.ForChannel, Channel: "slack:T1:C1"}, {ID: "g-deny-all", Deny: true, Scope: store.ForEveryone},
	} {
		g.User, g.Tool = user, "box:x"
		e.ok(e.PutGrant(e.Context(), ada, g))
	}
}

// grantsLeft checks that of those only what is denied to others is left: nobody
// may do more since somebody is gone.
func (e *env) grantsLeft() {
	e.Helper()
	var ids []string
	for _, g := range must(e.ListGrants(e.Context(), ""))(e) {
		ids = append(ids, g.ID)
	}
	slices.Sort(ids)
	e.same(ids, []string{"g-deny-all", "g-deny-room"})
}

// tokenQuotas: a person has so many active tokens, everybody together so many in
// all, and what somebody made and revoked is kept within bounds.
func tokenQuotas(e *env) {
	ctx := e.Context()
	u := must(e.EnsureUser(ctx, "slack:T:U", "Uma", store.Member))(e)
	v := must(e.EnsureUser(ctx, "slack:T:V", "Vic", store.Member))(e)
	q := store.Quota{Each: 3, All: 8, Limit: "limits.user.tokens", LimitAll: "limits.tokens"}
	n := 0
	create := func(user, name string) error {
		n++
		_, err := e.CreateTokenWithin(ctx, ada, e.newToken(user, name, "q"+strconv.Itoa(n)), true, q)
		return err
	}
	refused := func(err error, setting string) {
		e.Helper()
		e.is(err, store.ErrRefused)
		if err != nil && !strings.Contains(err.Error(), setting) {
			e.Errorf("the refusal names no setting: %v", err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		e.ok(create(u.ID, name))
	}
	refused(create(u.ID, "d"), "limits.user.tokens")
	for range 20 { // in place of another one it is no more
		e.ok(create(u.ID, "c"))
	}
	if list := must(e.ListTokens(ctx, u.ID))(e); len(list) > 7 {
		e.Errorf("%d tokens are kept of one who may have 3", len(list))
	}
	next := func(id string) store.TokenSecret { return store.TokenSecret{ID: id, Hash: secretOf(id)} }
	_, err := e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "a", Next: next("r1"), Grace: time.Hour, Quota: q})
	refused(err, "limits.user.tokens") // the old one would go on
	must(e.RotateToken(ctx, ada, store.Rotation{User: u.ID, Name: "a", Next: next("r2"), Quota: q}))(e)
	e.ok(create(v.ID, "a")) // another person's use is not theirs
	must(e.CreateToken(ctx, ada, e.newToken(u.ID, "browser:1", "b1"), false))(e)
	for _, name := range []string{"b", "c"} {
		if err = create(v.ID, name); err != nil {
			break
		}
	}
	refused(err, "limits.tokens")
}
