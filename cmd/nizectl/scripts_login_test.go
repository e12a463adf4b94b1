package main

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/mcp/upstream/authtest"
)

// auths are the authorization servers of scripts, by their addresses.
var auths sync.Map

// scriptAuth is "auth start VAR SERVER", which puts an authorization server
// before an MCP server and keeps its address, and what befalls it: "auth expire
// URL" ends its access tokens, "auth end URL" its grants, "auth plain URL" knows no
// resources, "auth open URL" lets in who brings no token, "auth issuer URL NAME" is what
// it calls itself in its answers, "auth life URL TIME" is how long a token is good, "auth scopes URL S…" are
// what it wants from now on, "auth bare URL" registers nobody, "auth nopkce URL" lists no PKCE,
// "auth challenge URL TEXT" is what it says with a 401, "auth nobody URL" has no documents, "auth client URL ID
// SECRET REDIRECT [METHOD]" is a client that was given out.
func scriptAuth(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: auth start VAR SERVER, or auth VERB URL ARGS…")
	}
	if args[0] == "start" {
		s := authtest.New(args[2])
		auths.Store(s.URL, s)
		ts.Defer(s.Close)
		ts.Setenv(args[1], s.URL)
		return
	}
	v, ok := auths.Load(args[1])
	if !ok {
		ts.Fatalf("no authorization server at %s", args[1])
	}
	s := v.(*authtest.Service)
	switch args[0] {
	case "expire":
		s.EndAccess()
	case "end":
		s.EndAll()
	case "scopes":
		s.Set(func(f *authtest.Faults) { f.Scopes = args[2:] })
	case "plain":
		s.Set(func(f *authtest.Faults) { f.Plain = true })
	case "open":
		s.Set(func(f *authtest.Faults) { f.Open = true })
	case "issuer":
		s.Set(func(f *authtest.Faults) { f.Answer = func(q url.Values) { q.Set("iss", args[2]) } })
	case "life":
		life, err := time.ParseDuration(args[2])
		ts.Check(err)
		s.Set(func(f *authtest.Faults) { f.Life = life })
	case "bare":
		s.Set(func(f *authtest.Faults) {
			f.Edit = func(name string, doc map[string]any) { delete(doc, "registration_endpoint") }
		})
	case "nopkce":
		s.Set(func(f *authtest.Faults) {
			f.Edit = func(name string, doc map[string]any) { delete(doc, "code_challenge_methods_supported") }
		})
	case "challenge":
		s.Set(func(f *authtest.Faults) { f.Challenge = &args[2] })
	case "nobody":
		s.Set(func(f *authtest.Faults) {
			f.Serve = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/.well-known/") {
					return false
				}
				http.NotFound(w, r)
				return true
			}
		})
	case "client":
		s.AddClient(args[2], args[3], args[4], args[5:]...)
	default:
		ts.Fatalf("auth can't %s", args[0])
	}
}

// jars are the cookies of the browsers of scripts, forms the tokens of the forms that
// their last pages had.
var jars, forms sync.Map

// scriptBrowse is "browse NAME ADDRESS [FIELD=VALUE…]": a browser with cookies of its own, without
// scripts but for what the page itself has, which is pressing its button with what
// stands behind the #. It goes where it is sent, and prints the last page and its
// address. With fields it sends them by the form of its last page, and stays on what
// comes back.
func scriptBrowse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: browse NAME ADDRESS [FIELD=VALUE…]")
	}
	made, err := cookiejar.New(nil)
	ts.Check(err)
	jar, _ := jars.LoadOrStore(ts.Getenv("WORK")+args[0], made)
	browser := &http.Client{Jar: jar.(*cookiejar.Jar)}
	address, secret, _ := strings.Cut(args[1], "#")
	if len(args) > 2 {
		fields := url.Values{}
		if form, ok := forms.Load(jar); ok {
			fields.Set("form", form.(string))
		}
		for _, field := range args[2:] {
			name, value, _ := strings.Cut(field, "=")
			fields.Set(name, value)
		}
		resp, err := browser.PostForm(address, fields)
		ts.Check(err)
		showPage(ts, jar, resp, pageText(ts, resp))
		return
	}
	resp, err := browser.Get(address)
	ts.Check(err)
	page := pageText(ts, resp)
	if secret != "" && strings.Contains(page, "data-fragment") {
		resp, err = browser.PostForm(address, url.Values{"secret": {secret}})
		ts.Check(err)
		page = pageText(ts, resp)
	}
	if next := regexp.MustCompile(`http-equiv="refresh" content="\d+;url=([^"]+)"`).FindStringSubmatch(page); next != nil {
		resp, err = browser.Get(html.UnescapeString(next[1]))
		ts.Check(err)
		page = pageText(ts, resp)
	}
	showPage(ts, jar, resp, page)
}

// scriptPaste is "paste ARGS…": nizectl with --paste among its arguments. Somebody opens
// the address that it prints in a browser that does not reach nize, and gives it the
// one where that ended. It prints what nizectl says after.
func scriptPaste(ts *testscript.TestScript, neg bool, args []string) {
	cmd := exec.Command("nizectl", args...)
	for _, name := range []string{"PATH", "HOME", "NIZE_DATA_DIR", "NIZE_SOCKET", "TERM", "TZ", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	address, _ := bufio.NewReader(out).ReadString('\n')
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if resp, err := browser.Get(strings.TrimSpace(address)); err == nil {
		_ = resp.Body.Close()
		_, _ = io.WriteString(in, resp.Header.Get("Location")+"\n") // what nizectl says shows whether it came
	}
	_ = in.Close()
	if err := cmd.Wait(); (err != nil) != neg {
		ts.Fatalf("%v: %s", err, said.String())
	}
	_, err = io.WriteString(ts.Stdout(), said.String())
	ts.Check(err)
}

var formOnPage = regexp.MustCompile(`name="form" value="([0-9a-f]+)"`)

func showPage(ts *testscript.TestScript, jar any, resp *http.Response, page string) {
	if form := formOnPage.FindStringSubmatch(page); form != nil {
		forms.Store(jar, form[1])
	}
	_, err := io.WriteString(ts.Stdout(), resp.Request.URL.String()+"\n"+resp.Status+"\n"+html.UnescapeString(page))
	ts.Check(err)
}

func pageText(ts *testscript.TestScript, resp *http.Response) string {
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return string(b)
}
