package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/commands"
	"nize/store"
)

// What people type wrong, press too late or may not do is told in their own
// language: every word of a chat, every dialog and every button, with
// every wrong input that they tell apart.

// asIs are the words that stay as they are in Chinese: names, codes, what
// people type, and terms that the catalogues leave in English.
var asIs = map[string]bool{}

func init() {
	for _, list := range []string{
		"nize nizectl token JSON MCP API Slack KiB ASCII",                                                   // terms
		"UTC auto en zh Hans Hant follow mention all none true false default me conversation everywhere us", // values
		"agent model mode servers approvers language admins timezone streaming",                             // names of settings
		"requester channel user group U G of not ops MAY",                                                   // approvers
		"Ann Ben Cho tracker toolbox helper fast laptop",                                                    // names of this team's
		"calls bytes items exec few",                                                                        // of hooks
		"NAME VALUE WHO IT",                                                                                 // what stands for a value, and a value
	} {
		for _, w := range strings.Fields(list) {
			asIs[w] = true
		}
	}
}

var (
	verbatim = regexp.MustCompile("`[^`]*`|“[^”]*”|「[^」]*」|\\{.*\\}")
	ids      = regexp.MustCompile(`\b[0-9A-Z]{26}\b|\b[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}\b|[A-Za-z]+/[A-Za-z_]+|[A-Z]+_[A-Z]+|[a-z]+(?:[-_.:][a-zA-Z_]+)+|\b\d+[a-z]+\b`)
	latin    = regexp.MustCompile(`[A-Za-z][A-Za-z']+`)
)

// english are the English words of a text that is to be Chinese.
func english(text string) []string {
	text = ids.ReplaceAllString(verbatim.ReplaceAllString(text, " "), " ")
	return slices.DeleteFunc(latin.FindAllString(text, -1), func(w string) bool { return asIs[w] })
}

// refusals is a team that goes wrong.
type refusals struct {
	*watched
	t             *testing.T
	ann, ben, cho store.Caller // an admin and two members
	bens          string       // a conversation of Ben's
	open, done    store.Call   // calls of Ben's
	commands      *bots.Commands
}

func newRefusals(t *testing.T) *refusals {
	w := watch(t, t.TempDir(), nil)
	r := &refusals{watched: w, t: t, commands: &bots.Commands{}}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	person := func(name string, role store.Role) store.Caller {
		id := "slack:T1:U" + name
		u, err := w.db.AddUser(ctx, store.System, store.User{Name: name, Role: role, Identities: []string{id}})
		must(err)
		return store.Caller{User: u.ID, Name: name, Role: role, Surface: store.OnSlack, Identity: id}
	}
	r.ann, r.ben, r.cho = person("Ann", store.Admin), person("Ben", store.Member), person("Cho", store.Member)
	for _, s := range []store.Server{
		{Name: "tracker", Visibility: []string{"all"}, Auth: store.AuthUser, Headers: map[string]store.Value{"A": {SecretKey: "TRACKER_KEY"}, "B": {SecretKey: "OTHER_KEY"}}},
		{Name: "toolbox", Visibility: []string{"all"}},
		{Name: "hidden"},
	} {
		s.Transport, s.URL = store.HTTP, "https://"+s.Name+".example/mcp"
		_, err := w.db.PutServer(ctx, r.ann, s, 0)
		must(err)
	}
	tool := store.Tool{Server: "toolbox", Name: "write", Description: "Write.", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), State: store.ToolAccepted, Pin: "p", Accepted: "p"}
	_, err := w.db.PutTools(ctx, r.ann, "toolbox", []store.Tool{tool})
	must(err)
	must(w.gateway.Catalog.Refresh(ctx, "toolbox"))
	must(w.db.PutAgent(ctx, r.ann, store.Agent{ID: "helper", Name: "Helper"}))
	must(w.db.PutModel(ctx, r.ann, store.ModelName{Name: "fast", Target: "openai/gpt-5-mini"}))
	r.bens = store.NewID(time.Now())
	at := store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1", Thread: "1.1"}
	must(w.db.PutThread(ctx, r.ben, store.Thread{ID: r.bens, User: r.ben.User, Address: at, Created: time.Now()}))
	ask := func() store.Call {
		c, err := w.gateway.Call(ctx, r.ben, store.Request{ID: store.NewID(time.Now()), Tool: "toolbox:write", Args: json.RawMessage(`{"n":1}`), Thread: r.bens})
		must(err)
		return *c
	}
	r.open, r.done = ask(), ask()
	_, err = w.gateway.Decide(ctx, r.ben, r.done.ID, store.Decision{Verb: store.Deny})
	must(err)
	r.commands.Add(bots.CoreCommands(r.commands, bots.Core{Threads: w.db, Claims: w.db, Handler: w.conversation, Calls: w.db, Cards: w.conversation})...)
	r.commands.Add(w.ops.commands(w.newCommands())...)
	return r
}

// says runs a word as somebody and returns what they read.
func (r *refusals) says(by store.Caller, thread, line, locale string) string {
	r.t.Helper()
	cmd, words, near, ok := r.commands.Find(by, line, false)
	if !ok {
		r.t.Fatalf("%q is no command (near %q)", line, near)
	}
	at := store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1"}
	answer, err := r.commands.Run(r.t.Context(), cmd, bots.Asked{By: by, At: at, Thread: thread, Words: words, Locale: locale})
	if err != nil {
		r.t.Errorf("%q: %v", line, err)
	}
	return answer.Text
}

// wrongWords are typed by Ben outside a conversation, unless said otherwise.
var wrongWords = []struct {
	line string
	by   string // "" is Ben
	in   bool   // Ben's conversation
}{
	{line: "stop"}, {line: "mute"}, {line: "unmute"}, {line: "stop", by: "Cho", in: true},
	{line: "approve it"}, {line: "approve"}, {line: "deny 01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {line: "approve OPEN", by: "Cho"}, {line: "approve DONE"},
	{line: "claim ABCDEFGHIJKL2"}, {line: "claim that"},
	{line: "tools"}, {line: "tools " + strings.Repeat("very long ", 2000)}, {line: "tools xyzzy"},
	{line: "servers deny trackr"}, {line: "servers deny nothing-like-it"}, {line: "servers deny hidden"}, {line: "servers frob"}, {line: "servers allow UPPER"}, {line: "servers deny a,,b"},
	{line: "servers deny trackr", in: true}, {line: "servers deny tracker,toolbox", in: true}, {line: "servers deny tracker", by: "Cho", in: true},
	{line: "servers allow zzz"}, {line: "servers default", by: "Cho", in: true},
	{line: "agent helpr"}, {line: "agent zzz"}, {line: "agent helpr", in: true}, {line: "agent helper", by: "Cho", in: true},
	{line: "model fats"}, {line: "model openai/gpt-5-mini"}, {line: "model fats", in: true},
	{line: "streaming maybe"}, {line: "streaming on", by: "Cho", in: true},
	{line: "usage 99"}, {line: "usage often"},
	{line: "settings langauge en"}, {line: "settings zzzzz 1"}, {line: "settings language klingon"}, {line: "settings timezone Mars"}, {line: "settings streaming maybe"},
	{line: "settings agent.tools.maxSteps many"}, {line: "settings agent.tools.maxSteps 1000"}, {line: "settings agent.tools.systemPrompt " + strings.Repeat("x", 65<<10)},
	{line: "settings drain.grace"}, {line: "settings drain.grace 5s"}, {line: "settings alerts.to"}, {line: "settings chat.agent helpr"}, {line: "settings chat.model zzz"}, {line: "settings servers.denied trackr"},
	{line: "settings revoke 01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {line: "settings revoke it"},
	{line: "channel mode all"}, {line: "channel", by: "Ann"}, {line: "channel frob", by: "Ann"}, {line: "channel mod all", by: "Ann"}, {line: "channel mode", by: "Ann"}, {line: "channel mode al", by: "Ann"}, {line: "channel mode sometimes", by: "Ann"},
	{line: "channel agent helpr", by: "Ann"}, {line: "channel model zzz", by: "Ann"}, {line: "channel language klingon", by: "Ann"}, {line: "channel servers trackr", by: "Ann"},
	{line: "channel approvers nobody", by: "Ann"}, {line: "channel approvers reqester", by: "Ann"}, {line: "channel approvers group:nope", by: "Ann"}, {line: "channel approvers user:nope", by: "Ann"}, {line: "channel approvers user:Be", by: "Ann"},
	{line: "channel approvers 0 of admins", by: "Ann"}, {line: "channel approvers 2 of user:Ann", by: "Ann"},
	{line: "channel approvers " + many("user:u%d", 60), by: "Ann"},
	{line: "channel admins nobody", by: "Ann"}, {line: "channel admins all", by: "Ann"}, {line: "channel admins user:nope", by: "Ann"}, {line: "channel admins group:nope", by: "Ann"},
	{line: "credentials frob"}, {line: "credentials connect"}, {line: "credentials connect trackr"}, {line: "credentials connect zzz"}, {line: "credentials connect tracker"}, {line: "credentials connect tracker NOPE"}, {line: "credentials connect UPPER case"},
	{line: "credentials disconnect tracker"}, {line: "credentials disconnect zzz"},
	{line: "hooks"}, {line: "hooks frob"}, {line: "hooks add few"}, {line: "hooks add few rate-limt"}, {line: "hooks add few exec"}, {line: "hooks add few rate-limit"}, {line: `hooks add few rate-limit {"calls":`}, {line: `hooks add few rate-limit {"calls":0,"per":"1h"}`}, {line: `hooks add few rate-limit {"calls":1,"pr":"1h"}`},
	{line: `hooks add few rate-limit trackr {"calls":1,"per":"1h"}`}, {line: `hooks add few rate-limit a:b:c* {"calls":1,"per":"soon"}`}, {line: "hooks add A/B secret-redaction"}, {line: "hooks remove few"}, {line: "hooks off few"}, {line: "hooks off few", by: "Ann"},
	{line: `hooks add few param-sanitizer {"rules":[{"pointer":"x","action":"redact"}]}`}, {line: `hooks add few param-sanitizer {"rules":[{"pointer":"/x","pattern":"(","action":"redact"}]}`}, {line: `hooks add few response-truncation {"bytes":-1}`},
	{line: "tokens frob"}, {line: "tokens new a/b"}, {line: "tokens revoke nope"}, {line: "tokens revoke laptp"}, {line: "tokens new laptop"},
	{line: "link what"}, {line: "link ABCD-EFGH-JKLM"}, {line: "link OWN"},
	{line: "forget"}, {line: "forget 01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {line: "forget it"}, {line: "forget", by: "Cho", in: true}, {line: "forget BENS"},
}

func many(form string, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(form, i))
	}
	return strings.Join(out, ",")
}

func TestRefusalsInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	r := newRefusals(t)
	if text := r.says(r.ben, "", "tokens new laptop", "en"); !strings.Contains(text, "nize_") {
		t.Fatalf("a token: %q", text)
	}
	code, hash := store.NewCode()
	if _, err := r.db.PutLink(t.Context(), r.ben, r.ben.User, hash); err != nil {
		t.Fatal(err)
	}
	for _, row := range wrongWords {
		by, thread := map[string]store.Caller{"": r.ben, "Ann": r.ann, "Cho": r.cho}[row.by], ""
		if row.in {
			thread = r.bens
		}
		line := strings.NewReplacer("OPEN", r.open.ID, "DONE", r.done.ID, "BENS", r.bens, "OWN", code.Reveal()).Replace(row.line)
		name := row.line[:min(len(row.line), 60)]
		said := r.says(by, thread, line, "en")
		if said == "" || strings.Contains(said, "error inside nize") || strings.HasPrefix(said, "reading ") {
			t.Errorf("%s: %q", name, said)
		}
		for _, locale := range []string{"zh-Hans", "zh-Hant"} {
			text := r.says(by, thread, line, locale)
			if left := english(text); len(left) > 0 {
				t.Errorf("%s in %s: %q has %q; in English %q", name, locale, text, left, said)
			}
		}
	}
}

// What a button, a dialog or a message is refused with.
func TestRefusedPressesInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	r := newRefusals(t)
	ctx := t.Context()
	press := func(by store.Caller, c store.Call, d store.Decision) func() error {
		return func() error {
			if d.Digest == "" {
				d.Digest = c.Digest
			}
			_, err := r.conversation.Press(ctx, by, c.ID, d)
			return err
		}
	}
	put := func(server, name, value string) func() error {
		return func() error {
			return (&commands.Home{Commands: r.newCommands(), Cards: r.conversation}).PutSecret(ctx, r.ben, bots.Prompt{Service: server, Name: name}, store.NewSecret(value))
		}
	}
	for name, do := range map[string]func() error{
		"another's call":       press(r.cho, r.open, store.Decision{Verb: store.Approve}),
		"a call that is gone":  press(r.ben, store.Call{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, store.Decision{Verb: store.Approve}),
		"no call at all":       press(r.ben, store.Call{ID: "x"}, store.Decision{Verb: store.Approve}),
		"decided":              press(r.ben, r.done, store.Decision{Verb: store.Approve}),
		"not what was shown":   press(r.ben, r.open, store.Decision{Verb: store.Approve, Digest: "other"}),
		"retry of what waits":  press(r.ben, r.open, store.Decision{Verb: store.Retry}),
		"edit: no JSON":        press(r.ben, r.open, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"n":`)}),
		"edit: no object":      press(r.ben, r.open, store.Decision{Verb: store.Edit, Args: json.RawMessage(`[]`)}),
		"edit: twice":          press(r.ben, r.open, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"n":1,"n":2}`)}),
		"edit: the schema":     press(r.ben, r.open, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{"n":"x"}`)}),
		"edit: a lack":         press(r.ben, r.open, store.Decision{Verb: store.Edit, Args: json.RawMessage(`{}`)}),
		"always: everywhere":   press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, For: store.ForEveryone}),
		"always: the channel":  press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, For: store.ForChannel}),
		"always: a scope":      press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, For: "us"}),
		"always: a pattern":    press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, Pattern: json.RawMessage(`{"n":7}`)}),
		"always: no pattern":   press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, Pattern: json.RawMessage(`[]`)}),
		"always: in the past":  press(r.ben, r.open, store.Decision{Verb: store.Approve, Always: true, Until: time.Unix(1, 0)}),
		"never with a pattern": press(r.ben, r.open, store.Decision{Verb: store.Deny, Always: true, Pattern: json.RawMessage(`{"n":1}`)}),
		"stopping another's":   func() error { return r.conversation.Stop(ctx, r.cho, r.bens) },
		"stopping nothing":     func() error { return r.conversation.Stop(ctx, r.ben, "01ARZ3NDEKTSV4RRFFQ69G5FAV") },
		"sharing nothing": func() error {
			return r.conversation.Share(ctx, r.ben, r.bens, 3)
		},
		"a card that is gone": func() error {
			return (&commands.Home{Commands: r.newCommands(), Cards: r.conversation}).Bring(ctx, r.cho, r.open.ID)
		},
		"no credential":  put("tracker", "TRACKER_KEY", " "),
		"two lines":      put("tracker", "TRACKER_KEY", "a\nb"),
		"another name":   put("tracker", "NOPE", "x"),
		"another server": put("trackr", "TRACKER_KEY", "x"),
	} {
		err := do()
		if err == nil {
			t.Errorf("%s: done", name)
			continue
		}
		for _, locale := range []string{"zh-Hans", "zh-Hant"} {
			text := phrases.For(locale).Problem(err)
			if left := english(text); len(left) > 0 {
				t.Errorf("%s in %s: %q has %q; in English %q", name, locale, text, left, err)
			}
		}
	}
}

func TestRefusedFormInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	r := newRefusals(t)
	at := store.Address{Surface: store.OnSlack, Team: "T1", Channel: "C1"}
	for _, row := range []struct{ field, value string }{
		{"agent", "helpr"}, {"model", "zzz"}, {"mode", "al"}, {"language", "klingon"}, {"servers", "trackr"}, {"servers", "none,tracker"},
		{"approvers", "nobody"}, {"approvers", "group:nope"}, {"approvers", "requester not requester"}, {"approvers", "x of admins"}, {"admins", "user:nope"}, {"admins", "nobody"}, {"frob", "x"},
	} {
		for _, locale := range []string{"zh-Hans", "zh-Hant"} {
			a := bots.Asked{By: r.ann, At: at, Locale: locale}
			channel, _, _, _ := r.commands.Find(r.ann, "channel", false)
			wrong := channel.Form.Check(context.Background(), a, map[string][]string{row.field: strings.Split(row.value, ",")})
			text := wrong[row.field]
			if left := english(text); text == "" || len(left) > 0 {
				t.Errorf("%s %s in %s: %q has %q", row.field, row.value, locale, text, left)
			}
		}
	}
}

// A setting without a value says so, and a long one is shown in one line as it
// reads.
func TestSettingsSayTheirValues(t *testing.T) {
	t.Parallel()
	r := newRefusals(t)
	for locale, want := range map[string][]string{
		"en":      {"chat.agent = the default", "servers.denied = none", "agent.tools.systemPrompt = You can use tools. They are not listed here; find them: 1. discover_tools"},
		"zh-Hans": {"chat.agent = 默认", "servers.denied = 无"},
		"zh-Hant": {"chat.agent = 預設", "servers.denied = 無"},
	} {
		text := r.says(r.ben, "", "settings", locale)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in %q", locale, part, text)
			}
		}
	}
	if got := r.says(r.ben, "", "settings chat.model", "en"); got != "chat.model = the default" {
		t.Errorf("alone: %q", got)
	}
}
