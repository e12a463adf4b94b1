package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/eventstream"
)

const (
	openPages  = 500 // of 100 people, in a conversation of each; nize's maximum
	pagesEach  = 5
	pieces     = 100 // of an answer
	pieceEvery = 20 * time.Millisecond
)

// page measures the chat page: its first load, and many of them that follow answers while
// they are written.
func (b *bench) page(ctx context.Context) (err error) {
	model := httptest.NewServer(http.HandlerFunc(answerInPieces))
	defer model.Close()
	d, err := b.startNized(ctx, "page")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.models(ctx, "pieces", model.URL); err != nil {
		return err
	}
	first, err := d.visitor(ctx, "ann")
	if err != nil {
		return err
	}
	size, took, err := first.load(ctx)
	if err != nil {
		return err
	}
	b.table.add(row{what: "the chat page's first load, compressed, on the wire", value: float64(size) / 1024, unit: "KB", floor: 120, counted: true})
	b.table.add(row{what: "all its requests, six at once", value: millis(took), unit: "ms"})

	memory := func() float64 { return memoryOf(d.cmd.Process.Pid, "RssAnon:") }
	before := memory()
	all := []*visitor{first}
	for i := 1; i < openPages/pagesEach; i++ {
		v, err := d.visitor(ctx, fmt.Sprintf("person-%d", i))
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, v := range all {
		if err := v.open(ctx); err != nil {
			return err
		}
	}
	quiet, cpu, begin := memory(), d.cpu(), time.Now()
	for _, v := range all {
		if err := v.ask(ctx, "chat/threads/"+v.thread+"/messages", map[string]string{"key": "k1", "text": "Say it."}, nil); err != nil {
			return err
		}
	}
	most, events := 0.0, int64(0)
	for _, v := range all {
		select {
		case <-v.answered:
		case err := <-v.lost:
			return fmt.Errorf("a stream of events ended: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			return errors.New("an answer did not reach all pages")
		}
		most = max(most, memory())
		events += v.events.Load()
	}
	cpu = d.cpu() - cpu
	reference := fmt.Sprintf("%s s for %d answers in %d pieces each, %d events", number(time.Since(begin).Seconds()), len(all), pieces, events)
	b.table.add(row{what: fmt.Sprintf("own memory of %d open pages, above that before", openPages), value: quiet - before, unit: "MB", reference: number(most-before) + " MB while all of them are written to", missing: noProc(quiet)})
	b.table.add(row{what: "CPU of an event of a page, the turns that make them included", value: float64(cpu.Microseconds()) / float64(events), unit: "µs", reference: reference, missing: noProc(cpu)})
	return nil
}

// models makes a service at a URL the only model.
func (d *nized) models(ctx context.Context, name, address string) error {
	if _, err := api.AddProvider.Call(ctx, d.api, api.AddProviderRequest{Name: name, Kind: "openai-compatible", BaseURL: address + "/v1", Key: api.NewSecret("no-key")}); err != nil {
		return fmt.Errorf("adding the provider: %w", err)
	}
	if _, err := api.SetModel.Call(ctx, d.api, api.SetModelRequest{Name: name, Target: name + "/model"}); err != nil {
		return fmt.Errorf("adding the model: %w", err)
	}
	if _, err := api.SetDefaultModel.Call(ctx, d.api, api.ModelRequest{Name: name}); err != nil {
		return fmt.Errorf("choosing the model: %w", err)
	}
	return nil
}

// answerInPieces simulates a model that writes slowly.
func answerInPieces(w http.ResponseWriter, r *http.Request) {
	asked, _ := io.ReadAll(r.Body) // so that the end of the request is noticed
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	say := func(text string) {
		line, _ := json.Marshal(text) // a string always encodes
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%s}}]}`+"\n\n", line)
		_ = out.Flush() // the client left
	}
	switch {
	case bytes.Contains(asked, []byte(askLong)):
		for _, piece := range longPieces() {
			if !wait(r, longPieceEvery) {
				return
			}
			say(piece)
		}
	case bytes.Contains(asked, []byte(askShort)):
		say("An answer with **several** blocks:\n\n- one\n- two with `code`\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n")
	default:
		for i := range pieces {
			if !wait(r, pieceEvery) {
				return
			}
			say(fmt.Sprintf("piece %d, some more words of it. ", i))
		}
	}
	fmt.Fprint(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n")
}

// wait waits, and reports whether the client is still connected.
func wait(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// visitor is a browser with a signed-in user, with pages on a conversation.
type visitor struct {
	base   string
	http   *http.Client
	thread string
	// events counts the events of all of its pages; answered is closed when each of them
	// has the whole answer.
	events   atomic.Int64
	answered chan struct{}
	lost     chan error
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// visitor creates a person and signs them in.
func (d *nized) visitor(ctx context.Context, name string) (*visitor, error) {
	return d.visitorBy(ctx, name, &http.Transport{MaxConnsPerHost: pagesEach + 6})
}

func (d *nized) visitorBy(ctx context.Context, name string, way http.RoundTripper) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("keeping cookies: %w", err)
	}
	v := &visitor{base: "http://" + d.addr, http: &http.Client{Jar: jar, Transport: way}, answered: make(chan struct{}), lost: make(chan error, pagesEach)}
	if _, err := api.AddUser.Call(ctx, d.api, api.AddUserRequest{Name: name}); err != nil {
		return nil, fmt.Errorf("adding a person: %w", err)
	}
	made, err := api.StartLogin.Call(ctx, d.api, api.StartLoginRequest{User: name})
	if err != nil {
		return nil, fmt.Errorf("making an address to sign in at: %w", err)
	}
	form, err := v.get(ctx, "/login", nil)
	if err != nil {
		return nil, err
	}
	field := formField.FindSubmatch(form)
	if field == nil {
		return nil, errors.New("the page for signing in has no form")
	}
	_, secret, _ := strings.Cut(made.URL.Reveal(), "#")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+"/login", strings.NewReader(url.Values{"form": {string(field[1])}, "secret": {secret}}.Encode()))
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if _, err := v.do(req); err != nil {
		return nil, err
	}
	var th store.Thread
	err = v.ask(ctx, "chat/threads", map[string]string{}, &th)
	v.thread = th.ID
	return v, err
}

func (v *visitor) do(req *http.Request) ([]byte, error) {
	res, err := v.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", req.URL.Path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		return nil, fmt.Errorf("asking for %s: %s: %.300s: %w", req.URL.Path, res.Status, body, err)
	}
	return body, nil
}

func (v *visitor) get(ctx context.Context, path string, head http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	for name, values := range head {
		req.Header[name] = values
	}
	return v.do(req)
}

// ask sends a request in the page's manner.
func (v *visitor) ask(ctx context.Context, path string, body, answer any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+"/app/v1/"+path, strings.NewReader(string(encoded)))
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	got, err := v.do(req)
	if err != nil || answer == nil {
		return err
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	return nil
}

// asset matches the files that the page's shell loads.
var asset = regexp.MustCompile(`.?"(/app/assets/[^"]+\.(?:js|css|svg))"`)

// load loads everything that a browser would at a first visit.
func (v *visitor) load(ctx context.Context) (size int, took time.Duration, err error) {
	head := http.Header{"Accept-Encoding": {"gzip"}}
	begin := time.Now()
	shell, err := v.get(ctx, "/app/", nil)
	if err != nil {
		return 0, 0, err
	}
	small, err := v.get(ctx, "/app/", head)
	if err != nil {
		return 0, 0, err
	}
	paths, seen := []string{"/app/phrases/en.json", "/app/v1/me"}, map[string]bool{}
	for _, m := range asset.FindAllSubmatch(shell, -1) {
		if path := string(m[1]); m[0][0] != ':' && !seen[path] { // the import map names what may be loaded later
			seen[path] = true
			paths = append(paths, path)
		}
	}
	var total atomic.Int64
	_, err = rate(ctx, 6, len(paths), func(ctx context.Context, n int) error {
		body, err := v.get(ctx, paths[n-1], head)
		total.Add(int64(len(body)))
		return err
	})
	return len(small) + int(total.Load()), time.Since(begin), err
}

// open opens all pages of the visitor, and returns when each has received its initial
// state.
func (v *visitor) open(ctx context.Context) error {
	var left, began sync.WaitGroup
	for range pagesEach {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+"/app/v1/events?thread="+v.thread, nil)
		if err != nil {
			return fmt.Errorf("opening a page: %w", err)
		}
		res, err := v.http.Do(req)
		if err != nil {
			return fmt.Errorf("opening a page: %w", err)
		}
		if res.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(res.Body) // the status is reported
			res.Body.Close()
			return fmt.Errorf("opening a page: %s: %.300s", res.Status, body)
		}
		left.Add(1)
		began.Add(1)
		go func() {
			defer res.Body.Close()
			if err := v.follow(res.Body, began.Done, left.Done); err != nil && ctx.Err() == nil {
				v.lost <- err
			}
		}()
	}
	go func() {
		left.Wait()
		close(v.answered)
	}()
	began.Wait()
	return nil
}

// follow reads the events of a page.
func (v *visitor) follow(stream io.Reader, began, answered func()) error {
	in := eventstream.NewReader(stream, 4<<20)
	seen, working, text := false, false, false
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if !seen {
			began()
		}
		seen = true
		v.events.Add(1)
		switch data := string(e.Data); e.Name {
		case "state":
			working = working || strings.Contains(data, `"working"`)
			if working && text && strings.Contains(data, `"idle"`) {
				answered()
				answered = func() {}
			}
		case "append", "message":
			text = text || strings.Contains(data, "piece ")
		}
	}
}
