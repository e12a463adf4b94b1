package daemon_test

import (
	"os"
	"path/filepath"
	"strings"

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
