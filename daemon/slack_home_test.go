package daemon_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// homeOf opens somebody's Home and waits for it.
func (s *scene) homeOf(user string) {
	s.t.Helper()
	before := 0
	if v, ok := s.fake.Home(user); ok {
		before = v.Looks
	}
	s.fake.OpenHome(user)
	s.until(user+" has a Home", func() bool {
		v, ok := s.fake.Home(user)
		return ok && v.Looks > before
	})
}

// shows waits until somebody's Home says all of that.
func (s *scene) shows(user string, parts ...string) {
	s.t.Helper()
	s.until("the Home of "+user+" says "+strings.Join(parts, ", "), func() bool {
		v, ok := s.fake.Home(user)
		if !ok {
			return false
		}
		for _, p := range parts {
			if !strings.Contains(string(v.Blocks), p) {
				return false
			}
		}
		return true
	})
}

// touch uses a control of somebody's Home and waits until it is drawn anew.
func (s *scene) touch(user, action string, values ...string) {
	s.t.Helper()
	v, ok := s.fake.Home(user)
	if !ok {
		s.t.Fatal("no Home")
	}
	if err := s.fake.PressView(s.t.Context(), user, v.ID, action, values...); err != nil {
		s.t.Fatal(err)
	}
	s.until("the Home is drawn after "+action, func() bool {
		now, _ := s.fake.Home(user)
		return now.Looks > v.Looks
	})
}

func (s *scene) setting(user, key string) string {
	s.t.Helper()
	list, err := api.ListSettings.Call(s.t.Context(), s.Client, api.ListSettingsRequest{User: user})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range list.Items {
		if k.Name == key {
			return k.Value
		}
	}
	return ""
}

// Everything on the Home holds at once, for who touched it and for nobody else.
func TestSlackHomeControls(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	for id, who := range map[string][]string{"ops": nil, "secret": {"admins"}} {
		if _, err := api.PutAgent.Call(ctx, s.Client, api.PutAgentRequest{ID: id, Agent: store.Agent{ID: id, Name: "the " + id, Who: who, SystemPrompt: "I am " + id + "."}}); err != nil {
			t.Fatal(err)
		}
	}
	s.fake.OpenHome(slacktest.Guest)
	s.shows(slacktest.Guest, "full members")
	s.homeOf(slacktest.Ben)
	ben := s.userOf(slacktest.Ben)
	s.shows(slacktest.Ben, "ops (the ops)", `"home:servers:0"`, "No call waits", "Nothing yet")
	if v, _ := s.fake.Home(slacktest.Ben); strings.Contains(string(v.Blocks), "the secret") {
		t.Error("Ben is shown an agent that is not his")
	}

	s.touch(slacktest.Ben, "home:set:chat.agent", "ops")
	s.shows(slacktest.Ben, "chat.agent is ops for you now.")
	s.until("chat.agent is ops", func() bool { return s.setting(ben.ID, "chat.agent") == "ops" })
	s.touch(slacktest.Ben, "home:set:chat.model", "speaker")
	s.shows(slacktest.Ben, "chat.model is speaker for you now.")
	m, err := s.fake.DM(slacktest.Ben, "#mine")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(m, "You said mine.") == 1 })
	if p := s.says.prompt("mine"); !strings.Contains(p, "I am ops.") {
		t.Errorf("the prompt is %q", p)
	}

	s.touch(slacktest.Ben, "home:set:streaming", "false")
	s.until("streaming is false", func() bool { return s.setting(ben.ID, "streaming") == "false" })
	s.touch(slacktest.Ben, "home:set:streaming", "true")
	s.until("streaming is true", func() bool { return s.setting(ben.ID, "streaming") == "true" })

	s.touch(slacktest.Ben, "home:servers:0")
	s.shows(slacktest.Ben, "Tools of box are no longer used for you")
	usable := func(user string) bool {
		t.Helper()
		why, err := api.ExplainTool.Call(ctx, s.Client, api.ExplainToolRequest{ID: "box:note", User: user})
		if err != nil {
			t.Fatal(err)
		}
		return why.Usable
	}
	s.until("box is off for Ben", func() bool { return !usable(ben.ID) })
	ann := s.userOf(slacktest.Ann)
	if !usable(ann.ID) {
		t.Error("it is off for Ann")
	}
	s.touch(slacktest.Ben, "home:servers:0", "box")
	s.until("box is on for Ben", func() bool { return usable(ben.ID) })

	// Of several boxes those that changed change.
	for _, name := range []string{"far", "wide", "zoo"} {
		if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: store.Server{Name: name, URL: mcptest.New(t, mcptest.Options{Name: name}).HTTP(), Visibility: []string{"all"}}}); err != nil {
			t.Fatal(err)
		}
	}
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, `"zoo"`)
	for _, on := range [][]string{{"box", "wide"}, {"far", "wide", "zoo"}, {"box", "far", "wide", "zoo"}, {}} {
		var off []string
		for _, name := range []string{"box", "far", "wide", "zoo"} {
			if !slices.Contains(on, name) {
				off = append(off, name)
			}
		}
		s.touch(slacktest.Ben, "home:servers:0", on...)
		s.until("off are "+strings.Join(off, ","), func() bool { return s.setting(ben.ID, "servers.denied") == strings.Join(off, ",") })
	}
	s.touch(slacktest.Ben, "home:servers:0", "box", "far", "wide", "zoo")

	s.touch(slacktest.Ben, "home:set:language", "zh-Hant")
	s.shows(slacktest.Ben, "等待你核准的呼叫", "language")
	s.touch(slacktest.Ben, "home:set:language", "auto")
	s.shows(slacktest.Ben, "Calls that need your approval")
	s.wellBehaved()
}

// A value that no control offers is refused as it is when it is typed, and
// nothing of it is believed.
func TestSlackHomeForged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	if _, err := api.PutAgent.Call(ctx, s.Client, api.PutAgentRequest{ID: "secret", Agent: store.Agent{ID: "secret", Who: []string{"admins"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: store.Server{Name: "hidden", URL: mcptest.New(t, mcptest.Options{Name: "hidden"}).HTTP()}}); err != nil {
		t.Fatal(err)
	}
	s.homeOf(slacktest.Ben)
	ben := s.userOf(slacktest.Ben)
	v, _ := s.fake.Home(slacktest.Ben)
	n := 0
	forge := func(action, chosen, metadata string) {
		t.Helper()
		n++
		before, _ := s.fake.Home(slacktest.Ben)
		payload, err := json.Marshal(map[string]any{
			"type": "block_actions", "team": map[string]any{"id": slacktest.Team}, "user": map[string]any{"id": slacktest.Ben, "team_id": slacktest.Team}, "trigger_id": "1",
			"view":    map[string]any{"id": v.ID, "type": "home", "hash": "1", "private_metadata": metadata},
			"actions": []any{map[string]any{"action_id": action, "block_id": "b", "action_ts": fmt.Sprintf("%d.1", n), "value": chosen, "selected_option": map[string]any{"value": chosen}, "selected_options": []any{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.fake.SendRaw([]byte(`{"type":"interactive","envelope_id":"forged-` + fmt.Sprint(n) + `","payload":` + string(payload) + `}`))
		s.until("the Home is drawn after "+action, func() bool {
			now, _ := s.fake.Home(slacktest.Ben)
			return now.Looks > before.Looks
		})
	}
	forge("home:set:chat.agent", "secret", "{}")
	s.shows(slacktest.Ben, `agent \"secret\" not found`)
	forge("home:set:chat.model", "speakers/m", "{}")
	s.shows(slacktest.Ben, "not found")
	forge("home:servers:0", "", `{"servers":["hidden"]}`)
	s.shows(slacktest.Ben, `server \"hidden\" not found`)
	forge("home:grant", store.NewID(time.Now()), "{}")
	s.shows(slacktest.Ben, "not found")
	forge("home:bring", store.NewID(time.Now()), "not JSON")
	s.shows(slacktest.Ben, "is no longer waiting for you")
	for key, want := range map[string]string{"chat.agent": "", "chat.model": "", "servers.denied": ""} {
		if got := s.setting(ben.ID, key); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	s.wellBehaved()
}

// What waits is a link to its card, what is always allowed and what lets
// clients in can be taken back there.
func TestSlackHomeLists(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ctx := t.Context()
	_, posted := s.ask(slacktest.Ben, "note")
	s.until("the Home links the card", func() bool { // whose place is noted after it is posted
		s.homeOf(slacktest.Ben)
		v, _ := s.fake.Home(slacktest.Ben)
		return strings.Contains(string(v.Blocks), "box:note, asked by") && strings.Contains(string(v.Blocks), "Open the card") && strings.Contains(string(v.Blocks), posted.Channel)
	})
	if err := s.fake.Choose(ctx, slacktest.Ben, posted, "call-menu", "always *"); err != nil {
		t.Fatal(err)
	}
	if err := s.dialog(slacktest.Ben, nil); err != nil {
		t.Fatal(err)
	}
	s.until("the call ran", func() bool { return s.runs.Load() == 1 })
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, "box:note: always allowed", "No call waits")
	s.touch(slacktest.Ben, "home:grant")
	s.shows(slacktest.Ben, "is revoked", "Nothing yet")

	ben := s.userOf(slacktest.Ben)
	if _, err := api.CreateToken.Call(ctx, s.Client, api.CreateTokenRequest{User: ben.ID, Name: "laptop"}); err != nil {
		t.Fatal(err)
	}
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, "laptop (nize_")
	s.touch(slacktest.Ben, "home:token")
	s.shows(slacktest.Ben, "laptop is revoked")
	list, err := api.ListTokens.Call(ctx, s.Client, api.ListTokensRequest{User: ben.ID})
	if err != nil || len(list.Items) != 1 || list.Items[0].State == "active" {
		t.Errorf("tokens %+v, %v", list.Items, err)
	}

	s.wellBehaved()
}

// A credential is typed into a dialog and goes sealed into the store, and its
// value stands nowhere else: not in a file, not in a message, not in the audit.
func TestSlackHomeCredential(t *testing.T) {
	t.Parallel()
	const secret = "the-Very-secret-Value-4711"
	s := newScene(t)
	ctx := t.Context()
	up := mcptest.New(t, mcptest.Options{Name: "tracker", Tools: []mcptest.Tool{{Name: "create_issue", Description: "Create an issue."}}})
	if _, err := api.PutCredential.Call(ctx, s.Client, api.PutCredentialRequest{CredentialKey: store.CredentialKey{Service: "tracker", Name: "TRACKER"}, Secret: api.NewSecret("the-shared-key")}); err != nil {
		t.Fatal(err)
	}
	srv := store.Server{Name: "tracker", URL: up.HTTP(), Visibility: []string{"all"}, Headers: map[string]store.Value{"Authorization": {SecretKey: "TRACKER"}}}
	if _, err := api.AddServer.Call(ctx, s.Client, api.AddServerRequest{Server: srv}); err != nil {
		t.Fatal(err)
	}
	auth := store.AuthUser
	if _, err := api.PatchServer.Call(ctx, s.Client, api.PatchServerRequest{Name: "tracker", Auth: &auth}); err != nil {
		t.Fatal(err)
	}
	s.homeOf(slacktest.Ben)
	s.shows(slacktest.Ben, "tracker: TRACKER, not connected")
	v, _ := s.fake.Home(slacktest.Ben)
	if err := s.fake.PressView(ctx, slacktest.Ben, v.ID, "connect:key"); err != nil {
		t.Fatal(err)
	}
	dialog := func() slacktest.View {
		t.Helper()
		s.until("the dialog", func() bool { return len(s.fake.Views(slacktest.Ben)) > 0 })
		return s.fake.Views(slacktest.Ben)[0]
	}
	d := dialog()
	var refused slacktest.Refused
	err := s.fake.Submit(ctx, slacktest.Ben, d.ID, map[string][]string{"secret": {"   "}})
	if !errors.As(err, &refused) || !strings.Contains(refused["secret"], "empty") {
		t.Errorf("an empty one: %v", err)
	}
	if err := s.fake.Submit(ctx, slacktest.Ben, d.ID, map[string][]string{"secret": {" " + secret + " "}}); err != nil {
		t.Fatal(err)
	}
	// When it is acknowledged it is there.
	ben := s.userOf(slacktest.Ben)
	creds, err := api.ListCredentials.Call(ctx, s.Client, api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range creds.Items {
		found = found || c.Owner == ben.ID && c.Service == "tracker" && c.Name == "TRACKER" && c.Host != ""
	}
	if !found {
		t.Errorf("credentials %+v", creds.Items)
	}
	s.shows(slacktest.Ben, "tracker: TRACKER, connected", "tracker is connected")

	// A forged dialog gives nothing to a server that wants none.
	s.slash(slacktest.Ben, "/nize credentials connect box")
	s.told(slacktest.Ben, "server that wants a credential of yours")

	for _, channel := range []string{slacktest.General, s.fake.DMChannel(slacktest.Ben)} {
		for _, m := range append(s.fake.Messages(channel), s.fake.Ephemerals(channel, slacktest.Ben)...) {
			if strings.Contains(m.Text+string(m.Blocks), secret) {
				t.Errorf("a message holds it: %q", m.Text)
			}
		}
	}
	if v, _ := s.fake.Home(slacktest.Ben); strings.Contains(string(v.Blocks)+v.PrivateMetadata, secret) {
		t.Error("the Home holds it")
	}
	for e, err := range api.ReadAudit.Call(ctx, s.Client, api.AuditRequest{Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := json.Marshal(e); strings.Contains(string(raw), secret) { // an event always encodes
			t.Errorf("the audit holds it: %s", raw)
		}
	}
	err = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))[:24]} {
			if bytes.Contains(raw, []byte(form)) {
				t.Errorf("%s holds it", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	s.touch(slacktest.Ben, "home:key")
	s.shows(slacktest.Ben, "tracker: TRACKER, not connected", "is deleted")
	s.slash(slacktest.Ben, "/nize credentials")
	s.told(slacktest.Ben, "tracker: TRACKER, not connected")
	s.wellBehaved()
}

// What somebody used is a picture on their Home and in their own conversation
// with nize, and in no channel.
func TestSlackUsagePicture(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m, err := s.fake.Mention(slacktest.Ben, slacktest.General, "#much")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(m, "You said much.") == 1 })
	s.ended(m)
	pictures := func(text string) (files []string) {
		var blocks []struct {
			Type string `json:"type"`
			Alt  string `json:"alt_text"`
			File struct {
				ID string `json:"id"`
			} `json:"slack_file"`
		}
		_ = json.Unmarshal([]byte(text), &blocks) // no blocks are none
		for _, b := range blocks {
			if b.Type == "image" && strings.Contains(b.Alt, "11 tokens") {
				files = append(files, b.File.ID)
			}
		}
		return files
	}
	home := func() []string {
		v, _ := s.fake.Home(slacktest.Ben)
		return pictures(string(v.Blocks))
	}
	began := time.Now()
	s.homeOf(slacktest.Ben)
	s.until("the picture on the Home", func() bool { return len(home()) == 1 })
	first := home()[0]
	f, ok := s.fake.File(first)
	if !ok || !bytes.HasPrefix(f.Content, []byte("\x89PNG")) {
		t.Errorf("the file %+v", f.Name)
	}
	s.homeOf(slacktest.Ben) // nothing changed: it is not uploaded again
	s.until("the picture on the Home", func() bool { return len(home()) == 1 })
	if again := home(); again[0] != first && !another(began) { // a day that begins is on the picture
		t.Errorf("the picture is %v, was %s", again, first)
	}

	s.slash(slacktest.Ben, "/nize usage 3")
	s.told(slacktest.Ben, "What you used in the last 3 days")
	s.until("the picture in private", func() bool {
		for _, m := range s.fake.Messages(s.fake.DMChannel(slacktest.Ben)) {
			if len(pictures(string(m.Blocks))) == 1 {
				return true
			}
		}
		return false
	})
	for _, channel := range []string{slacktest.General, slacktest.Secret, slacktest.Shared} {
		for _, m := range s.fake.Messages(channel) {
			if strings.Contains(string(m.Blocks), "slack_file") {
				t.Errorf("a picture stands in %s", channel)
			}
		}
	}
	// Another day's usage is another picture, and the old one goes.
	m, err = s.fake.Mention(slacktest.Ben, slacktest.General, "#more")
	if err != nil {
		t.Fatal(err)
	}
	s.until("an answer", func() bool { return s.answers(m, "You said more.") == 1 })
	s.ended(m)
	s.homeOf(slacktest.Ben)
	s.until("the old picture is deleted", func() bool { _, there := s.fake.File(first); return !there })
	s.wellBehaved()
}
