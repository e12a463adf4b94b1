package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nize/store"
)

func servers(e *env) {
	ctx := e.Context()
	s := store.Server{
		Name: "box", Transport: store.Stdio, Command: "/bin/box", Args: []string{"--x"},
		Env: map[string]store.Value{"TOKEN": {SecretKey: "T"}, "MODE": {Text: "<fast>"}}, Timeout: store.Duration(time.Minute),
	}
	got := must(e.PutServer(ctx, ada, s, 0))(e)
	if got.Revision == 0 || got.Created.IsZero() {
		e.Fatalf("as stored: %+v", got)
	}
	e.same(must(e.GetServer(ctx, "box"))(e), got)
	_, err := e.PutServer(ctx, ada, s, 0)
	e.is(err, store.ErrExists)
	_, err = e.PutServer(ctx, ada, s, got.Revision+1)
	e.is(err, store.ErrConflict)
	_, err = e.PutServer(ctx, ada, store.Server{Name: "gone"}, 1)
	e.is(err, store.ErrConflict)
	for _, name := range []string{"", "Box", "native", "a/b", "a\x00b", strings.Repeat("a", 64)} {
		_, err = e.PutServer(ctx, ada, store.Server{Name: name}, 0)
		e.is(err, store.ErrInvalid)
	}
	s.Disabled = true
	next := must(e.PutServer(ctx, ada, s, got.Revision))(e)
	if next.Revision <= got.Revision || !next.Created.Equal(got.Created) {
		e.Fatalf("changed: %+v, before: %+v", next, got)
	}
	must(e.PutServer(ctx, ada, store.Server{Name: "abc"}, 0))(e)
	list := must(e.ListServers(ctx))(e)
	e.same([]string{list[0].Name, list[1].Name}, []string{"abc", "box"})

	must(e.PutTools(ctx, ada, "box", []store.Tool{{Name: "t", Pin: "1"}}))(e)
	e.ok(e.DeleteServer(ctx, ada, "box"))
	e.is(e.DeleteServer(ctx, ada, "box"), store.ErrNotFound)
	_, err = e.GetServer(ctx, "box")
	e.is(err, store.ErrNotFound)
	e.same(len(must(e.ListTools(ctx, ""))(e)), 0)
	_, err = e.PutTools(ctx, ada, "box", nil)
	e.is(err, store.ErrNotFound) // a list that came in late makes nothing
	again := must(e.PutServer(ctx, ada, s, 0))(e)
	if again.Revision <= next.Revision {
		e.Fatal("a name that came back has an old revision")
	}
	e.same(e.kinds(), "server.put server.put server.put tools.put server.delete server.put")
}

func serversRace(e *env) {
	ctx := e.Context()
	got := e.race(20, func(i int) error {
		_, err := e.PutServer(ctx, ada, store.Server{Name: "box"}, 0)
		return err
	})
	e.same(got, map[string]int{"ok": 1, "already exists": 19})
	rev := must(e.GetServer(ctx, "box"))(e).Revision
	got = e.race(20, func(i int) error {
		_, err := e.PutServer(ctx, ada, store.Server{Name: "box", About: store.About{Description: id("d", i)}}, rev)
		return err
	})
	e.same(got, map[string]int{"ok": 1, "changed meanwhile": 19})
}

func tools(e *env) {
	ctx := e.Context()
	must(e.PutServer(ctx, ada, store.Server{Name: "box"}, 0))(e)
	must(e.PutServer(ctx, ada, store.Server{Name: "box-2"}, 0))(e)
	tool := func(name, pin string, state store.ToolState) store.Tool {
		return store.Tool{Name: name, Pin: pin, State: state, InputSchema: json.RawMessage(`{}`)}
	}
	diff := must(e.PutTools(ctx, ada, "box", []store.Tool{tool("b", "1", store.ToolAccepted), tool("a", "1", store.ToolQuarantined)}))(e)
	e.same(diff, store.ToolDiff{Added: []string{"box:b", "box:a"}, Held: []string{"box:a"}})
	must(e.PutTools(ctx, ada, "box-2", []store.Tool{tool("z", "1", store.ToolAccepted)}))(e)
	e.ok(e.AcceptTool(ctx, ada, "box:a", "1"))
	e.is(e.AcceptTool(ctx, ada, "box:a", "2"), store.ErrConflict)
	e.is(e.AcceptTool(ctx, ada, "box:x", "2"), store.ErrNotFound)
	got := must(e.GetTool(ctx, "box:a"))(e)
	e.same([]string{got.Accepted, string(got.State)}, []string{"1", "accepted"})

	// A new list keeps the accepted pin; what it does not say is removed.
	from, events := e.Last(), e.kinds()
	diff = must(e.PutTools(ctx, ada, "box", []store.Tool{tool("a", "2", store.ToolQuarantined), tool("c", "1", store.ToolRefused)}))(e)
	e.same(diff, store.ToolDiff{Added: []string{"box:c"}, Changed: []string{"box:a"}, Removed: []string{"box:b"}, Held: []string{"box:a", "box:c"}})
	e.same(must(e.GetTool(ctx, "box:a"))(e).Accepted, "1")
	e.same(len(e.changes(from)), 1)
	e.same(e.kinds(), events+" tools.put")
	e.is(e.AcceptTool(ctx, ada, "box:c", "1"), store.ErrRefused)

	// The same list again changes nothing and says nothing.
	from = e.Last()
	diff = must(e.PutTools(ctx, ada, "box", []store.Tool{tool("a", "2", store.ToolQuarantined), tool("c", "1", store.ToolRefused)}))(e)
	e.same(diff, store.ToolDiff{Held: []string{"box:a", "box:c"}})
	e.same(e.Last(), from)
	e.same(e.kinds(), events+" tools.put")

	_, err := e.PutTools(ctx, ada, "box", []store.Tool{tool("a", "2", ""), tool("a", "3", "")})
	e.is(err, store.ErrInvalid)
	var ids []string
	for _, t := range must(e.ListTools(ctx, ""))(e) {
		ids = append(ids, t.ID())
	}
	e.same(ids, []string{"box-2:z", "box:a", "box:c"})
	e.same(len(must(e.ListTools(ctx, "box"))(e)), 2) // not those of box-2
}

func toolsBytes(e *env) {
	ctx := e.Context()
	must(e.PutServer(ctx, ada, store.Server{Name: "box"}, 0))(e)
	yes := true
	tool := store.Tool{
		Server: "box", Name: "a:b.c/d", Title: "T", Description: "<b>", Pin: "1", Accepted: "1", State: store.ToolAccepted,
		InputSchema: json.RawMessage("{ \"type\" : \"object\",\n \"x\":\"<&>\" }"), OutputSchema: json.RawMessage(`{"n": 1.0}`), Meta: json.RawMessage(`{ }`),
		Annotations: store.Annotations{ReadOnly: &yes}, Findings: []string{"odd"},
	}
	must(e.PutTools(ctx, ada, "box", []store.Tool{tool}))(e)
	e.reopen()
	e.same(must(e.GetTool(ctx, "box:a:b.c/d"))(e), tool)
}

func credentials(e *env) {
	ctx := e.Context()
	k := store.CredentialKey{Scope: "user", Owner: "ada", Service: "box", Name: "TOKEN"}
	c := store.Credential{CredentialKey: k, Host: "example.com", Secret: store.NewSecret("s3cret"), Updated: time.Now().UTC()}
	e.ok(e.PutCredential(ctx, ada, c))
	e.same(must(e.GetCredential(ctx, k))(e), c)
	list := must(e.ListCredentials(ctx))(e)
	if len(list) != 1 || !list[0].Secret.IsZero() || list[0].CredentialKey != k {
		e.Fatalf("listed: %+v", list)
	}
	for _, bad := range []store.CredentialKey{{}, {Scope: "user", Service: "box", Name: "x"}, {Scope: "world", Owner: "o", Service: "s", Name: "n"}, {Scope: "system", Service: "a\x00b", Name: "n"}} {
		e.is(e.PutCredential(ctx, ada, store.Credential{CredentialKey: bad}), store.ErrInvalid)
	}
	_, err := e.GetCredential(ctx, store.CredentialKey{Scope: "system", Service: "box", Name: "TOKEN"})
	e.is(err, store.ErrNotFound)
	e.reopen()
	e.same(must(e.GetCredential(ctx, k))(e).Secret.Reveal(), "s3cret")
	e.ok(e.DeleteCredential(ctx, ada, k))
	e.is(e.DeleteCredential(ctx, ada, k), store.ErrNotFound)
	for _, ev := range must(e.Events(ctx, store.EventQuery{}))(e) {
		if strings.Contains(string(ev.Data), "s3cret") {
			e.Fatalf("the trail tells it: %s", ev.Data)
		}
	}
	e.same(e.kinds(), "credential.put credential.delete")
}

func providers(e *env) {
	ctx := e.Context()
	p := store.Provider{Name: "main", Kind: "openai", BaseURL: "http://localhost/v1?a=<b>", Key: store.NewSecret("sk-key"), Enabled: true}
	e.ok(e.PutProvider(ctx, ada, p))
	got := must(e.ListProviders(ctx))(e)
	if len(got) != 1 || got[0].Key.Reveal() != "sk-key" || !got[0].HasKey || got[0].BaseURL != p.BaseURL || got[0].Created.IsZero() {
		e.Fatalf("got %+v", got)
	}
	p = got[0]
	p.Key, p.Enabled = store.Secret{}, false // HasKey stays: so does the key
	e.ok(e.PutProvider(ctx, ada, p))
	e.same(must(e.ListProviders(ctx))(e)[0].Key.Reveal(), "sk-key")
	p.HasKey = false
	e.ok(e.PutProvider(ctx, ada, p))
	if got := must(e.ListProviders(ctx))(e)[0]; got.HasKey || !got.Key.IsZero() {
		e.Fatalf("the key is still there: %+v", got)
	}
	e.ok(e.DeleteProvider(ctx, ada, "main"))
	e.is(e.DeleteProvider(ctx, ada, "main"), store.ErrNotFound)
	e.same(e.kinds(), "provider.put provider.put provider.put provider.delete")
}

func models(e *env) {
	ctx := e.Context()
	e.ok(e.PutModel(ctx, ada, store.ModelName{Name: "fast", Target: "main/a", Default: true}))
	e.ok(e.PutModel(ctx, ada, store.ModelName{Name: "smart", Target: "main/b", Fallbacks: []string{"main/a"}, Default: true}))
	e.same(must(e.ListModels(ctx))(e), []store.ModelName{
		{Name: "fast", Target: "main/a"}, {Name: "smart", Target: "main/b", Fallbacks: []string{"main/a"}, Default: true},
	})
	e.ok(e.DeleteModel(ctx, ada, "fast"))
	e.is(e.DeleteModel(ctx, ada, "fast"), store.ErrNotFound)
	e.is(e.PutModel(ctx, ada, store.ModelName{}), store.ErrInvalid)
}

func agents(e *env) {
	ctx := e.Context()
	warm := 0.5
	a := store.Agent{ID: "helper", Model: "fast", Temperature: &warm, AllowedTools: []string{"box:*"}, Default: true}
	e.ok(e.PutAgent(ctx, ada, a))
	a.Created = must(e.GetAgent(ctx, "helper"))(e).Created
	if a.Created.IsZero() {
		e.Fatal("no time")
	}
	e.same(must(e.GetAgent(ctx, "helper"))(e), a)
	e.ok(e.PutAgent(ctx, ada, store.Agent{ID: "other", Default: true}))
	list := must(e.ListAgents(ctx))(e)
	e.same([]bool{list[0].Default, list[1].Default}, []bool{false, true})
	e.ok(e.DeleteAgent(ctx, ada, "helper"))
	e.is(e.DeleteAgent(ctx, ada, "helper"), store.ErrNotFound)
	_, err := e.GetAgent(ctx, "helper")
	e.is(err, store.ErrNotFound)
}

func settings(e *env) {
	ctx := e.Context()
	e.ok(e.PutSetting(ctx, ada, "", "approvals.mode", "all"))
	e.ok(e.PutSetting(ctx, ada, "ada", "agent.tools.maxSteps", "5"))
	e.ok(e.PutSetting(ctx, ada, "", "approvals.mode", "all")) // says nothing new
	e.same(must(e.ListSettings(ctx, ""))(e), map[string]string{"approvals.mode": "all"})
	e.same(must(e.ListSettings(ctx, "ada"))(e), map[string]string{"agent.tools.maxSteps": "5"})
	e.ok(e.PutSetting(ctx, ada, "", "approvals.mode", ""))
	e.same(must(e.ListSettings(ctx, ""))(e), map[string]string{})
	e.same(e.kinds(), "setting.put setting.put setting.put")
}

func grants(e *env) {
	ctx := e.Context()
	now := time.Now().UTC()
	g := store.Grant{ID: "g1", User: "ada", Tool: "box:convert", Pin: "p", Created: now, Expires: now.Add(time.Hour)}
	e.ok(e.PutGrant(ctx, ada, g))
	e.ok(e.PutGrant(ctx, bert, store.Grant{ID: "g2", User: "bert", Tool: "box:convert", Deny: true}))
	e.same(must(e.ListGrants(ctx, "ada"))(e), []store.Grant{g})
	e.same(len(must(e.ListGrants(ctx, ""))(e)), 2)
	e.is(e.PutGrant(ctx, bert, store.Grant{ID: "g1", User: "bert", Tool: "x:y"}), store.ErrExists)
	e.ok(e.DeleteGrant(ctx, ada, "g1"))
	e.is(e.DeleteGrant(ctx, ada, "g1"), store.ErrNotFound)
	e.same(len(must(e.ListGrants(ctx, "ada"))(e)), 0)
	e.same(e.kinds(), "grant.put grant.put grant.delete")

	// One that is given with a decision is stored with it, or not at all.
	c := newCall(store.Pending)
	e.ok(e.Begin(ctx, ada, c))
	say := func(id, tool string) error {
		_, err := e.Decide(ctx, ada, c.ID, store.Decision{Verb: store.Deny, Standing: &store.Grant{ID: id, User: "ada", Tool: tool, Deny: true, Created: now}})
		return err
	}
	e.is(say("g3", ""), store.ErrInvalid)
	e.same(must(e.GetCall(ctx, c.ID))(e).Waiting(), true)
	e.ok(say("g3", "box:convert"))
	e.is(say("g4", "box:convert"), store.ErrDecided)
	late := newCall(store.Pending)
	late.Expires = now.Add(-time.Minute)
	e.ok(e.Begin(ctx, ada, late))
	c = late
	e.is(say("g5", "box:convert"), store.ErrExpired)
	e.reopen()
	e.same(must(e.ListGrants(ctx, "ada"))(e), []store.Grant{{ID: "g3", User: "ada", Tool: "box:convert", Deny: true, Created: now}})
}

func vectors(e *env) {
	ctx := e.Context()
	vecs := map[string][]float32{}
	for i := range 600 { // more than one would put into a transaction
		vecs[id("h", i)] = []float32{float32(i), -0.5, 1e-20}
	}
	e.ok(e.PutVectors(ctx, "m/1", vecs))
	e.ok(e.PutVectors(ctx, "m/1", map[string][]float32{"h0000": {7}}))
	vecs["h0000"] = []float32{7}
	e.reopen()
	var keys []string
	for k := range vecs {
		keys = append(keys, k)
	}
	e.same(must(e.GetVectors(ctx, "m/1", append(slices.Clone(keys), "none")))(e), vecs)
	e.same(must(e.GetVectors(ctx, "m/2", keys))(e), map[string][]float32{})
}
