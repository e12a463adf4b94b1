package daemon_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
	storeplan "nize/store/plan"
)

// serveDrawing brings an extension whose tool returns a text and a picture of one
// point, and an agent that everybody gets and that has it.
func (m *meeting) serveDrawing() {
	m.t.Helper()
	dir := filepath.Join(m.dir, "extensions", "draw")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	for name, content := range map[string]string{
		"run":            "#!/bin/sh\ncat >/dev/null\nprintf '%s' '" + imageResult + "'\n",
		"extension.json": `{"name": "draw", "description": "Draws.", "inputSchema": {"type": "object"}, "command": "./run"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			m.t.Fatal(err)
		}
	}
	ctx := m.t.Context()
	m.until("the extension is there", func() bool {
		_, err := api.GetTool.Call(ctx, m.Client, api.ToolRequest{ID: "native:draw"})
		return err == nil
	})
	agent := store.Agent{Model: "speaker", AllowedTools: []string{"native:draw"}, Default: true}
	if _, err := api.PutAgent.Call(ctx, m.Client, api.PutAgentRequest{ID: "artist", Agent: agent}); err != nil {
		m.t.Fatal(err)
	}
	m.says.plan("draw", plan{tool: "native:draw", args: `{}`})
}

// The picture that a native tool returns stands in the thread, once its call has a yes,
// and is shown to who presses for the result.
func testNativeImages(m *meeting) {
	m.serveDrawing()
	at, posted := m.ask("ben", "draw")
	if err := m.press(m.t.Context(), "ben", posted, "run"); err != nil {
		m.t.Fatal(err)
	}
	m.until("the image is in the thread", func() bool {
		n := 0
		for _, s := range m.said(at) {
			n += s.images
		}
		return n == 1 && m.answered(at, "Image from native:draw") == 1 && m.answered(at, "That was draw.") == 1
	})
	for _, s := range m.said(at) {
		if strings.Contains(s.buttons, "result:"+posted.call) {
			if err := m.pressResult(m.t.Context(), "ben", s, posted.call); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	m.until("ben sees it alone", func() bool { return m.images("ben") == 1 })
	m.behaved("invalid slack file") // it looks at it first
}

// A message beyond a plan is not taken, and its author alone is told so, with when the
// next is; one that a platform sends again counts once.
func testPlan(m *meeting) {
	ctx, one := m.t.Context(), int64(1)
	if _, err := api.PutPlan.Call(ctx, m.Client, api.PutPlanRequest{ID: "small", Plan: storeplan.Plan{Name: "Small", Messages: &one}}); err != nil {
		m.t.Fatal(err)
	}
	if _, err := api.AssignPlan.Call(ctx, m.Client, api.AssignPlanRequest{Plan: "small", Subject: store.Everybody}); err != nil {
		m.t.Fatal(err)
	}
	m.says.plan("first", plan{say: []string{"You said first."}})
	m.says.plan("second", plan{say: []string{"You said second."}})
	at, err := m.mention("ben", "#first")
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("the answer", func() bool { return m.answered(at, "You said first.") == 1 })
	m.again(m.events() - 1)
	asked := m.says.asked.Load()
	if err := m.reply("ben", at, "#second"); err != nil {
		m.t.Fatal(err)
	}
	m.told("ben", "this message was not taken: all 1 messages a month of the plan Small are used up. It resets on ")
	for _, s := range m.alone("cho") {
		if strings.Contains(s.text, "used up") {
			m.t.Errorf("cho is told %s", s.text)
		}
	}
	if n := m.answered(at, "used up"); n != 0 || m.says.asked.Load() != asked {
		m.t.Errorf("the thread says so %d times; the model was asked %d times more", n, m.says.asked.Load()-asked)
	}
	// Another person has their own.
	if at, err = m.mention("cho", "#second"); err != nil {
		m.t.Fatal(err)
	}
	m.until("cho is answered", func() bool { return m.answered(at, "You said second.") == 1 })
	m.behaved()
}

// inPublic has a public address, as behind a proxy.
func inPublic(t *testing.T) *killable {
	r := open(t, t.TempDir(), map[string]string{"NIZE_PUBLIC_URL": "https://nize.example"})
	return &killable{Client: r.Client, t: t, dir: r.dir}
}

var linkForm = regexp.MustCompile(`https://nize\.example(/w/[0-9A-Z]{26}\.[0-9a-z]+\.[\w-]{43})"`)

// A result whose tool has a view has a button that leads to it: who has the link sees
// the view, until the result is erased; a private one is for its requester alone.
func testViewLinks(m *meeting) {
	ctx := m.t.Context()
	agent := store.Agent{Model: "speaker", AllowedTools: []string{"native:show-chart", "native:get-plan-usage"}, Default: true}
	if _, err := api.PutAgent.Call(ctx, m.Client, api.PutAgentRequest{ID: "artist", Agent: agent}); err != nil {
		m.t.Fatal(err)
	}
	if _, err := api.PutSetting.Call(ctx, m.Client, api.PutSettingRequest{Key: "approvals.mode", Value: "none"}); err != nil {
		m.t.Fatal(err)
	}
	m.says.plan("chart", plan{tool: "native:show-chart", args: `{"title":"Signups","bars":[{"label":"Mon","value":12}]}`})
	m.says.plan("usage", plan{tool: "native:get-plan-usage", args: `{}`})
	at, err := m.mention("ben", "please #chart")
	if err != nil {
		m.t.Fatal(err)
	}
	path := m.viewLink(func() []saying { return m.said(at) })
	b := browserAt(m.t, m.Client)
	open := func(b *browser, path string) page {
		return b.post(path+"/frame", inJSON, `{"theme":"dark"}`, "Sec-Fetch-Site", "same-origin")
	}
	if p := b.get(path); p.status != 200 || p.header.Get("Referrer-Policy") != "no-referrer" || strings.Contains(p.body, path) {
		m.t.Errorf("the page of the link: %d, %v", p.status, p.header)
	}
	var v struct {
		Ticket, Server, Requester, Thread, Viewer string
		Tool                                      struct{ Name string }
	}
	p := open(b, path)
	if err := json.Unmarshal([]byte(p.body), &v); err != nil || v.Server != "native" || v.Tool.Name != "show-chart" || !strings.HasPrefix(strings.ToLower(v.Requester), "ben") || v.Viewer != "" || v.Thread != "" {
		m.t.Fatalf("opened: %d, %s", p.status, p.body)
	}
	if p := b.get("/app/frames/" + v.Ticket); p.status != 200 || !strings.Contains(p.body, `"theme":"dark"`) || !strings.Contains(p.body, "Signups") {
		m.t.Errorf("the view: %d, %s", p.status, p.body)
	}
	if p := b.post(path+"/frame", inJSON, `{}`, "Sec-Fetch-Site", "cross-site"); p.status != http.StatusForbidden {
		m.t.Errorf("for another site: %d", p.status)
	}
	last := path[:len(path)-1] + map[bool]string{true: "B", false: "A"}[path[len(path)-1] == 'A']
	for _, wrong := range []string{last, strings.Replace(path, ".", ".z", 1), "/w/x", "/w/..."} {
		if shell, p := b.get(wrong), open(b, wrong); shell.status != http.StatusNotFound || p.status != http.StatusNotFound {
			m.t.Errorf("%s: %d, %d", wrong, shell.status, p.status)
		}
	}
	events := ""
	for e, err := range api.ReadAudit.Call(ctx, m.Client, api.AuditRequest{Limit: 1000}) {
		if err != nil {
			m.t.Fatal(err)
		}
		line, _ := json.Marshal(e)
		events += string(line)
	}
	if signature := path[strings.LastIndexByte(path, '.')+1:]; strings.Contains(events, signature) || !strings.Contains(events, "view.open") {
		m.t.Error("the trail has the link, or not that it was opened")
	}
	if _, err := m.mention("ben", "please #usage"); err != nil {
		m.t.Fatal(err)
	}
	private := m.viewLink(func() []saying { return m.alone("ben") })
	if p := open(b, private); p.status != http.StatusUnauthorized || !strings.Contains(p.body, "signed_out") {
		m.t.Errorf("a private result, signed out: %d, %s", p.status, p.body)
	}
	for who, want := range map[string]int{"ann": 404, "ben": 200} {
		b := browserAt(m.t, m.Client)
		users, err := api.ListUsers.Call(ctx, m.Client, api.Empty{})
		if err != nil {
			m.t.Fatal(err)
		}
		i := slices.IndexFunc(users.Items, func(u store.User) bool { return strings.Contains(strings.Join(u.Identities, " "), m.id(who)) })
		b.signIn(m.Client, users.Items[i].ID)
		if p := open(b, private); p.status != want {
			m.t.Errorf("a private result, for %s: %d, %s", who, p.status, p.body)
		}
	}
	// A renderer stands before the view.
	if _, err := api.PutRenderer.Call(ctx, m.Client, api.PutRendererRequest{ID: "native:show-chart", Document: `{"title": "A chart of {{.title}}"}`}); err != nil {
		m.t.Fatal(err)
	}
	again, err := m.mention("ben", "please #chart")
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("it is rendered and answered", func() bool {
		return m.answered(again, "A chart of Signups") == 1 && m.answered(again, "That was chart.") == 1
	})
	if slices.ContainsFunc(m.said(again), func(s saying) bool { return linkForm.MatchString(s.buttons) }) {
		m.t.Error("a rendered result has the button, too")
	}
	call, _, _ := strings.Cut(strings.TrimPrefix(path, "/w/"), ".")
	c, err := api.GetCall.Call(ctx, m.Client, api.CallRequest{ID: call, Reason: "the test looks"})
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := api.ForgetConversation.Call(ctx, m.Client, api.ConversationRequest{ID: c.Thread}); err != nil {
		m.t.Fatal(err)
	}
	if shell, p := b.get(path), open(b, path); shell.status != 404 || p.status != 404 {
		m.t.Errorf("forgotten: %d, %d", shell.status, p.status)
	}
	m.behaved()
}

// viewLink waits for a message with a link to a view, and is its path.
func (m *meeting) viewLink(list func() []saying) (path string) {
	m.t.Helper()
	m.until("a link to the view", func() bool {
		for _, s := range list() {
			if found := linkForm.FindStringSubmatch(s.buttons); found != nil {
				path = found[1]
			}
		}
		return path != ""
	})
	return path
}
