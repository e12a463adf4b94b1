package storetest

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"nize/store"
)

// silent are the methods that take a caller and leave no event: what is said in
// a conversation is kept with it and is no configuration.
var silent = []string{"PutThread", "StartThread", "EditThread", "Append", "ThreadAt", "PutFile"}

// change is one thing that somebody does.
type change struct {
	method string // of store.DB
	kind   string // of the event that it leaves; "" for none
	do     func() error
}

// compound are the methods that add, remove or move more than one record, each of
// which leaves an event of its own beside the main one.
var compound = []string{"AddUser", "Unlink", "RemoveUser", "Join", "EraseEvents", "ForgetUser", "ForgetThread"}

// changesLeaveEvents: each change leaves exactly one event, with who did it and
// from where; what is refused, and what only reads, leaves none.
func changesLeaveEvents(e *env) {
	ctx := e.Context()
	me := must(e.EnsureUser(ctx, "local:7", "Who", store.Admin))(e)
	own := e.newToken(me.ID, "own", "tok7")
	own.ID = "tok7"
	must(e.CreateToken(ctx, ada, own, false))(e)
	who := store.Caller{User: me.ID, Name: "Who", Role: store.Admin, Surface: store.OnCLI, Identity: "local:7", Address: "203.0.113.5", Token: "tok7"}
	table := e.settingChanges(who)
	table = append(table, e.callChanges(who)...)
	table = append(table, e.peopleChanges(who)...)
	seen := map[string]bool{}
	for _, c := range table {
		seen[c.method] = true
		e.ok(e.Flush(ctx))
		last := e.newest()
		if err := c.do(); err != nil {
			e.Errorf("%s: %v", c.method, err)
			continue
		}
		e.ok(e.Flush(ctx))
		added := must(e.Events(ctx, store.EventQuery{After: last.Seq, Forward: true}))(e)
		if c.kind == "" && len(added) == 0 {
			continue
		}
		main := 0
		for _, got := range added {
			if got.Kind == c.kind {
				main++
			}
			if got.User == store.System.User && slices.Contains(compound, c.method) {
				continue // the end of an erasure, which nize reaches in its own time
			}
			by := store.Caller{User: got.User, Name: got.UserName, Role: who.Role, Surface: got.Surface, Identity: got.Identity, Address: got.Address, Token: got.Token}
			if !reflect.DeepEqual(by, who) || got.Subject == "" || got.At.IsZero() {
				e.Errorf("%s: its event says %+v", c.method, got)
			}
		}
		if main != 1 || len(added) != 1 && !slices.Contains(compound, c.method) {
			e.Errorf("%s leaves %d events, want one of kind %q: %+v", c.method, len(added), c.kind, added)
		}
	}
	for _, name := range silent {
		seen[name] = true
	}
	db := reflect.TypeFor[store.DB]()
	for i := range db.NumMethod() {
		m := db.Method(i)
		for j := range m.Type.NumIn() {
			if m.Type.In(j) == reflect.TypeFor[store.Caller]() && !seen[m.Name] {
				e.Errorf("%s takes a caller: say here which event it leaves", m.Name)
			}
		}
	}
}

func (e *env) newest() store.Event {
	e.Helper()
	list := must(e.Events(e.Context(), store.EventQuery{Limit: 1}))(e)
	if len(list) == 0 {
		return store.Event{}
	}
	return list[0]
}

// settingChanges are those of what nize is set up with.
func (e *env) settingChanges(who store.Caller) []change {
	ctx := e.Context()
	second := func(_ any, err error) error { return err }
	tool := store.Tool{Server: "box", Name: "x", InputSchema: json.RawMessage(`{}`), Pin: "p1"}
	budget := store.Budget{Subject: store.Everybody, Period: store.Daily, Unit: store.InTokens, Limit: 10}
	key := store.CredentialKey{Scope: "system", Service: "box", Name: "KEY"}
	return []change{
		{"PutServer", "server.put", func() error { return second(e.PutServer(ctx, who, store.Server{Name: "box", Command: "x"}, 0)) }},
		{"PutTools", "tools.put", func() error { return second(e.PutTools(ctx, who, "box", []store.Tool{tool})) }},
		{"AcceptTool", "tool.accept", func() error { return e.AcceptTool(ctx, who, "box:x", must(e.GetTool(ctx, "box:x"))(e).Pin) }},
		{"ListServers", "", func() error { return second(e.ListServers(ctx)) }},
		{"DeleteServer", "server.delete", func() error { return e.DeleteServer(ctx, who, "box") }},
		{"PutCredential", "credential.put", func() error {
			return e.PutCredential(ctx, who, store.Credential{CredentialKey: key, Secret: store.NewSecret("s")})
		}},
		{"GetCredential", "", func() error { return second(e.GetCredential(ctx, key)) }},
		{"DeleteCredential", "credential.delete", func() error { return e.DeleteCredential(ctx, who, key) }},
		{"PutSetting", "setting.put", func() error { return e.PutSetting(ctx, who, "", "agent.tools.maxSteps", "7") }},
		{"PutSetting", "", func() error { return e.PutSetting(ctx, who, "", "agent.tools.maxSteps", "7") }}, // it changes nothing
		{"PutSetting", "setting.put", func() error { return e.PutSetting(ctx, who, "", "agent.tools.maxSteps", "") }},
		{"PutProvider", "provider.put", func() error { return e.PutProvider(ctx, who, store.Provider{Name: "main", Kind: "openai"}) }},
		{"PutModel", "model.put", func() error { return e.PutModel(ctx, who, store.ModelName{Name: "fast", Target: "main/m"}) }},
		{"DeleteModel", "model.delete", func() error { return e.DeleteModel(ctx, who, "fast") }},
		{"DeleteProvider", "provider.delete", func() error { return e.DeleteProvider(ctx, who, "main") }},
		{"PutPrice", "price.put", func() error { return e.PutPrice(ctx, who, store.Price{Model: "main/m"}) }},
		{"DeletePrice", "price.delete", func() error { return e.DeletePrice(ctx, who, "main/m") }},
		{"PutBudget", "budget.put", func() error { return e.PutBudget(ctx, who, budget) }},
		{"Reserve", "", func() error { return e.Reserve(ctx, who, claim(0, who.User)) }},
		{"SettleSpend", "budget.exceeded", func() error { return second(e.SettleSpend(ctx, who, settled(claim(0, who.User), 15))) }},
		{"DeleteBudget", "budget.delete", func() error { return e.DeleteBudget(ctx, who, budget) }},
		{"PutAgent", "agent.put", func() error { return e.PutAgent(ctx, who, store.Agent{ID: "main", Name: "Main"}) }},
		{"DeleteAgent", "agent.delete", func() error { return e.DeleteAgent(ctx, who, "main") }},
		{"PutBot", "bot.put", func() error {
			return e.PutBot(ctx, who, store.Bot{Surface: store.OnSlack, Mode: "socket", Team: "T", User: "U", Tokens: map[string]store.Secret{"bot": store.NewSecret("s")}})
		}},
		{"EditChannel", "channel.put", func() error {
			_, err := e.EditChannel(ctx, who, "slack:T:C", func(c *store.Channel) { c.Mode = store.ModeAll })
			return err
		}},
		{"EditChannel", "channel.delete", func() error {
			_, err := e.EditChannel(ctx, who, "slack:T:C", func(c *store.Channel) { *c = store.Channel{} })
			return err
		}},
		{"PutSweep", "bot.sweep", func() error {
			return e.PutSweep(ctx, who, store.Sweep{Surface: store.OnSlack, Began: time.Now(), Ended: time.Now()})
		}},
		{"PutSweep", "", func() error { // it is under way
			return e.PutSweep(ctx, who, store.Sweep{Surface: store.OnSlack, Began: time.Now().Add(time.Hour), Ended: time.Now()})
		}},
		{"PutClaim", "claim.put", func() error {
			return e.PutClaim(ctx, who, store.OnSlack, sha256.Sum256([]byte("c")), time.Now().Add(time.Hour))
		}},
		{"DeleteBot", "bot.delete", func() error { return e.DeleteBot(ctx, who, store.OnSlack) }},
		{"AddCheckpoint", "audit.verify", func() error { return e.AddCheckpoint(ctx, who, 3) }},
		{"VerifyEvents", "", func() error { return second(e.VerifyEvents(ctx)) }},
	}
}

// peopleChanges are those of users and what acts in their name.
func (e *env) peopleChanges(who store.Caller) []change {
	ctx := e.Context()
	second := func(_ any, err error) error { return err }
	u := must(e.EnsureUser(ctx, "slack:T:Z", "Zoe", store.Member))(e)
	demoted := u
	demoted.Name = "Zoe Z."
	grant := store.Grant{ID: "g1", User: u.ID, Tool: "box:x", Pin: "p1"}
	incident, named := newIncident("box"), ""
	return []change{
		{"AddUser", "user.put", func() error {
			n, err := e.AddUser(ctx, who, store.User{Name: "nan", Role: store.Member, Identities: []string{"named:nan"}})
			named = n.ID
			return err
		}},
		{"PutUser", "user.put", func() error { return e.PutUser(ctx, who, demoted) }},
		{"ListUsers", "", func() error { return second(e.ListUsers(ctx)) }},
		{"RecordPrivacyNotice", "user.told", func() error { return e.RecordPrivacyNotice(ctx, who, u.ID) }},
		{"RecordPrivacyNotice", "", func() error { return e.RecordPrivacyNotice(ctx, who, u.ID) }}, // they know
		{"CreateTokenWithin", "token.create", func() error {
			return second(e.CreateTokenWithin(ctx, who, e.newToken(u.ID, "cli0", "change0"), false, store.Quota{Each: 9, All: 99}))
		}},
		{"CreateToken", "token.create", func() error { return second(e.CreateToken(ctx, who, e.newToken(u.ID, "cli", "change1"), false)) }},
		{"RotateToken", "token.rotate", func() error {
			return second(e.RotateToken(ctx, who, store.Rotation{User: u.ID, Name: "cli", Next: store.TokenSecret{ID: "t2", Prefix: "nize_cd", Hash: secretOf("change2")}}))
		}},
		{"RevokeTokens", "token.revoke", func() error { return second(e.RevokeTokens(ctx, who, u.ID, "cli")) }},
		{"PutGrant", "grant.put", func() error { return e.PutGrant(ctx, who, grant) }},
		{"DeleteGrant", "grant.delete", func() error { return e.DeleteGrant(ctx, who, "g1") }},
		{"AddGroup", "group.put", func() error { return second(e.AddGroup(ctx, who, store.Group{Name: "ops"})) }},
		{"EditGroup", "group.put", func() error { return second(e.EditGroup(ctx, who, "ops", []string{u.ID}, nil)) }},
		{"DeleteGroup", "group.delete", func() error { return e.DeleteGroup(ctx, who, "ops") }},
		{"AddGroup", "group.put", func() error {
			return second(e.AddGroup(ctx, who, store.Group{Name: "live", Source: "slack:T:S1"}))
		}},
		{"RecordGroupCheck", "group.members", func() error {
			return second(e.RecordGroupCheck(ctx, who, "live", store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:Z"}}))
		}},
		{"RecordGroupCheck", "", func() error { // it found the same
			return second(e.RecordGroupCheck(ctx, who, "live", store.GroupCheck{Source: "slack:T:S1", Identities: []string{"slack:T:Z"}}))
		}},
		{"OpenIncident", "incident.open", func() error { return second(e.OpenIncident(ctx, who, incident)) }},
		{"AckIncident", "incident.ack", func() error { return second(e.AckIncident(ctx, who, incident.ID)) }},
		{"NoteDelivery", "incident.deliver", func() error { return e.NoteDelivery(ctx, who, incident.ID, store.Delivery{Tries: 1}) }},
		{"RecoverIncident", "incident.recover", func() error { return second(e.RecoverIncident(ctx, who, incident.ID)) }},
		{"DeleteUnmetRequests", "wish.delete", func() error {
			e.RecordUnmetRequest(who.User, "a rocket to the moon")
			return second(e.DeleteUnmetRequests(ctx, who, ""))
		}},
		{"PutMember", "member.put", func() error {
			return e.PutMember(ctx, who, store.Membership{Team: "slack:T", User: u.ID, Identity: "slack:T:Z"})
		}},
		{"DeleteMember", "member.delete", func() error { return e.DeleteMember(ctx, who, "slack:T", u.ID) }},
		{"ForgetFeedback", "lessons.forget", func() error { return second(e.ForgetFeedback(ctx, who, u.ID)) }},
		{"PutLink", "link.put", func() error { return second(e.PutLink(ctx, who, u.ID, secretOf("link"))) }},
		{"FindLink", "", func() error { return second(e.FindLink(ctx, who, secretOf("link"))) }},
		{"Join", "user.join", func() error { return second(e.Join(ctx, who, secretOf("link"), store.Admin)) }},
		{"Unlink", "user.unlink", func() error { return second(e.Unlink(ctx, who, who.User, "slack:T:Z")) }},
		{"RemoveUser", "user.remove", func() error { return e.RemoveUser(ctx, who, named) }},
		{"ForgetUser", "user.forget", func() error { return second(e.ForgetUser(ctx, who, named, nil)) }},
		{"EraseEvents", "audit.erase", func() error { return second(e.EraseEvents(ctx, who, u.ID)) }},
	}
}

// callChanges are those of calls.
func (e *env) callChanges(who store.Caller) []change {
	ctx := e.Context()
	second := func(_ any, err error) error { return err }
	waits, read := newCall(store.Pending), newCall(store.Done)
	ran := newCall(store.Running)
	return []change{
		{"Begin", "call.pending", func() error { return e.Begin(ctx, who, waits) }},
		{"Decide", "call.deny", func() error { return second(e.Decide(ctx, who, waits.ID, store.Decision{Verb: store.Deny})) }},
		{"Begin", "call.running", func() error { return e.Begin(ctx, who, ran) }},
		{"Finish", "call.done", func() error { return second(e.Finish(ctx, who, ran.ID, store.Outcome{State: store.Done})) }},
		{"Record", "call.done", func() error { e.Record(who, read); return nil }},
		{"GetCall", "", func() error { return second(e.GetCall(ctx, ran.ID)) }},
		{"ShareTurns", "thread.share", func() error {
			e.ok(e.PutThread(ctx, who, store.Thread{ID: "s1", User: who.User}))
			e.ok(e.Append(ctx, who, store.Turn{Thread: "s1", Role: store.FromModel, Text: "x", For: who.User}, false))
			return second(e.ShareTurns(ctx, who, "s1", 0))
		}},
		{"ForgetThread", "thread.forget", func() error { return second(e.ForgetThread(ctx, who, "s1")) }},
		{"Begin", "", func() error { // what is refused
			if err := e.Begin(ctx, who, ran); err == nil || !strings.Contains(err.Error(), store.ErrExists.Error()) {
				return err
			}
			return nil
		}},
		{"AddEvent", "meta.find", func() error { e.AddEvent(who, store.Event{Kind: "meta.find", Subject: "find"}); return nil }},
	}
}
