package daemon_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// onSlack connects a daemon with a Slack of our own, which has time for a busy
// machine, and makes Ann its admin.
func onSlack(t *testing.T, k *killable) *slacktest.Server {
	t.Helper()
	c := &slackChat{t: t, Server: slacktest.Running(t, slacktest.Options{Unlimited: true, Patience: time.Minute, RetryAfter: []time.Duration{0, 0, 0}})}
	c.connect(k)
	return c.Server
}

// restart kills the process and waits until a new one is linked. The link of
// the dead one may be open for a while: what is sent there is not acknowledged,
// and on a busy machine given up before there is another.
func (k *killable) restart(fake *slacktest.Server) {
	k.t.Helper()
	opened := fake.Stats().Opened
	k.kill()
	fake.Mend()
	k.start()
	k.until("the bot is back", func() bool { st := fake.Stats(); return st.Opened > opened && st.Links == 1 })
}

// card waits for the one message about a call, as it stands.
func card(k *killable, fake *slacktest.Server, in slacktest.Message, state string) (m slacktest.Message) {
	k.t.Helper()
	k.until("a card that is "+state, func() bool {
		n := 0
		for _, got := range fake.Thread(in.Channel, in.Root()) {
			if strings.Contains(got.Text, "\ncall: ") {
				m = got
				n++
			}
		}
		if n > 1 {
			k.t.Fatalf("%d cards for one call", n)
		}
		return n == 1 && isIn(m.Text, state)
	})
	return m
}

// isIn reports whether a card is in a state. One that a person kept from running says
// so in place of the state.
func isIn(card, state string) bool {
	no := state == "cancelled" || state == "refused"
	return strings.Contains(card, "\nstate: "+state) || no && (strings.Contains(card, "\nstate: declined by ") || strings.Contains(card, "\nstate: withdrawn by "))
}

// Pulling the plug behind a card in Slack: the card that was posted before is
// edited in its place, its button runs the call once, and a call that was cut
// is "outcome unknown" and never runs again.
func TestSlackKilled(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	began, hold := make(chan struct{}, 4), make(chan struct{})
	defer close(hold)
	up := mcptest.New(t, mcptest.Options{Name: "box", Tools: []mcptest.Tool{
		{Name: "note", Description: "Write a note down.", Do: func(context.Context, json.RawMessage) json.RawMessage {
			runs.Add(1)
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}},
		{Name: "bake", Description: "Bake a slow cake in the oven.", Annotations: &sdk.ToolAnnotations{}, Do: func(ctx context.Context, _ json.RawMessage) json.RawMessage {
			runs.Add(1)
			began <- struct{}{}
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return json.RawMessage(`{"content":[]}`)
		}},
	}})
	k := newKillable(t)
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "box", URL: up.HTTP()}}); err != nil {
		t.Fatal(err)
	}
	fake := onSlack(t, k)

	asked, err := fake.Mention(slacktest.Ann, slacktest.General, "please write a note down")
	if err != nil {
		t.Fatal(err)
	}
	posted := card(k, fake, asked, "waiting for approval")
	k.restart(fake)
	press := func(m slacktest.Message) {
		t.Helper()
		if err := fake.Press(ctx, slacktest.Ann, m, "call-run"); err != nil {
			t.Fatal(err)
		}
	}
	press(posted)
	if done := card(k, fake, asked, "done"); done.TS != posted.TS {
		t.Errorf("the card is at %s, was posted at %s", done.TS, posted.TS)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}

	asked, err = fake.Mention(slacktest.Ann, slacktest.General, "please bake a slow cake in the oven")
	if err != nil {
		t.Fatal(err)
	}
	press(card(k, fake, asked, "waiting for approval"))
	<-began
	k.restart(fake)
	card(k, fake, asked, "outcome unknown")
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs, want 2: a call whose outcome is unknown must not run again", n)
	}
	if v, err := api.CheckAudit(ctx, k.Client, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		t.Errorf("audit %+v, %v", v, err)
	}
}

// Where alerts.to names nothing, the admins on Slack are told, and the message
// is edited when it is over.
func TestSlackAlerts(t *testing.T) {
	t.Parallel()
	k := newKillable(t)
	fake := onSlack(t, k)
	channel := fake.DMChannel(slacktest.Ann)
	if _, err := api.TestAlert.Call(t.Context(), k.Client, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	list := fake.Messages(channel)
	if len(list) == 0 || !strings.Contains(list[len(list)-1].Text, "Alert: This is a test") {
		t.Errorf("Ann reads %+v", list)
	}
	if _, err := api.PutSetting.Call(t.Context(), k.Client, api.PutSettingRequest{Key: "alerts.to", Value: "slack:" + slacktest.General}); err != nil {
		t.Fatal(err)
	}
	made, err := api.TestAlert.Call(t.Context(), k.Client, api.Empty{})
	if err != nil || made.To != "slack:"+slacktest.General {
		t.Errorf("%+v, %v", made, err)
	}
	list = fake.Messages(slacktest.General)
	if len(list) == 0 || !strings.Contains(list[len(list)-1].Text, "This is a test") {
		t.Errorf("the channel reads %+v", list)
	}
	for _, bad := range []string{"slack:", "slack:general", "slack:C1/2"} {
		if _, err := api.PutSetting.Call(t.Context(), k.Client, api.PutSettingRequest{Key: "alerts.to", Value: bad}); err == nil {
			t.Errorf("alerts.to %q is taken", bad)
		}
	}
}
