package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/credential"
)

const schema = `{"type":"object","properties":{}}`

// published is a registry and what it told last.
func published(t *testing.T, tools ...Tool) (*Registry, *[]*policy.Tool) {
	t.Helper()
	last := new([]*policy.Tool)
	r := New(Options{
		Publish: func(_ *store.Server, tools []*policy.Tool) { *last = tools },
		TeamOf:  func(context.Context, store.Caller, string) (string, error) { return "slack:T1", nil },
	})
	for _, tool := range tools {
		if err := r.Put(tool); err != nil {
			t.Fatal(err)
		}
	}
	return r, last
}

func call(name, pin string) *store.Call {
	return &store.Call{Server: policy.NativeServer, Tool: name, Pin: pin, Args: json.RawMessage(`{"n":9007199254740993}`), Thread: "T", Agent: "A"}
}

func TestRun(t *testing.T) {
	echo := Tool{Name: "echo", Description: "Says what it is given.", InputSchema: json.RawMessage(schema), Run: func(_ context.Context, c Context, input json.RawMessage) (Result, error) {
		who, err := json.Marshal(c)
		return Result{Content: []Content{{Type: "text"}, {Type: "image", Data: []byte("\x89PNG"), MimeType: "image/png"}, {Type: "resource", Resource: &Resource{URI: "x:y", Text: "z"}}}, StructuredContent: json.RawMessage(`{"input":` + string(input) + `,"context":` + string(who) + `}`)}, err
	}}
	r, last := published(t, echo)
	pin := (*last)[0].Pin
	for who, want := range map[string]string{
		"01U":        `{"content":[{"type":"text","text":""},{"type":"image","data":"iVBORw==","mimeType":"image/png"},{"type":"resource","resource":{"uri":"x:y","text":"z"}}],"structuredContent":{"input":{"n":9007199254740993},"context":{"userId":"01U","teamId":"slack:T1","threadId":"T","agentId":"A"}}}`,
		"project:01": `{"input":{"n":9007199254740993},"context":{"threadId":"T","agentId":"A","projectId":"01"}}`,
		"":           `{"content":[{"type":"text","text":"Authentication required"}],"isError":true}`,
		"system":     `{"content":[{"type":"text","text":"Authentication required"}],"isError":true}`,
	} {
		got, err := r.Run(t.Context(), store.Caller{User: who}, call("echo", pin), nil)
		if err != nil || !strings.Contains(string(got.Raw), want) || got.IsError != strings.Contains(want, "isError") {
			t.Errorf("as %q: %s, %v", who, got.Raw, err)
		}
	}
}

// TestHeld: code that is not nize's own runs as what somebody accepted, and as
// nothing else.
// TestRegister: what a package adds is among the tools; what can't be one is a mistake
// of its programmer.
func TestRegister(t *testing.T) {
	was := builtin
	t.Cleanup(func() { builtin = was })
	Register(Tool{Name: "greet", Description: "Greets.", InputSchema: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, Context, json.RawMessage) (Result, error) { return Text("hello"), nil }})
	if _, ok := New(Options{}).tools["greet"]; !ok {
		t.Error("what was registered is not there")
	}
	greet := builtin[len(builtin)-1]
	for _, c := range []struct {
		size int
		ok   bool
	}{{view.MaxTemplate, true}, {view.MaxTemplate + 1, false}} {
		if greet.Template = strings.Repeat("x", c.size); (greet.check() == nil) != c.ok {
			t.Errorf("a template of %d bytes: %v", c.size, greet.check())
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tool without a description is taken")
		}
	}()
	Register(Tool{Name: "greet"})
}

func TestHeld(t *testing.T) {
	tool := Tool{Name: "x", Description: "Does x.", InputSchema: json.RawMessage(schema), Code: "sha256:1", Run: func(context.Context, Context, json.RawMessage) (Result, error) { return Text("ran"), nil }}
	r, last := published(t, tool)
	state := func() (store.ToolState, string) { return (*last)[0].State, strings.Join((*last)[0].Findings, "; ") }
	runs := func(pin string) bool {
		got, err := r.Run(t.Context(), store.Caller{User: "u"}, call("x", pin), nil)
		return err == nil && strings.Contains(string(got.Raw), "ran")
	}
	if is, why := state(); is != store.ToolQuarantined || why != "no admin has accepted it yet" || runs(tool.Pin()) {
		t.Fatalf("new: %s, %s", is, why)
	}
	tool.Accepted = tool.Pin()
	if err := r.Put(tool); err != nil {
		t.Fatal(err)
	}
	if is, _ := state(); is != store.ToolAccepted || !runs(tool.Pin()) || runs("another") {
		t.Fatalf("accepted: %s", is)
	}
	was := tool.Pin()
	for what, change := range map[string]func(*Tool){
		"code":        func(t *Tool) { t.Code = "sha256:2" },
		"description": func(t *Tool) { t.Description = "Does y." },
		"schema":      func(t *Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) },
		"untrusted":   func(t *Tool) { t.Untrusted = true },
	} {
		changed := tool
		change(&changed)
		if err := r.Put(changed); err != nil {
			t.Fatal(err)
		}
		if is, why := state(); is != store.ToolQuarantined || why != "its definition or its code changed" || runs(was) || runs(changed.Pin()) {
			t.Errorf("%s changed: %s, %s", what, is, why)
		}
	}
	own := tool
	own.Code = ""
	if err := r.Put(own); !errors.Is(err, store.ErrExists) {
		t.Errorf("another takes its name: %v", err)
	}
	r.Remove("x")
	if len(*last) != 0 || runs(was) {
		t.Error("it is still there")
	}
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := func(ctx context.Context, _ Context, _ json.RawMessage) (Result, error) {
			<-ctx.Done()
			return Result{}, errors.New("its own words")
		}
		r, last := published(t, Tool{Name: "slow", Description: "Takes long.", InputSchema: json.RawMessage(schema), Timeout: 10 * time.Second, AtOnce: 1, Run: hold})
		pin, began := (*last)[0].Pin, time.Now()
		errs := make(chan error, 2) // one for each call
		for range 2 {
			go func() {
				_, err := r.Run(t.Context(), store.Caller{User: "u"}, call("slow", pin), nil)
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		var full *store.CallError
		if !errors.As(first, &full) {
			first, second = second, first
		}
		if !errors.As(first, &full) || full.Code != store.CodeRateLimited || !errors.Is(second, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("%v and %v after %v", first, second, time.Since(began))
		}
	})
}

func TestRefused(t *testing.T) {
	r, last := published(t)
	run := func(context.Context, Context, json.RawMessage) (Result, error) { return Result{}, nil }
	for field, bad := range map[string]Tool{
		"name":        {Name: "a b", Description: "x", InputSchema: json.RawMessage(schema), Run: run},
		"description": {Name: "a", Description: " ", InputSchema: json.RawMessage(schema), Run: run},
		"inputSchema": {Name: "a", Description: "x", InputSchema: json.RawMessage(`{"type":"array"}`), Run: run},
		"run":         {Name: "a", Description: "x", InputSchema: json.RawMessage(schema)},
		"limits":      {Name: "a", Description: "x", InputSchema: json.RawMessage(schema), Run: run, AtOnce: -1},
	} {
		if err := r.Put(bad); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	var out Result
	for want, result := range map[string]Result{
		"content[0].type":   {Content: []Content{{Type: "video"}}},
		"content[0]: an im": {Content: []Content{{Type: "image", Data: []byte("x")}}},
		"content[0]: a res": {Content: []Content{{Type: "resource"}}},
		"structuredContent": {StructuredContent: json.RawMessage(`[1]`)},
	} {
		out = result
		if err := r.Put(Tool{Name: "liar", Description: "x", InputSchema: json.RawMessage(schema), Run: func(context.Context, Context, json.RawMessage) (Result, error) { return out, nil }}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context(), store.Caller{User: "u"}, call("liar", (*last)[0].Pin), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for pattern, want := range map[string]string{"native:*": "", "native:li*": "", "native:liar": "", "box:*": "", "*": "", "native:lair": "did you mean native:liar?", "native:zzzzzzzz": "not found"} {
		if err := r.CheckPattern(pattern); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// A tool that has a credential is run with its caller's, and not without.
func TestCredential(t *testing.T) {
	asked := ""
	r := New(Options{
		Publish: func(*store.Server, []*policy.Tool) {},
		TeamOf:  func(context.Context, store.Caller, string) (string, error) { return "", nil },
		Credential: func(_ context.Context, user, id string) (credential.Declaration, credential.Value, error) {
			asked = user + " " + id
			d := credential.Declaration{ID: id, Name: "Jira"}
			if user != "ann" {
				return d, credential.Value{}, d.Missing()
			}
			return d, credential.Value{APIKey: store.NewSecret("anns-key")}, nil
		},
	})
	got := ""
	tool := Tool{Name: "jira", Description: "Asks.", InputSchema: json.RawMessage(`{"type":"object"}`), CredentialID: "jira",
		Run: func(_ context.Context, c Context, _ json.RawMessage) (Result, error) {
			got = c.Credential.APIKey.Reveal()
			return Text(fmt.Sprintf("%+v", c)), nil
		}}
	if err := r.Put(tool); err != nil {
		t.Fatal(err)
	}
	call := func(user string) (*store.Result, error) {
		return r.Run(t.Context(), store.Caller{User: user}, &store.Call{Server: "native", Tool: "jira", Pin: tool.Pin(), Args: []byte("{}")}, nil)
	}
	if result, err := call("ann"); err != nil || got != "anns-key" || asked != "ann jira" || strings.Contains(string(result.Raw), "anns-key") {
		t.Errorf("ran with %q for %q: %s, %v", got, asked, result.Raw, err)
	}
	got = ""
	if _, err := call("ben"); got != "" || err == nil || !strings.Contains(err.Error(), "Jira is not connected") {
		t.Errorf("ran with %q: %v", got, err)
	}
	other := tool
	if other.CredentialID = "desk"; other.Pin() == tool.Pin() {
		t.Error("another credential has the same pin")
	}
	other.CredentialID = "No Slug"
	if err := r.Put(other); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("an id that is none: %v", err)
	}
}
