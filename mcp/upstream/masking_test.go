package upstream

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"nize/mcp/mcptest"
	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// TestAnEchoedHeaderIsMasked: a credential that a server echoes is masked in results, lists
// and server information, also after its value changed and in another person's session.
func TestAnEchoedHeaderIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var m *mcptest.Server
	m = mcptest.New(t, mcptest.Options{Instructions: "log in with first-s3cret", Stateless: true, Tools: []mcptest.Tool{
		{Name: "echo", Description: "like " + base64.StdEncoding.EncodeToString([]byte("key=first-s3cret;")), Do: func(context.Context, json.RawMessage) json.RawMessage {
			var all []string
			for _, h := range m.Headers() {
				if auth := h.Get("Authorization"); !slices.Contains(all, auth) {
					all = append(all, auth)
				}
			}
			text, err := json.Marshal(strings.Join(all, ", "))
			if err != nil {
				t.Error(err)
			}
			return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":{"n": 1.0, "auth":` + string(text) + `}}`)
		}},
		{Name: "plain", Result: json.RawMessage(`{"content":[{"type":"text","text":"fir\u0073t, \/ and  last"}]}`)}}})
	cfg := withKey(m.HTTP())
	b.secret("system", "", "TOKEN", "", "first-s3cret")
	b.register(cfg)
	res, err := b.run(t.Context(), "far:echo", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"••••"}],"structuredContent":{"n": 1.0, "auth":"••••"}}`; string(res.Raw) != want || !res.Masked {
		t.Errorf("the result is %s (masked: %v), want %s", res.Raw, res.Masked, want)
	}
	probe, err := b.Probe(t.Context(), cfg)
	if err != nil || probe.Instructions != "log in with ••••" {
		t.Errorf("the instructions are %q, %v", probe.Instructions, err)
	}
	b.secret("system", "", "TOKEN", "", "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:other-s3cret")))
	if res, err = b.run(t.Context(), "far:echo", `{}`); err != nil || strings.Contains(string(res.Raw), "first") || strings.Contains(string(res.Raw), "YW5u") || !res.Masked {
		t.Errorf("after a change: %s, %v", res.Raw, err)
	}
	if res, err = b.run(t.Context(), "far:plain", `{}`); err != nil || string(res.Raw) != `{"content":[{"type":"text","text":"fir\u0073t, \/ and  last"}]}` || res.Masked {
		t.Errorf("without a secret: %s, %v", res.Raw, err)
	}
	if got := b.tool("far:echo").Description; !strings.HasPrefix(got, "like a2V5") || !strings.Contains(got, mask.Dots) {
		t.Errorf("the description is %q", got)
	}
	if strings.Contains(b.log.String(), "s3cret") {
		t.Error("the credential is in the log")
	}
}

// TestAnEchoedVariableIsMasked: the same for environment variables of a command.
func TestAnEchoedVariableIsMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	m := mcptest.New(t, mcptest.Options{Log: "starting with first-s3cret", Tools: []mcptest.Tool{{Name: "env", Fault: mcptest.Env}}})
	cfg := stdio(m)
	cfg.Env["TOKEN"] = store.Value{SecretKey: "TOKEN"}
	cfg.Env["API_KEY"] = store.Value{Text: "plain-8ut-s3cret"}
	err := b.db.PutCredential(t.Context(), admin, store.Credential{CredentialKey: store.CredentialKey{Scope: "system", Service: cfg.Name, Name: "TOKEN"}, Secret: store.NewSecret("first-s3cret")})
	if err != nil {
		t.Fatal(err)
	}
	b.register(cfg)
	res, err := b.run(t.Context(), cfg.Name+":env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.Raw); strings.Contains(got, "s3cret") || !strings.Contains(got, "TOKEN=••••") || !res.Masked {
		t.Errorf("the result is %s", got)
	}
	if got := string(b.Logs(cfg.Name)); strings.Contains(got, "s3cret") || !strings.Contains(got, "starting with ••••") {
		t.Errorf("standard error is %q", got)
	}
	if strings.Contains(b.log.String(), "s3cret") {
		t.Error("the credential is in the log")
	}
}

// TestFaultsAreMasked: the server's own error is masked, also when wrapped in another.
func TestFaultsAreMasked(t *testing.T) {
	t.Parallel()
	m := &mask.Mask{}
	m.Add("first-s3cret")
	for _, code := range []int64{wire.CodeInvalidParams, 1} {
		rpc := &wire.RPCError{Code: code, Message: "no first-s3cret"}
		err := maskFault(m, &wire.Fault{Reach: wire.Answered, Err: rpc})
		told := callError(t.Context(), store.Server{Name: "far"}, "echo", false, err)
		if text := told.Error(); strings.Contains(text, "s3cret") || !strings.Contains(text, "no "+mask.Dots) {
			t.Errorf("the caller is told %q", text)
		}
	}
	cut := &wire.RPCError{Message: strings.Repeat("x", maxFault-8) + " first-s3cret"}
	if text := maskFault(m, &wire.Fault{Reach: wire.Answered, Err: cut}).Error(); strings.Contains(text, "first") {
		t.Errorf("half a secret stands at the cut: %q", text[len(text)-40:])
	}
	cause := errors.New("it said first-s3cret")
	if err := maskFault(m, &wire.Fault{Drop: true, Err: cause}); !errors.Is(err, cause) || strings.Contains(err.Error(), "s3cret") || !wire.AsFault(err).Drop {
		t.Errorf("got %v", err)
	}
}

func TestSecretsOfACommandAndAnAddress(t *testing.T) {
	t.Parallel()
	m := &mask.Mask{}
	knowCommand(m, store.Server{Args: []string{"--token=first-s3cret", "--api-key", "other-s3cret", "--verbose", "/srv/documents"}, Env: map[string]store.Value{"MODE": {Text: "quiet-mode"}}}, []string{"third-s3cret"})
	knowHeaders(m, store.Server{URL: "https://x.example/mcp?api_key=fourth-s3cret&page=front-page"}, http.Header{})
	if got := m.Text("first-s3cret other-s3cret third-s3cret fourth-s3cret"); strings.Contains(got, "s3cret") {
		t.Errorf("got %q", got)
	}
	if got := m.Text("/srv/documents quiet-mode front-page"); strings.Contains(got, mask.Dots) {
		t.Errorf("got %q", got)
	}
}
