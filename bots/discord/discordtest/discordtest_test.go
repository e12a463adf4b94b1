package discordtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots/discord/discordtest"
)

func TestAMentionAThreadAndAnAnswer(t *testing.T) {
	b := newBot(t, discordtest.Options{})
	g, _ := b.identify("33281")
	said, err := b.fake.Mention(discordtest.Ann, discordtest.General, "what time is it?")
	if err != nil {
		t.Fatal(err)
	}
	if f := g.until("MESSAGE_CREATE"); !strings.Contains(string(f.Data), "what time is it?") || !strings.Contains(string(f.Data), `"guild_id":"`+discordtest.Guild) {
		t.Errorf("the event is %s", f.Data)
	}
	status, thread, _ := b.do("POST", "/channels/"+discordtest.General+"/messages/"+said.ID+"/threads", `{"name":"time","auto_archive_duration":1440}`)
	if status != 200 || thread["id"] != said.ID || thread["parent_id"] != discordtest.General {
		t.Fatalf("the thread: %d %v", status, thread)
	}
	g.until("THREAD_CREATE")
	if status, again, _ := b.do("POST", "/channels/"+discordtest.General+"/messages/"+said.ID+"/threads", `{"name":"time"}`); status != 400 || again["code"] != 160004.0 {
		t.Errorf("a second thread: %d %v", status, again)
	}
	post := func() (int, map[string]any) {
		status, m, _ := b.do("POST", "/channels/"+said.ID+"/messages", `{"content":"Noon @everyone <@`+discordtest.Ben+`>","nonce":"n1","enforce_nonce":true,"allowed_mentions":{"parse":[]}}`)
		return status, m
	}
	status, first := post()
	if _, second := post(); status != 200 || first["id"] != second["id"] {
		t.Errorf("the same nonce made %v and %v", first, second)
	}
	stands := b.fake.Messages(said.ID)
	if len(stands) != 1 || stands[0].Content != "Noon @everyone <@"+discordtest.Ben+">" || len(stands[0].Pinged) != 0 {
		t.Fatalf("the thread says %+v", stands)
	}
	b.do("PATCH", "/channels/"+said.ID+"/messages/"+stands[0].ID, `{"content":"Noon."}`)
	if got := b.fake.Messages(said.ID)[0]; got.Content != "Noon." || len(got.Versions) != 2 || got.Edited.IsZero() {
		t.Errorf("after an edit: %+v", got)
	}
	if status, m, _ := b.do("PATCH", "/channels/"+discordtest.General+"/messages/"+said.ID, `{"content":"x"}`); status != 403 || m["code"] != 50005.0 {
		t.Errorf("editing Ann's message: %d %v", status, m)
	}
	_, list, _ := b.do("GET", "/channels/"+said.ID+"/messages?limit=2", "")
	if n := len(list["list"].([]any)); n != 2 {
		t.Errorf("the thread's history has %d, with the message that began it", n)
	}
}

// What a body may not say, and where Discord says it.
func TestRefusals(t *testing.T) {
	b := newBot(t, discordtest.Options{Unlimited: true})
	button := func(id, label string) string {
		return fmt.Sprintf(`{"type":2,"style":1,"custom_id":%q,"label":%q}`, id, label)
	}
	row := func(children ...string) string {
		return `{"type":1,"components":[` + strings.Join(children, ",") + `]}`
	}
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	six := []string{}
	for i := range 6 {
		six = append(six, button(fmt.Sprint(i), "x"))
	}
	for name, test := range map[string]struct{ body, where string }{
		"too long":           {`{"content":"` + strings.Repeat("é", 2001) + `"}`, `"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH"`},
		"nothing":            {`{"content":"  "}`, `50006`},
		"eleven embeds":      {`{"embeds":[` + many(11, `{"title":"x"}`) + `]}`, `"embeds":{"_errors"`},
		"embeds together":    {`{"embeds":[` + many(2, `{"description":"`+strings.Repeat("x", 3500)+`"}`) + `]}`, `MAX_EMBED_SIZE_EXCEEDED`},
		"six rows":           {`{"content":"x","components":[` + strings.Join([]string{row(six[0]), row(six[1]), row(six[2]), row(six[3]), row(six[4]), row(six[5])}, ",") + `]}`, `"components":{"_errors"`},
		"six in a row":       {`{"content":"x","components":[` + row(six...) + `]}`, `"0":{"components":{"_errors"`},
		"the same id":        {`{"content":"x","components":[` + row(six[0], six[0]) + `]}`, `COMPONENT_CUSTOM_ID_DUPLICATED`},
		"a long id":          {`{"content":"x","components":[` + row(button(strings.Repeat("x", 101), "x")) + `]}`, `"custom_id":{"_errors"`},
		"a long label":       {`{"content":"x","components":[` + row(button("a", strings.Repeat("x", 81))) + `]}`, `"label":{"_errors"`},
		"26 options":         {`{"content":"x","components":[` + row(`{"type":3,"custom_id":"s","options":[`+many(26, `{"label":"x","value":"x"}`)+`]}`) + `]}`, `"_errors":[{"code":"BASE_TYPE_BAD_LENGTH"`},
		"v2 without flag":    {`{"content":"x","components":[{"type":10,"content":"x"}]}`, `UNION_TYPE_CHOICES`},
		"v2 with content":    {`{"content":"x","flags":32768,"components":[{"type":10,"content":"x"}]}`, `MESSAGE_CANNOT_USE_LEGACY_FIELDS`},
		"41 components":      {`{"flags":32768,"components":[` + many(41, `{"type":14}`) + `]}`, `COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED`},
		"4001 characters":    {`{"flags":32768,"components":[` + many(3, `{"type":10,"content":"`+strings.Repeat("x", 1400)+`"}`) + `]}`, `COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED`},
		"parse and users":    {`{"content":"x","allowed_mentions":{"parse":["users"],"users":["1"]}}`, `MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE`},
		"a number for words": {`{"content":5}`, `BASE_TYPE_BAD`},
		"no JSON":            {`{"content":`, `50109`},
	} {
		status, answer, _ := b.do("POST", "/channels/"+discordtest.General+"/messages", test.body)
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if status != 400 || !strings.Contains(string(raw), test.where) {
			t.Errorf("%s: %d %s; want %s", name, status, raw, test.where)
		}
	}
	if n := len(b.fake.Messages(discordtest.General)); n != 0 {
		t.Errorf("%d of them stand there", n)
	}
	for _, test := range []struct {
		method, path string
		status, code int
	}{
		{"GET", "/channels/1", 404, 10003},
		{"GET", "/channels/" + discordtest.Random, 403, 50001},
		{"GET", "/guilds/" + discordtest.Guild + "/members/" + discordtest.Stranger, 404, 10007},
		{"GET", "/guilds/" + discordtest.Guild + "/members/12", 404, 10013},
		{"GET", "/nonsense", 404, 0},
	} {
		if status, answer, _ := b.do(test.method, test.path, ""); status != test.status || answer["code"] != float64(test.code) {
			t.Errorf("%s %s: %d %v", test.method, test.path, status, answer)
		}
	}
	if status, _, _ := b.do("GET", "/users/@me", "", func(r *http.Request) { r.Header.Set("Authorization", "Bot x") }); status != 401 {
		t.Errorf("another token: %d", status)
	}
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBot(t, discordtest.Options{})
		post := func() (int, map[string]any, http.Header) {
			return b.do("POST", "/channels/"+discordtest.General+"/messages", `{"content":"x"}`)
		}
		for n := range 5 {
			if status, _, header := post(); status != 200 || header.Get("X-RateLimit-Remaining") != fmt.Sprint(4-n) || header.Get("X-RateLimit-Bucket") == "" {
				t.Errorf("post %d: %d %v", n, status, header)
			}
		}
		status, body, header := post()
		if after, _ := body["retry_after"].(float64); status != 429 || after <= 0 || after > 5 || body["global"] != false || header.Get("Retry-After") != "5" {
			t.Errorf("the sixth: %d %v %v", status, body, header)
		}
		if status, _, _ := b.do("POST", "/channels/"+discordtest.Secret+"/messages", `{"content":"x"}`); status != 200 {
			t.Errorf("another channel: %d", status)
		}
		post()
		if st := b.fake.Stats(); len(st.Limits) != 2 || st.Ignored != 1 || st.Limits[0].Ignored != 1 {
			t.Errorf("counted %+v, %d ignored", st.Limits, st.Ignored)
		}
		time.Sleep(5 * time.Second)
		if status, _, _ := post(); status != 200 {
			t.Errorf("after five seconds: %d", status)
		}
		last := 0
		for range 60 {
			last, body, _ = b.do("GET", "/users/@me", "")
		}
		if last != 429 || body["global"] != true {
			t.Errorf("60 in a second: %d %v", last, body)
		}
	})
}

func TestGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBot(t, discordtest.Options{})
		g, f := b.identify("33281")
		var ready struct {
			Session string `json:"session_id"`
			Resume  string `json:"resume_gateway_url"`
		}
		if err := json.Unmarshal(f.Data, &ready); err != nil || ready.Session == "" || ready.Resume == "" {
			t.Fatalf("READY is %s", f.Data)
		}
		seq := g.until("GUILD_CREATE").Seq
		b.fake.Drop()
		if _, err := b.fake.Say(discordtest.Ann, discordtest.General, "meanwhile"); err != nil {
			t.Fatal(err)
		}
		again := b.dial("/?v=9")
		again.next()
		again.send(fmt.Sprintf(`{"op":6,"d":{"token":%q,"session_id":%q,"seq":%d}}`, b.fake.BotToken(), ready.Session, seq))
		if f := again.until("MESSAGE_CREATE"); !strings.Contains(string(f.Data), "meanwhile") {
			t.Errorf("resumed with %s", f.Data)
		}
		again.until("RESUMED")
		again.send(`{"op":1,"d":5}`)
		if f, _ := again.next(); f.Op != 11 {
			t.Errorf("a heartbeat was answered with %+v", f)
		}
		b.fake.ExpireSessions()
		b.fake.Drop()
		late := b.dial("/?v=9")
		late.next()
		late.send(fmt.Sprintf(`{"op":6,"d":{"token":%q,"session_id":%q,"seq":%d}}`, b.fake.BotToken(), ready.Session, seq))
		if f, _ := late.next(); f.Op != 9 || string(f.Data) != "false" {
			t.Errorf("a session that is no more: %+v", f)
		}
		time.Sleep(time.Minute + 5*time.Second) // without a heartbeat
		if _, code := late.next(); code != 4009 {
			t.Errorf("without heartbeats: closed with %d", code)
		}
	})
}

func TestCloseCodes(t *testing.T) {
	identify := `{"op":2,"d":{"token":"` + discordtest.Token + `","intents":%s,"properties":{"os":"linux"}%s}}`
	for name, test := range map[string]struct {
		query, send string
		code        int
	}{
		"opcode":    {"/?v=9", `{"op":77}`, 4001},
		"no JSON":   {"/?v=9", `{`, 4002},
		"too early": {"/?v=9", `{"op":3,"d":{}}`, 4003},
		"token":     {"/?v=9", `{"op":2,"d":{"token":"x","intents":1,"properties":{}}}`, 4004},
		"shard":     {"/?v=9", fmt.Sprintf(identify, "1", `,"shard":[2,1]`), 4010},
		"version":   {"/?v=6", "", 4012},
		"intents":   {"/?v=9", fmt.Sprintf(identify, "-1", ""), 4013},
		"content":   {"/?v=9", fmt.Sprintf(identify, "32768", ""), 4014},
	} {
		b := newBot(t, discordtest.Options{NoContent: true})
		g := b.dial(test.query)
		if test.send != "" {
			g.next()
			g.send(test.send)
		}
		if _, code := g.next(); code != test.code {
			t.Errorf("%s: closed with %d, want %d", name, code, test.code)
		}
	}
}

// Without the intent a message says nothing, unless it is for the bot.
func TestContentIsPrivileged(t *testing.T) {
	b := newBot(t, discordtest.Options{NoContent: true})
	g, _ := b.identify("4609")
	say := func(f func() (discordtest.Message, error)) string {
		t.Helper()
		if _, err := f(); err != nil {
			t.Fatal(err)
		}
		var m struct {
			Content string `json:"content"`
		}
		if err := json.Unmarshal(g.until("MESSAGE_CREATE").Data, &m); err != nil {
			t.Fatal(err)
		}
		return m.Content
	}
	if got := say(func() (discordtest.Message, error) { return b.fake.Say(discordtest.Ann, discordtest.General, "psst") }); got != "" {
		t.Errorf("the bot reads %q", got)
	}
	if got := say(func() (discordtest.Message, error) { return b.fake.Mention(discordtest.Ann, discordtest.General, "hi") }); !strings.HasSuffix(got, "hi") {
		t.Errorf("of a mention the bot reads %q", got)
	}
	if got := say(func() (discordtest.Message, error) { return b.fake.DM(discordtest.Ann, "hi") }); got != "hi" {
		t.Errorf("of a direct message the bot reads %q", got)
	}
}

// answerer answers each interaction with what f says.
func (b *bot) answerer(g *gate, f func(id, token string, kind int, raw string)) {
	go func() {
		for {
			fr, code := g.next()
			if code != 0 {
				return
			}
			if fr.Type != "INTERACTION_CREATE" {
				continue
			}
			var in struct {
				ID    string `json:"id"`
				Token string `json:"token"`
				Type  int    `json:"type"`
			}
			if json.Unmarshal(fr.Data, &in) == nil {
				f(in.ID, in.Token, in.Type, string(fr.Data))
			}
		}
	}()
}

func TestInteractions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBot(t, discordtest.Options{Unlimited: true, Heartbeat: time.Hour})
		g, _ := b.identify("33281")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		commands := `[{"name":"nize","description":"Talk to nize","options":[{"type":1,"name":"ask","description":"Ask","options":[{"type":3,"name":"question","description":"What","required":true,"autocomplete":true}]}]},{"name":"Ask nize about this","type":3}]`
		if status, answer, _ := b.do("PUT", "/applications/"+discordtest.App+"/guilds/"+discordtest.Guild+"/commands", commands); status != 200 {
			t.Fatalf("registering: %d %v", status, answer)
		}
		if status, _, _ := b.do("PUT", "/applications/"+discordtest.App+"/commands", `[{"name":"Nize","description":""}]`); status != 400 {
			t.Errorf("a bad command: %d", status)
		}
		var token, last string
		var answer func(id, tok string)
		b.answerer(g, func(id, tok string, _ int, raw string) { token, last = tok, raw; answer(id, tok) })
		with := func(body string) {
			answer = func(id, tok string) { b.do("POST", "/interactions/"+id+"/"+tok+"/callback", body) }
		}
		// A command, deferred for one alone, and its answer later.
		with(`{"type":5,"data":{"flags":64}}`)
		if err := b.fake.Slash(ctx, discordtest.Ben, discordtest.General, "/nize ask what is this?"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(last, `"value":"what is this?"`) || !strings.Contains(last, `"locale":"de"`) {
			t.Errorf("the interaction is %s", last)
		}
		if status, _, _ := b.do("PATCH", "/webhooks/"+discordtest.App+"/"+token+"/messages/@original", `{"content":"That."}`); status != 200 {
			t.Errorf("the answer: %d", status)
		}
		if got := b.fake.Ephemerals(discordtest.General, discordtest.Ben); len(got) != 1 || got[0].Content != "That." || len(b.fake.Visible(discordtest.General, discordtest.Ann)) != 0 {
			t.Errorf("Ben sees %+v", got)
		}
		time.Sleep(15*time.Minute + time.Second)
		if status, body, _ := b.do("PATCH", "/webhooks/"+discordtest.App+"/"+token+"/messages/@original", `{"content":"late"}`); status != 401 || body["code"] != 50027.0 {
			t.Errorf("after 15 minutes: %d %v", status, body)
		}
		// Autocompletion.
		with(`{"type":8,"data":{"choices":[{"name":"why","value":"why"}]}}`)
		if got, err := b.fake.Complete(ctx, discordtest.Ben, discordtest.General, "/nize ask w"); err != nil || len(got) != 1 || got[0].Text() != "why" || !strings.Contains(last, `"focused":true`) {
			t.Errorf("offered %v, %v; asked with %s", got, err, last)
		}
		// A card, a modal from its button, and what is typed there.
		_, card, _ := b.do("POST", "/channels/"+discordtest.General+"/messages", `{"content":"card","components":[{"type":1,"components":[{"type":2,"style":1,"custom_id":"edit 1","label":"Edit"}]}]}`)
		at, _ := b.fake.Message(discordtest.General, card["id"].(string))
		with(`{"type":9,"data":{"custom_id":"m","title":"Edit","components":[{"type":1,"components":[{"type":4,"custom_id":"json","label":"Arguments","style":2,"value":"{}"}]}]}}`)
		if err := b.fake.Press(ctx, discordtest.Ann, at, "Edit"); err != nil {
			t.Fatal(err)
		}
		with(`{"type":6}`)
		if err := b.fake.Submit(ctx, discordtest.Ann, map[string][]string{"json": {`{"n":2}`}}); err != nil || !strings.Contains(last, `{\"n\":2}`) {
			t.Errorf("the modal: %v; %s", err, last)
		}
		if _, open := b.fake.Dialog(discordtest.Ann); open {
			t.Error("the modal is still open")
		}
		// Nobody answers; then somebody does, twice.
		var id string
		answer = func(i, _ string) { id = i }
		if err := b.fake.Press(ctx, discordtest.Ann, at, "edit*"); err != discordtest.ErrNoAnswer {
			t.Errorf("without an answer: %v", err)
		}
		synctest.Wait() // the answerer has written what it heard
		if status, body, _ := b.do("POST", "/interactions/"+id+"/"+token+"/callback", `{"type":6}`); status != 404 || body["code"] != 10062.0 {
			t.Errorf("an answer after three seconds: %d %v", status, body)
		}
		answer = func(i, tok string) {
			b.do("POST", "/interactions/"+i+"/"+tok+"/callback", `{"type":6}`)
			if status, body, _ := b.do("POST", "/interactions/"+i+"/"+tok+"/callback", `{"type":6}`); status != 400 || body["code"] != 40060.0 {
				t.Errorf("a second answer: %d %v", status, body)
			}
		}
		if err := b.fake.Press(ctx, discordtest.Ann, at, "Edit"); err != nil {
			t.Error(err)
		}
		with(`{"type":6}`)
		if err := b.fake.Menu(ctx, discordtest.Ann, at, "Ask nize about this"); err != discordtest.ErrNoAnswer { // 6 is no answer to a command
			t.Errorf("a command on a message: %v", err)
		}
	})
}
