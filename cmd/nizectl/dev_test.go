package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"nize/cmd/nizectl/command"
)

// TestDev starts a pretended platform, uses its page and its API with what was
// printed, and ends it.
func TestDev(t *testing.T) {
	for _, p := range []platformOfDev{
		{"slack", "/dev/state?user=U0ANN&channel=C0GENERAL", "auth.test", "Bearer ", `"ok":true`, "invalid_auth"},
		{"discord", "/dev/state?user=3000000000000000001&channel=4000000000000000001", "v9/users/@me", "Bot ", `"username":"nize"`, "401: Unauthorized"},
	} {
		t.Run(p.name, func(t *testing.T) { testDev(t, p) })
	}
}

// platformOfDev is a platform, a call of its API, and what is answered with the
// token that was printed and with another.
type platformOfDev struct{ name, state, call, kind, good, bad string }

func testDev(t *testing.T, p platformOfDev) {
	out, in := io.Pipe()
	a := &command.App{In: strings.NewReader(""), Raw: in, Out: bufio.NewWriter(in), Err: io.Discard, Env: func(string) string { return "" }}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1) // one command
	go func() { code <- run(ctx, a, []string{"--json", "dev", p.name}) }()
	var got struct {
		Page     string `json:"page"`
		APIURL   string `json:"api_url"`
		BotToken string `json:"bot_token"`
	}
	if err := json.NewDecoder(out).Decode(&got); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the pipe
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(url, header, value string) string {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(header, value)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	site, key, _ := strings.Cut(got.Page, "/#")
	if body := get(site+p.state, "X-Key", key); !strings.Contains(body, `"name":"general"`) {
		t.Errorf("the page's state is %s", body)
	}
	if body := get(got.APIURL+p.call, "Authorization", p.kind+got.BotToken); !strings.Contains(body, p.good) {
		t.Errorf("%s answered %s", p.call, body)
	}
	if body := get(got.APIURL+p.call, "Authorization", p.kind+"fake-bot"); !strings.Contains(body, p.bad) {
		t.Errorf("a token that was never given: %s", body)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("it ended with %d", got)
	}
	in.Close()
	if _, err := net.Dial("tcp", strings.TrimPrefix(site, "http://")); err == nil {
		t.Error("somebody still listens")
	}
}
