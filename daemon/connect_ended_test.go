package daemon_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/mcp/upstream/authtest"
	"nize/store"
)

// TestConnectDisabled: a person who is disabled at any step of connecting a server
// connects nothing, and whose login there was is not used.
func TestConnectDisabled(t *testing.T) {
	w := newConnecting(t)
	ctx := t.Context()
	if _, err := api.AddUser.Call(ctx, w.Client, api.AddUserRequest{Name: "ann"}); err != nil {
		t.Fatal(err)
	}
	set := func(state store.UserState) {
		t.Helper()
		if _, err := api.PatchUser.Call(ctx, w.Client, api.PatchUserRequest{ID: "ann", State: &state}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []string{"the page", "going on", "the callback", "the next look"}
	for at, step := range append(steps, "") { // "" is nowhere
		b := browserAt(t, w.Client)
		shown := b.get(b.get("/login").location)
		approved, err := api.ApproveLogin.Call(ctx, w.Client, api.LoginCodeRequest{Code: codeOf(shown), User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if p := b.post(regexp.MustCompile(`/oauth/requests/[A-Za-z0-9_-]+`).FindString(shown.body), form, "form="+formOf(shown)+"&number="+approved.Number.Reveal()); p.status >= 400 {
			t.Fatalf("signing Ann in: %d %s", p.status, p.body)
		}
		flow, err := api.LoginServer.Call(ctx, w.Client, api.LoginServerRequest{Name: "far", User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		asked := w.auth.Count("POST /token")
		address, secret, _ := strings.Cut(flow.URL, "#")
		page := strings.TrimPrefix(address, b.base)
		// Each step is what her browser does, and whether it came further by it.
		var next string
		for i, do := range []func() bool{
			func() bool { return strings.Contains(b.get(page).body, "data-fragment") },
			func() bool {
				to := refreshTo.FindStringSubmatch(b.post(page, form, "secret="+secret).body)
				if to == nil {
					return false
				}
				next = b.get(html.UnescapeString(to[1])).location
				return true
			},
			func() bool { return strings.Contains(b.get(next).body, "far is connected") },
			func() bool {
				l, err := api.GetLogin.Call(ctx, w.Client, api.LoginRequest{Name: "far", User: "ann"})
				return err == nil && l.State == "connected"
			},
		} {
			if i == at {
				set(store.Disabled)
			}
			if further := do(); further != (i < at) {
				t.Errorf("disabled before %q: at %q she comes further: %t", step, steps[i], further)
			}
			if i == at {
				set(store.Active)
				break
			}
		}
		if at < 3 && w.auth.Count("POST /token") != asked {
			t.Errorf("disabled before %q: a token was asked for", step)
		}
		if l, err := api.GetLogin.Call(ctx, w.Client, api.LoginRequest{Name: "far", User: "ann"}); step != "" && (err != nil || l.State != "not connected") {
			t.Errorf("disabled before %q, and active again: %s %v", step, l.State, err)
		}
	}
}

// TestMixUp: a service that sends the browser on to another one, honest and live, gets
// nothing of what that answers; and two logins at once end where each began.
func TestMixUp(t *testing.T) {
	w := newConnecting(t)
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	evil := authtest.New(behind.HTTP())
	t.Cleanup(evil.Close)
	if _, err := api.AddServer.Call(t.Context(), w.Client, api.AddServerRequest{Server: store.Server{Name: "near", URL: evil.MCP}}); err != nil {
		t.Fatal(err)
	}
	begin := func(name string) (b *http.Client, service string) {
		flow, err := api.LoginServer.Call(t.Context(), w.Client, api.LoginServerRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		b = w.browser()
		return b, w.leave(b, flow)
	}
	_, honest := begin("far")
	known, err := url.Parse(honest)
	if err != nil {
		t.Fatal(err)
	}
	for _, silent := range []bool{false, true} { // it promises to name itself, or doesn't
		evil.Set(func(f *authtest.Faults) {
			f.Serve = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/authorize" {
					return false
				}
				q := r.URL.Query() // nize's own request, as if it were for the honest one
				q.Set("client_id", known.Query().Get("client_id"))
				q.Set("resource", known.Query().Get("resource"))
				http.Redirect(rw, r, w.auth.URL+"/authorize?"+q.Encode(), http.StatusFound)
				return true
			}
			f.Edit = func(_ string, doc map[string]any) {
				if silent {
					delete(doc, "authorization_response_iss_parameter_supported")
				}
			}
		})
		b, service := begin("near")
		_, _, h := w.do(b, "GET", service, "")
		if !strings.HasPrefix(h.Get("Location"), w.auth.URL) {
			t.Fatalf("the test is wrong: it sends to %s", h.Get("Location"))
		}
		back := w.back(b, h.Get("Location"))
		if back.Query().Get("code") == "" {
			t.Fatalf("the test is wrong: the honest one answers %s", back)
		}
		status, body, _ := w.do(b, "GET", back.String(), "")
		if status != http.StatusBadGateway || !strings.Contains(body, "from a different sign-in service") || evil.Count("POST /token")+w.auth.Count("POST /token") != 0 {
			t.Errorf("silent %t: %d, %d codes went to it: %s", silent, status, evil.Count("POST /token"), body)
		}
	}

	// Both are honest, and the answer of each comes into the browser of the other.
	evil.Set(func(f *authtest.Faults) { f.Serve, f.Edit = nil, nil })
	far, farService := begin("far")
	near, nearService := begin("near")
	farBack, nearBack := w.back(far, farService), w.back(near, nearService)
	for b, back := range map[*http.Client]*url.URL{far: nearBack, near: farBack} {
		if status, _, _ := w.do(b, "GET", back.String(), ""); status != http.StatusBadRequest {
			t.Errorf("the answer of another browser's login: %d", status)
		}
	}
	for b, back := range map[*http.Client]*url.URL{far: farBack, near: nearBack} {
		if status, body, _ := w.do(b, "GET", back.String(), ""); status != http.StatusOK {
			t.Errorf("its own: %d %s", status, body)
		}
	}
	if w.state() != "connected" || w.auth.Families() < 1 || evil.Count("POST /token") != 1 {
		t.Errorf("state %s, %d requests to the other", w.state(), evil.Count("POST /token"))
	}
}

var aToken = regexp.MustCompile(`(access|refresh)-[A-Za-z0-9_-]{22}`)

// TestKilledRefresh: a nized that is killed when a sign-in service has rotated its
// token, has answered, or has been answered: once it runs again a call has what was
// stored, or says in a sentence that somebody has to connect it again, which works.
func TestKilledRefresh(t *testing.T) {
	behind := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Stateless: true, JSON: true})
	w := &connecting{T: t, auth: authtest.New(behind.HTTP())}
	t.Cleanup(w.auth.Close) // after nized has ended: it waits for streams
	k := newKillable(t)
	w.testDaemon = &testDaemon{Client: k.Client}
	if _, err := api.AddServer.Call(t.Context(), k.Client, api.AddServerRequest{Server: store.Server{Name: "far", URL: w.auth.MCP, Approval: store.ApproveNever}}); err != nil {
		t.Fatal(err)
	}
	connect := func() {
		t.Helper()
		b := w.browser()
		if status, body, _ := w.do(b, "GET", w.back(b, w.leave(b, w.begin())).String(), ""); status != http.StatusOK {
			t.Fatalf("connecting: %d %s", status, body)
		}
	}
	call := func() error {
		done, err := api.CallTool.Call(t.Context(), w.Client, api.CallToolRequest{ID: "far:echo"})
		if err == nil && done.State != store.Done {
			err = fmt.Errorf("%s: %+v", done.State, done.Result)
		}
		return err
	}
	connect()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	kept, lost := 0, 0
	for _, after := range []time.Duration{-1, 0, 200 * time.Microsecond, time.Millisecond, 4 * time.Millisecond} { // -1: before the answer
		process := k.cmd.Process
		die := func() { _ = process.Kill() } // it may have ended
		w.auth.Set(func(f *authtest.Faults) {
			if f.Refreshed, f.Answered = die, nil; after >= 0 {
				f.Refreshed, f.Answered = nil, func() { time.AfterFunc(after, die) }
			}
		})
		w.auth.EndAccess()
		_ = call() // it may end before nized does, or with it
		_, _ = process.Wait()
		w.auth.Set(func(f *authtest.Faults) { f.Refreshed, f.Answered = nil, nil })
		k.kill()
		k.start()
		w.Client = k.Client
		var err error
		k.until("a call is answered", func() bool { // it may still connect
			if err = call(); err != nil && !strings.Contains(err.Error(), "far is not connected for you: /nize credentials connect far") {
				t.Logf("killed %v after the answer: %v", after, err)
				return false
			}
			return true
		})
		if kept++; err != nil {
			kept, lost = kept-1, lost+1
			connect()
			k.until("a call is done", func() bool { return call() == nil })
		}
		if after < 0 && lost != 1 {
			t.Error("an answer that never came was kept")
		}
	}
	t.Logf("%d kept, %d lost", kept, lost)
	if b, err := os.ReadFile(k.dir + "/nize.db"); err != nil || aToken.Match(b) {
		t.Errorf("a token is in the database, or %v: %s", err, aToken.Find(b))
	}
}
