package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/llm"
	"nize/llm/openai"
	"nize/llm/openai/openaitest"
	"nize/store"
)

// What a person reads about a service's faults.
const (
	busyNow   = "notice: The model service is busy. Please try again in a moment. (final)"
	down      = "notice: The model service cannot be reached right now. Please try again in a moment. (final)"
	slow      = "notice: The model service took too long to answer. Please try again. (final)"
	brokenOff = "notice: The model service broke off its answer. Please try again. (final)"
	refusedIt = "notice: The model service refused the request. An admin finds the cause in nize's log. (final)"
	withheld  = "notice: The model service withheld its answer to this. Please put it in other words. (final)"
	once      = "assistant: Once"
	hello     = "assistant: Hello there."
	ran       = "tool: ran one"
	calledOne = `assistant:  [execute_tool {"tool_id":"s:one","params":{}}]`
)

// faults is the outcome of a conversation with each faulty model, after the message; a line
// that ends in … is a prefix.
var faults = map[string][]string{
	"busy": {busyNow}, "busy-nonsense": {busyNow},
	"busy-wait": {"notice: The model service is busy. Please try again in 2 minutes. (final)"},
	"busy-date": {"notice: The model service is busy. Please try again in a moment. (final)"},
	"no-credit": {"notice: The model service says that its credit is used up. An admin must see to it. (final)"},
	"crash":     {down}, "gateway": {down}, "overloaded": {down}, "leave": {down}, "error-in-200": {down},
	"key":     {"notice: The model service did not accept nize's key. An admin must set it again. (final)"},
	"refused": {refusedIt}, "gone": {refusedIt}, "redirect": {refusedIt}, "redirect-self": {refusedIt}, "teapot": {refusedIt}, "web-page": {refusedIt},
	"too-long": {"notice: This conversation is too long for the model. Please begin a new one, or send less at once. (final)"},
	"filtered": {withheld}, "withheld-all": {withheld},
	"length-at-all":  {"notice: The model reached the limit of an answer's length before it wrote any of it. Please ask for something shorter. (final)"},
	"plain-web-page": {refusedIt}, "no-content": {down}, "array": {brokenOff}, "leave-early": {brokenOff}, "null": {brokenOff}, "brotli": {brokenOff},
	"silent": {slow},

	"stall":        {once + " (final)", slow},
	"error-within": {once + " (final)", down}, "garbage-within": {once + " (final)", brokenOff},
	"cut": {once + " {cut [The answer broke off here.]}"}, "cut-json": {once + " {cut [The answer broke off here.]}"}, "no-end": {once},
	"cut-call": {brokenOff}, "empty": {brokenOff}, "blank": {brokenOff}, "huge-line": {brokenOff}, "calls-object": {brokenOff},
	"many-calls": {brokenOff}, "huge-call": {brokenOff},
	"huge":     {"assistant: all work and no play …", brokenOff},
	"withheld": {once + " {content_filter [The model service withheld the rest of the answer.]}"},
	"length":   {once + " {length [The answer reached its length limit.]}"},
	"refusal":  {"assistant: I can't help with that."},
	"charset":  {"assistant: caf\uFFFD"},

	"plain": {once}, "no-content-type": {once}, "other-type": {once}, "bom": {once}, "trailing-garbage": {once}, "garbage-at-end": {once},
	"comments": {once}, "two-answers": {once}, "no-usage": {once}, "nan-usage": {once}, "negative-usage": {once}, "text-usage": {once},
	"huge-usage": {once}, "strange-sums": {once}, "float-usage": {once}, "free-usage": {once},

	"no-index": {calledOne, ran, hello}, "no-id": {calledOne, ran, hello}, "bare-call": {calledOne, ran, hello}, "doubled-call": {calledOne, ran, hello}, "long-id": {calledOne, ran, hello},
	"high-index":   {calledOne + ` [execute_tool {"tool_id":"s:one","params":{}}]`, ran, ran, hello},
	"same-ids":     {calledOne + ` [made_up {}]`, ran, `tool: There is no function "made_up", so nothing was done.…`, hello},
	"broken-call":  {`assistant:  [execute_tool …`, "tool: The arguments were not valid JSON…", hello},
	"null-call":    {`assistant:  [execute_tool {}]`, "tool: The arguments of execute_tool lack tool_id…", hello},
	"list-call":    {`assistant:  [execute_tool [1]]`, "tool: The arguments were not a JSON object…", hello},
	"nameless":     {`assistant:  [ {}]`, `tool: There is no function ""…`, hello},
	"unknown-name": {`assistant:  [made_up {}]`, `tool: There is no function "made_up", so nothing was done. The functions are …`, hello},
	"illegal-name": {`assistant:  [päth/to:it…`, `tool: There is no function "päth/to:it…`, hello},
	"endless": {calledOne, ran, calledOne, ran, "notice: I stopped using tools after 2 steps, the limit for one turn.",
		"assistant:  { [I could not finish this within 2 steps.]}"},
}

// Whatever a service does wrong, the person gets one sentence, the next turn works, nothing
// is booked that can't be, and nothing leaks: neither the key, nor the service's name, nor
// a goroutine.
func TestServiceFaults(t *testing.T) {
	for name := range openaitest.Faults {
		if faults[name] == nil {
			t.Errorf("nothing says what becomes of %s", name)
		}
	}
	if len(faults) < 25 {
		t.Errorf("%d faults", len(faults))
	}
	for name, want := range faults {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			tryFault(t, name, want)
			goleak.VerifyNone(t, before)
		})
	}
}

const serviceKey = "sk-fault-0123456789abcdef"

func tryFault(t *testing.T, name string, want []string) {
	service := openaitest.New(serviceKey)
	defer service.Close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	idle := time.Minute
	switch name {
	case "silent":
		idle = 100 * time.Millisecond
	case "stall":
		idle = 2 * time.Second // long enough for a busy machine to read what precedes the silence
	}
	b := newBench(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client, err := openai.New(openai.Options{
		Provider:  store.Provider{Name: "acme", Kind: "openai-compatible", BaseURL: service.URL + "/v1", Key: store.NewSecret(serviceKey), Enabled: true},
		Transport: transport, Log: logger,
		Timeouts: func() (time.Duration, time.Duration) { return idle, time.Minute },
		Sleep:    func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	router := &llm.Router{
		Store: &shelf{
			providers: []store.Provider{{Name: "acme", Kind: "openai-compatible", Enabled: true}},
			models:    []store.ModelName{{Name: "smart", Target: "acme/" + name, Default: true}},
		},
		Open:  func(store.Provider) (llm.Model, error) { return client, nil },
		Meter: &llm.Meter{Ledger: b.m, Config: store.Defaults{}, Now: b.m.Now}, Now: b.m.Now, Log: logger,
	}
	b.config["agent.tools.maxSteps"] = "2"
	b.Agent = llm.New(llm.Deps{Threads: b.m, Calls: b.m, Agents: b.m, Config: b.config, Tools: b.g, Models: router, MayAsk: router.MayAsk, Now: b.m.Now, Log: logger})

	b.say(ann, `go execute_tool {"tool_id":"s:one","params":{}}`)
	b.work()
	got := b.talk()[1:]
	fits := func(got, want string) bool {
		begin, short := strings.CutSuffix(want, "…")
		return got == want || short && strings.HasPrefix(got, begin)
	}
	if !slices.EqualFunc(got, want, fits) {
		t.Errorf("got %.300q\nwant %q", got, want)
	}
	if b.m.thread.Open {
		t.Error("the turn is not over")
	}
	idle = time.Minute
	b.say(ann, "again")
	b.work()
	if talk := b.talk(); talk[len(talk)-1] != hello {
		t.Errorf("the next turn: %.300q", talk[len(talk)-1])
	}

	if why := service.Refused(); why != nil {
		t.Errorf("requests that no service would take: %q", why)
	}
	if where := service.Strayed(); where != nil {
		t.Errorf("asked elsewhere: %q", where)
	}
	if asked := service.Asked(name); asked == 0 || asked > 3 {
		t.Errorf("asked %d times", asked)
	}
	if b.m.reserved != 0 {
		t.Errorf("%d reservations are left", b.m.reserved)
	}
	for _, s := range b.m.spends {
		if s.Prompt <= 0 || s.Prompt > 1e6 || s.Completion < 0 || s.Completion > 1e6 || s.Cached < 0 || s.Cached > s.Prompt || s.Reasoning < 0 || s.Reasoning > s.Completion || s.MicroUSD < 0 {
			t.Errorf("booked %+v", s)
		}
	}
	results := make(map[string]int)
	for _, turn := range b.m.turns {
		for _, c := range turn.Calls {
			results[c.ID]--
		}
		if turn.Role == store.FromTool {
			results[turn.CallID]++
		}
	}
	for id, n := range results {
		if n != 0 {
			t.Errorf("call %s has %d results", id, n+1)
		}
	}
	shown, err := json.Marshal([]any{b.told, b.talk()})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{serviceKey, "acme", strings.TrimPrefix(service.URL, "http://"), "Traceback"} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("%s is shown: %.2000s", secret, shown)
		}
	}
	if strings.Contains(log.String(), serviceKey) {
		t.Errorf("the key is in the log: %.2000s", log.String())
	}
}
