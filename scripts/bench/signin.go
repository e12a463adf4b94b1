package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/database"
	"nize/store/oauth"
	"nize/store/seal"
)

const (
	families     = 10_000
	atOnceSigned = 16 // share commits
	familyPeople = 100
	signIns      = 25 // each of a different client, since a client may send 30 requests a minute
	refreshes    = 10 // of each
	listPages    = 100
	loopbackURI  = "http://localhost/cb"
)

// signIn measures signing in when many are already signed in: nized's cost from a client's
// request to its tokens, a refresh, a page of the list; and a request with the resulting
// token beside one with a created token.
func (b *bench) signIn(ctx context.Context) (err error) {
	if err := b.fillFamilies(ctx, filepath.Join(b.dir, "signin")); err != nil {
		return err
	}
	d, err := b.startNized(ctx, "signin")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	of := fmt.Sprintf(", %d sign-ins, %d clients", families, oauth.MaxClients)
	each := func(what string, n int, do func(i int) error) error {
		begin := d.cpu()
		for i := range n {
			if err := do(i); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		took := d.cpu() - begin
		b.table.add(row{what: what + ", CPU" + of, value: millis(took) / float64(n), unit: "ms", floor: 5, missing: noProc(took)})
		return nil
	}
	var got [signIns]tokens
	if err := each("a sign-in, from the client's question to its tokens", signIns, func(i int) (err error) {
		got[i], err = d.signIn(ctx, fmt.Sprintf("c_%d", i))
		return err
	}); err != nil {
		return err
	}
	if err := each("a refresh", signIns*refreshes, func(i int) (err error) {
		n := i % signIns
		got[n], err = d.exchange(ctx, url.Values{"grant_type": {"refresh_token"}, "client_id": {fmt.Sprintf("c_%d", n)}, "refresh_token": {got[n].Refresh}})
		return err
	}); err != nil {
		return err
	}
	cursor := ""
	if err := each("a page of the list of everybody's", listPages, func(int) error {
		page, err := api.ListTokens.Call(ctx, d.api, api.ListTokensRequest{Cursor: cursor})
		cursor = page.Next
		return err
	}); err != nil {
		return err
	}
	return b.bearers(ctx, d, got[0].Access)
}

// bearers compares requests with both kinds of tokens, round by round.
func (b *bench) bearers(ctx context.Context, d *nized, access string) error {
	made, err := d.token(ctx)
	if err != nil {
		return err
	}
	ping := func(token string) (work, func(), error) {
		c, err := connect(ctx, "http://"+d.addr+"/mcp", token)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, _ int) error { return c.session.Ping(ctx, nil) }, c.close, nil
	}
	byMade, closeMade, err := ping(made)
	if err != nil {
		return err
	}
	defer closeMade()
	byAccess, closeAccess, err := ping(access)
	if err != nil {
		return err
	}
	defer closeAccess()
	var ones, others []time.Duration
	var ratios []float64
	for range b.rounds {
		one, err := p50(ctx, perRound, byMade)
		if err != nil {
			return err
		}
		other, err := p50(ctx, perRound, byAccess)
		if err != nil {
			return err
		}
		ones, others, ratios = append(ones, one), append(others, other), append(ratios, float64(other)/float64(one))
	}
	b.table.add(row{what: "a ping with an access token that signing in gave, p50", value: millis(median(others)), unit: "ms",
		reference: number(millis(median(ones))) + " ms with a token that somebody made", ratio: median(ratios), floor: 1.3, aim: 1.1, counted: true})
	return nil
}

// fillFamilies writes sign-ins with the store's own code, ten seconds apart: through pages
// they would be refused as a flood.
func (b *bench) fillFamilies(ctx context.Context, dir string) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		return fmt.Errorf("opening the key: %w", err)
	}
	var clock atomic.Int64
	clock.Store(time.Now().Add(-(families + 1000) * 10 * time.Second).UnixNano())
	db, err := database.Open(ctx, database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var people [familyPeople]string
	for i := range people {
		u, err := db.EnsureUser(ctx, fmt.Sprintf("slack:T:U%d", i), fmt.Sprintf("person-%d", i), store.Member)
		if err != nil {
			return err
		}
		people[i] = u.ID
	}
	for i := range oauth.MaxClients {
		if err := db.PutClient(ctx, store.System, oauth.Client{ID: fmt.Sprintf("c_%d", i), Name: "C", Redirects: []string{loopbackURI}}); err != nil {
			return err
		}
	}
	one := func(n int) error {
		name := fmt.Sprint(n)
		now := time.Unix(0, clock.Load())
		err := db.AddRequest(ctx, store.System, oauth.Request{ID: "r" + name, Client: fmt.Sprintf("c_%d", n%oauth.MaxClients), Name: "C", Redirect: loopbackURI, Code: oauth.HashOf("code" + name), Address: fmt.Sprint(n % 50)})
		if err != nil {
			return err
		}
		if _, err = db.ChangeRequest(ctx, store.System, "r"+name, "signin.number", func(r *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
			r.Ended, r.Granted, r.User, r.Grant = oauth.Allowed, now, people[n%len(people)], oauth.HashOf("grant"+name)
			return true, nil
		}); err != nil {
			return err
		}
		_, err = db.Redeem(ctx, oauth.Redeeming{Code: oauth.HashOf("grant" + name), Check: func(oauth.Request) error { return nil }, Family: oauth.HashOf("family" + name), Life: time.Hour,
			Token: store.Token{ID: store.NewID(now), Name: "oauth:c", Hash: oauth.HashOf("token" + name), Audience: store.ForMCP}, Next: oauth.Pair{Access: oauth.HashOf("access" + name), Refresh: oauth.HashOf("refresh" + name)}})
		return err
	}
	for from := 0; from < families && ctx.Err() == nil; from += atOnceSigned {
		clock.Add(int64(atOnceSigned * 10 * time.Second)) // constant within a batch, because codes expire
		errs := make([]error, atOnceSigned)
		var batch sync.WaitGroup
		for i := range errs {
			batch.Go(func() { errs[i] = one(from + i) })
		}
		batch.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// tokens is the response of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

var codeOnPage = regexp.MustCompile(`class="code">([A-Z0-9-]+)<`)

// signIn signs a client in, as its person's browser and nizectl login approve do.
func (d *nized) signIn(ctx context.Context, client string) (got tokens, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return got, err
	}
	browser := &http.Client{Transport: d.http.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	base, verifier := "http://"+d.addr, strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	_, at, err := ask(ctx, browser, http.MethodGet, base+"/oauth/authorize?"+url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {loopbackURI}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}.Encode(), "", "")
	if err != nil {
		return got, err
	}
	page, _, err := ask(ctx, browser, http.MethodGet, base+at, "", "")
	code := codeOnPage.FindSubmatch(page)
	if err != nil || code == nil {
		return got, errors.Join(err, errors.New("the page has no code"))
	}
	approved, err := api.ApproveLogin.Call(ctx, d.api, api.LoginCodeRequest{Code: string(code[1])})
	if err != nil {
		return got, err
	}
	_, id, _ := strings.Cut(at, "request=")
	done, _, err := ask(ctx, browser, http.MethodPost, base+"/oauth/requests/"+id, "application/json", `{"number":"`+approved.Number.Reveal()+`"}`)
	if err != nil {
		return got, err
	}
	var answer struct{ Redirect string }
	if err := json.Unmarshal(done, &answer); err != nil {
		return got, err
	}
	back, err := url.Parse(answer.Redirect)
	if err != nil {
		return got, err
	}
	return d.exchange(ctx, url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {loopbackURI}, "code": {back.Query().Get("code")}, "code_verifier": {verifier}})
}

// exchange sends a request to the token endpoint.
func (d *nized) exchange(ctx context.Context, form url.Values) (got tokens, err error) {
	body, _, err := ask(ctx, d.http, http.MethodPost, "http://"+d.addr+"/oauth/token", "application/x-www-form-urlencoded", form.Encode())
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(body, &got)
}

// ask sends a request, and returns an error unless it succeeds.
func ask(ctx context.Context, c *http.Client, method, address, kind, body string) (text []byte, location string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s %s answered %d: %s", method, req.URL.Path, resp.StatusCode, text)
	}
	return text, resp.Header.Get("Location"), err
}
