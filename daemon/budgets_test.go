package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

// thirsty is a model service whose every answer costs 1,000 tokens of prompt
// and all the tokens that the answer may have. hold, if set, keeps answers back.
func thirsty(t *testing.T, hold chan struct{}) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // what models there are
			fmt.Fprint(w, `{"data":[{"id":"parrot"}]}`)
			return
		}
		var req struct {
			Max  int `json:"max_tokens"`
			Most int `json:"max_completion_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Max+req.Most == 0 {
			t.Errorf("request %+v, %v", req, err)
		}
		asked.Add(1)
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\n"+
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", req.Max+req.Most)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/v1", asked
}

// withModel makes a daemon's assistant speak by that service, at most tokens an
// answer, and lifts the limits of one person's turns and messages.
func withModel(t *testing.T, r *testDaemon, url string, tokens int) {
	t.Helper()
	ctx := t.Context()
	if _, err := api.AddProvider.Call(ctx, r.Client, api.AddProviderRequest{Name: "parrots", Kind: "openai-compatible", BaseURL: url, Key: api.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SetModel.Call(ctx, r.Client, api.SetModelRequest{Name: "smart", Target: "parrots/parrot"}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutAgent.Call(ctx, r.Client, api.PutAgentRequest{ID: "main", Agent: store.Agent{ID: "main", Default: true, MaxTokens: tokens}}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"limits.user.turns": "0", "limits.user.messages": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(ctx, r.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends one message in a conversation of its own and returns what was said.
func ask(ctx context.Context, r *testDaemon, text string) (string, error) {
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{Zone: "Asia/Tokyo"})
	if err != nil {
		return "", err
	}
	sent, said := false, ""
	for e, err := range api.FollowConversation.Call(ctx, r.Client, api.ConversationRequest{ID: th.ID}) {
		if err != nil {
			return "", err
		}
		if !sent {
			sent = true
			if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1", Text: text}); err != nil {
				return "", err
			}
		}
		if m := e.Message; m != nil && m.Final && (m.Kind == store.TextMessage || m.Kind == store.ErrorMessage) {
			said = m.Text
		}
		if e.State == api.ChatIdle && said != "" {
			return said, nil
		}
	}
	return "", errors.New("the conversation's stream ended")
}

// another says whether a day has begun, in UTC, since that moment: what is daily
// begins anew then.
func another(since time.Time) bool { return time.Now().UTC().Day() != since.UTC().Day() }

// TestParallelTurns starts 50 turns at once against a budget that is nearly
// spent: it is exceeded by one call at most, and who is refused reads why.
func TestParallelTurns(t *testing.T) {
	t.Parallel()
	url, asked := thirsty(t, nil)
	began := time.Now()
	r := open(t, t.TempDir(), nil)
	withModel(t, r, url, 900)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const limit, call = 10_000, 1900
	if _, err := api.SetBudget.Call(ctx, r.Client, api.SetBudgetRequest{Subject: "team:local", Period: store.Daily, Amount: fmt.Sprint(limit, "tokens")}); err != nil {
		t.Fatal(err)
	}
	said := make([]string, 50)
	var turns sync.WaitGroup
	for i := range said {
		turns.Go(func() {
			var err error
			if said[i], err = ask(ctx, r, fmt.Sprint("hello ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	turns.Wait()
	answered := 0
	for _, text := range said {
		if text == "Hello." {
			answered++
		} else if !strings.Contains(text, "budget of team local (10,000 tokens)") || !strings.Contains(text, "09:00 (Asia/Tokyo)") {
			t.Errorf("refused with %q", text)
		}
	}
	budgets, err := api.ListBudgets.Call(ctx, r.Client, api.ListBudgetsRequest{})
	if err != nil || len(budgets.Items) != 1 {
		t.Fatalf("budgets %+v, %v", budgets, err)
	}
	used := budgets.Items[0].Used
	if another(began) {
		t.Skip("midnight in UTC: what was used before it is not in the figures")
	}
	if used > limit+call || used != int64(answered)*call || int64(answered) != asked.Load() || budgets.Items[0].Reserved != 0 {
		t.Errorf("%d answered of %d asked, %d tokens used of %d, %d reserved", answered, asked.Load(), used, limit, budgets.Items[0].Reserved)
	}
	if answered < limit/(call+2*1000) {
		t.Errorf("only %d turns were answered", answered)
	}
}

// TestStoppedCalls: a call that a stop, or the end of the daemon, cut off holds
// no room, and is not charged where it gave nothing.
func TestStoppedCalls(t *testing.T) {
	t.Parallel()
	hold, began := make(chan struct{}), time.Now()
	url, asked := thirsty(t, hold)
	dir := t.TempDir()
	r := open(t, dir, nil)
	withModel(t, r, url, 900)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := api.SetBudget.Call(ctx, r.Client, api.SetBudgetRequest{Subject: "team:local", Period: store.Daily, Amount: "10000tokens"}); err != nil {
		t.Fatal(err)
	}
	th, err := api.StartConversation.Call(ctx, r.Client, api.StartConversationRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "1", Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	held := func() (reserved, used int64) {
		t.Helper()
		list, err := api.ListBudgets.Call(ctx, r.Client, api.ListBudgetsRequest{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list.Items[0].Reserved, list.Items[0].Used
	}
	eventually(t, "the model is asked", func() bool { return asked.Load() == 1 })
	if reserved, used := held(); reserved < 900 || used != 0 {
		t.Errorf("while it runs: %d reserved, %d used", reserved, used)
	}
	if _, err := api.StopTurn.Call(ctx, r.Client, api.ConversationRequest{ID: th.ID}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stopped call holds nothing", func() bool { reserved, _ := held(); return reserved == 0 })
	if _, err := api.SendMessage.Call(ctx, r.Client, api.SendMessageRequest{Conversation: th.ID, Key: "2", Text: "hello again"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the model is asked again", func() bool { return asked.Load() == 2 })
	r.stop() // the turn is left open, and goes on after the restart
	close(hold)
	r = open(t, dir, nil)
	eventually(t, "the turn is done after the restart", func() bool { reserved, used := held(); return reserved == 0 && (used == 1900 || another(began)) })
}

// membersSpend checks that a member sees what they spent and may spend, and
// nobody else's; the models behind the names stay hidden.
func membersSpend(ctx context.Context, t *testing.T, c *api.Client, as ranAs) {
	t.Helper()
	if _, err := api.AddUser.Call(ctx, c, api.AddUserRequest{Name: "otto"}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []api.SetBudgetRequest{{Subject: "user:otto", Period: store.Monthly, Amount: "7usd"}, {Subject: "team:local", Period: store.Monthly, Amount: "77usd"}, {Subject: "team:slack:T1", Period: store.Monthly, Amount: "777usd"}} {
		if _, err := api.SetBudget.Call(ctx, c, b); err != nil {
			t.Fatal(err)
		}
	}
	var mine store.UsageReport
	out, code := as("usage", "--by", "model", "--json")
	if err := json.Unmarshal([]byte(out), &mine); err != nil || code != 0 || mine.Total.Calls == 0 || strings.Contains(out, "planner") {
		t.Errorf("a member's usage: exit %d, %v, %s", code, err, out)
	}
	for _, by := range []string{"day", "user", "team", "agent", "conversation"} {
		var report store.UsageReport
		out, code := as("usage", "--by", by, "--json")
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.Total.Calls != mine.Total.Calls {
			t.Errorf("by %s: exit %d, %v, %s", by, code, err, out)
		}
	}
	for _, args := range [][]string{
		{"usage", "--user", "otto"}, {"usage", "--by", "provider"}, {"budgets", "list", "--user", "otto"}, {"budgets", "set", "user:*", "--daily", "unlimited"},
		{"budgets", "remove", "team:local", "--yes"}, {"models", "price", "offline/planner"}, {"models", "price", "offline/planner", "--in", "1", "--out", "1"},
	} {
		if out, code := as(args...); code != 6 {
			t.Errorf("a member: %v: exit %d, %s", args, code, out)
		}
	}
	out, code = as("budgets", "list", "--json")
	if code != 0 || !strings.Contains(out, "77000000") || strings.Contains(out, "777000000") || !strings.Contains(out, "200000") || strings.Contains(out, "otto") || strings.Contains(out, " 7000000,") {
		t.Errorf("a member's budgets: exit %d, %s", code, out)
	}
	for _, subject := range []string{"user:otto", "team:local", "team:slack:T1"} {
		if _, err := api.RemoveBudget.Call(ctx, c, api.RemoveBudgetRequest{Subject: subject}); err != nil {
			t.Fatal(err)
		}
	}
}

// What nize embeds by itself is booked to it, and to nobody else.
func TestEmbeddingsAreBooked(t *testing.T) {
	t.Parallel()
	r, _ := shop(t)
	r.set(t, "embed.model", "main/e")
	var report store.UsageReport
	eventually(t, "the embeddings are booked", func() bool {
		var err error
		if report, err = api.GetUsage.Call(t.Context(), r.Client, api.GetUsageRequest{By: "user"}); err != nil {
			t.Fatal(err)
		}
		return report.Total.Prompt > 0
	})
	if len(report.Rows) != 1 || report.Rows[0].Key != store.System.Name || len(report.Unpriced) != 1 || report.Unpriced[0] != "main/e" {
		t.Errorf("booked %+v", report)
	}
}
