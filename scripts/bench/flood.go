package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	floodConns    = 20_000
	floodSessions = 6_000
	floodHosts    = 200
	floodTime     = 20 * time.Second // duration of the flood
)

// flood measures how much one client can disturb others' calls by holding things open:
// connections whose requests never end, without and with a token, sessions that are never
// ended, and unfinished sign-ins.
func (b *bench) flood(ctx context.Context) (err error) {
	up, err := startUpstream(ctx, "", make([]batch, goodServers)...)
	if err != nil {
		return err
	}
	defer up.kill()
	d, err := b.startNized(ctx, "flood")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.register(ctx, up, 0, goodServers); err != nil {
		return err
	}
	token, err := d.token(ctx)
	if err != nil {
		return err
	}
	if _, err := api.AddUser.Call(ctx, d.api, api.AddUserRequest{Name: "flood", Role: store.Member}); err != nil {
		return fmt.Errorf("adding a user: %w", err)
	}
	theirs, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "flood", User: "flood"})
	if err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	call, calm, end, err := d.calmCalls(ctx, up, token)
	if err != nil {
		return err
	}
	defer end()
	bearer := "Authorization: Bearer " + theirs.Secret.Reveal() + "\r\n"
	for _, f := range []struct {
		what string
		n    int
		one  func(ctx context.Context) error
	}{
		{fmt.Sprintf("%d connections of a stranger whose requests never end", floodConns), floodConns, func(ctx context.Context) error { return d.unfinished(ctx, "") }},
		{fmt.Sprintf("%d of a member", floodConns), floodConns, func(ctx context.Context) error { return d.unfinished(ctx, bearer) }},
		{fmt.Sprintf("%d sessions of a member that are never ended", floodSessions), floodSessions, func(ctx context.Context) error { return d.session(ctx, theirs.Secret.Reveal()) }},
	} {
		if err := b.beside(ctx, d, f.what, f.n, f.one, call, calm); err != nil {
			return err
		}
	}
	return b.manySignIns(ctx)
}

// beside measures calls while a flood arrives and is held.
func (b *bench) beside(ctx context.Context, d *nized, what string, n int, one func(context.Context) error, call ways, calm load) error {
	held, end := context.WithCancel(ctx)
	defer end()
	var coming sync.WaitGroup
	var failed atomic.Int64
	coming.Go(func() { // evenly
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for sent, each := 0, n/int(floodTime/(10*time.Millisecond)); sent < n; {
			for range min(each, n-sent) {
				sent++
				coming.Go(func() {
					if one(held) != nil {
						failed.Add(1)
					}
				})
			}
			select {
			case <-tick.C:
			case <-held.Done():
				return
			}
		}
	})
	newcomer := func() string {
		c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		began := time.Now()
		res, err := c.Get("http://" + d.addr + "/healthz")
		if err != nil {
			return "/healthz does not answer a newcomer"
		}
		_ = res.Body.Close()
		return fmt.Sprintf("/healthz answers a newcomer %d in %s ms", res.StatusCode, number(millis(time.Since(began))))
	}
	now, err := d.underLoad(ctx, call, floodTime)
	if err != nil {
		b.table.add(row{what: "calls beside " + what, missing: err.Error()})
	} else {
		b.table.add(row{what: "calls beside " + what + ", p95 (p50 " + number(millis(now.p50)) + " ms)", value: millis(now.p95), unit: "ms",
			reference: fmt.Sprintf("calm %s ms (direct %s ms, now %s ms); %s", number(millis(calm.p95)), number(millis(calm.direct)), number(millis(now.direct)), newcomer()), ratio: float64(now.p95) / float64(calm.p95), floor: 2, counted: true})
		b.table.add(row{what: "... nized's own memory, at most", value: now.memory, unit: "MB", reference: number(calm.memory) + " calm", floor: 400, counted: true, missing: noProc(now.memory)})
	}
	st, err := api.GetStatus.Call(ctx, d.api, api.Empty{})
	if err != nil {
		b.table.add(row{what: "... what is open", missing: err.Error()})
	} else {
		b.table.add(row{what: "... files that nized has open", value: float64(st.Process.OpenFiles), reference: fmt.Sprintf("%d connections, %d of them unauthenticated; %d sessions", st.Connections.Open, st.Connections.Unauthenticated, st.Sessions)})
	}
	end()
	coming.Wait()
	return nil
}

// unfinished begins a request and never ends it; it returns when nized or ctx ends it.
func (d *nized) unfinished(ctx context.Context, headers string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+d.addr+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 100\r\n"+headers+"\r\n"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, c) // it ends with the connection
	return nil
}

// session begins a session and abandons it.
func (d *nized) session(ctx context.Context, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"flood","version":"1"}}}`))
	if err != nil {
		return err
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"} {
		req.Header.Set(k, v)
	}
	res, err := d.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// manySignIns lets a page load /login as an image, and many addresses use their quotas
// completely. Then a person signs in.
func (b *bench) manySignIns(ctx context.Context) (err error) {
	d, err := b.startNized(ctx, "signins", "NIZE_HTTP_TRUSTED_PROXIES=127.0.0.1", "NIZE_PUBLIC_URL=https://nize.example.com")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	ask := func(from string, headers ...string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.addr+"/login", nil)
		if err != nil {
			return 0, err
		}
		req.Host = "nize.example.com"
		req.Header.Set("X-Forwarded-For", from)
		req.Header.Set("X-Forwarded-Proto", "https")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		c := &http.Client{Transport: d.http.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	for range 6 {
		if _, err := ask("198.51.100.1", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image", "Sec-Fetch-Site", "cross-site"); err != nil {
			return err
		}
	}
	images, err := ask("198.51.100.1")
	if err != nil {
		return err
	}
	for n := range floodHosts {
		for range 5 {
			if _, err := ask(fmt.Sprintf("203.0.113.%d", n+1)); err != nil {
				return err
			}
		}
	}
	hosts, err := ask("198.51.100.2")
	if err != nil {
		return err
	}
	socket := "nizectl login works"
	if _, err := api.StartLogin.Call(ctx, d.api, api.StartLoginRequest{}); err != nil {
		text, _ := json.Marshal(err.Error()) // a string always encodes
		socket = "nizectl login does not work: " + string(text)
	}
	b.table.add(row{what: "/login of an address after six images of it", value: float64(images), reference: "303 opens a sign-in"})
	b.table.add(row{what: fmt.Sprintf("/login of another address after five of each of %d addresses", floodHosts), value: float64(hosts), reference: socket})
	return nil
}
