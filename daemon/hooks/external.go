package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"nize/mcp"
	"nize/mcp/upstream/process"
	"nize/store"
	"nize/store/webhook"
)

// question is sent to a hook outside of nize.
type question struct {
	Point     string          `json:"point"`           // before or after
	Again     bool            `json:"again,omitempty"` // a person's own hook changed the arguments after the first time
	Hook      string          `json:"hook"`
	User      string          `json:"user"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Scope     string          `json:"scope"`
	Surface   store.Surface   `json:"surface"`
	Time      time.Time       `json:"time"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// reply is its answer; any other answer is a failure of the hook.
type reply struct {
	Decision  string          `json:"decision"` // allow, deny or change
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
}

const (
	// maxReply is the maximum size of an answer, which may contain a whole changed result.
	maxReply  = 16 << 20
	maxReason = 500
	// longestHook is the maximum timeout that a hook may have.
	longestHook = time.Minute
)

// external is a hook that runs outside of nize.
type external struct {
	named
	limit time.Duration
	now   func() time.Time
	ask   func(ctx context.Context, body []byte) ([]byte, error)
}

func (e *external) Limit() time.Duration { return e.limit }

// setLimit parses a timeout; "" means the default of all hooks.
func (e *external) setLimit(text string) error {
	e.limit = mcp.HookTime
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longestHook {
		return fmt.Errorf("timeout %q: want a time such as 2s, at most %s", text, longestHook)
	}
	e.limit = d
	return nil
}

func (e *external) question(point string, inv *mcp.Invocation) question {
	args := inv.Args
	if !json.Valid(args) {
		args = encode(string(args))
	}
	return question{Point: point, Hook: e.record.Name, User: inv.By.User, Server: inv.Server(), Tool: inv.ToolID(),
		Scope: string(e.record.Scope), Surface: inv.By.Surface, Time: e.now().UTC(), Arguments: args}
}

// put sends the question and reads the answer. It returns a denial as an error.
func (e *external) put(ctx context.Context, q question) (reply, error) {
	text, err := e.ask(ctx, encode(q))
	if err != nil {
		return reply{}, err
	}
	r, err := readReply(text, q.Point)
	if err == nil && r.Decision == "deny" {
		reason := store.Plain(store.RedactText(store.Clip(store.Line(r.Reason), maxReason)))
		if r.Reason == "" {
			reason = store.Textf("hook %s does not allow %s", e.record.Name, q.Tool)
		}
		return r, &store.CallError{Code: store.CodeRefused, Message: reason}
	}
	return r, err
}

// readReply parses a hook's answer at a point.
func readReply(text []byte, point string) (r reply, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return r, errors.New("its answer is not a JSON object of that form")
	}
	changed := r.Arguments
	if point == "after" {
		changed = r.Result
	}
	switch r.Decision {
	case "allow", "deny":
		return r, nil
	case "change":
		if canonical, err := store.Canonical(changed); err != nil || canonical[0] != '{' {
			return r, errors.New("it answered change without an object to change it to")
		}
		return r, nil
	}
	return r, errors.New("its decision is not allow, deny or change")
}

func (e *external) Before(ctx context.Context, inv *mcp.Invocation) error {
	return e.before(ctx, inv, false)
}

// Review implements [mcp.ReviewHook].
func (e *external) Review(ctx context.Context, inv *mcp.Invocation) error {
	return e.before(ctx, inv, true)
}

func (e *external) before(ctx context.Context, inv *mcp.Invocation, again bool) error {
	q := e.question("before", inv)
	q.Again = again
	r, err := e.put(ctx, q)
	if err == nil && r.Decision == "change" {
		inv.Args = r.Arguments
	}
	return err
}

func (e *external) After(ctx context.Context, inv *mcp.Invocation, res *store.Result) error {
	q := e.question("after", inv)
	q.Result = res.Raw
	if res.Error != nil || len(res.Raw) == 0 {
		q.Result = encode(struct {
			Content []json.RawMessage `json:"content"`
			IsError bool              `json:"isError"`
		}{[]json.RawMessage{textItem(res.Whole())}, true})
	}
	r, err := e.put(ctx, q)
	if err != nil || r.Decision != "change" {
		return err
	}
	var shape struct {
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(r.Result, &shape); err != nil {
		return errors.New("it changed the result to something that is not a result")
	}
	if res.Error != nil { // keep nize's own message about a call without a result
		return nil
	}
	res.Raw, res.Shown, res.IsError = r.Result, nil, shape.IsError
	return nil
}

// newExec returns a hook that runs a command, which gets the question on its standard
// input. It runs in its own process group with an environment that only contains a path;
// its standard error is ignored.
func newExec(n named, spawn func(process.Command) (process.Child, error), now func() time.Time) (mcp.Hook, error) {
	var config struct {
		Command []string `json:"command"`
		Timeout string   `json:"timeout"`
	}
	e := &external{named: n, now: now}
	if err := decode(n.record, &config); err != nil {
		return nil, err
	}
	if len(config.Command) == 0 || config.Command[0] == "" {
		return nil, errors.New(`want {"command":["/path/to/program","argument"],"timeout":"2s"}`)
	}
	for i, word := range config.Command {
		if store.LooksSecret(word) {
			return nil, fmt.Errorf("word %d of the command looks like a key, and everybody on this machine can read a command line", i+1)
		}
	}
	e.ask = func(ctx context.Context, body []byte) ([]byte, error) {
		return process.Run(ctx, spawn, process.Job{Argv: config.Command, Dir: "/", Env: []string{"PATH=" + cleanPath, "LANG=C.UTF-8"}, Input: body, MaxOutput: maxReply})
	}
	return e, e.setLimit(config.Timeout)
}

// cleanPath is the only variable, besides the language, in a command's environment.
const cleanPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// newWebhook returns a hook that calls an HTTP service. An admin chose its URL, so it may
// be at any address; requests use no proxy and follow no redirects.
func newWebhook(n named, now func() time.Time) (mcp.Hook, error) {
	var config struct {
		URL     string `json:"url"`
		Timeout string `json:"timeout"`
	}
	e := &external{named: n, now: now}
	if err := decode(n.record, &config); err != nil {
		return nil, err
	}
	if err := webhook.CheckURL(config.URL); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	var key []byte
	if !n.record.Secret.IsZero() {
		var err error
		if key, err = webhook.ReadSecret(n.record.Secret); err != nil {
			return nil, err
		}
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: longestHook}).DialContext, TLSHandshakeTimeout: longestHook, MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.ask = func(ctx context.Context, body []byte) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, config.URL, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("making the request: %w", store.NetworkError(err))
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", "nized")
		at := now()
		webhook.Sign(req.Header, key, "msg_"+store.NewID(at), at, body)
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("it can't be reached: %w", store.NetworkError(err))
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
		switch {
		case resp.StatusCode/100 != 2:
			return nil, fmt.Errorf("it answered %d", resp.StatusCode)
		case err != nil:
			return nil, fmt.Errorf("reading its answer: %w", err)
		case len(out) > maxReply:
			return nil, fmt.Errorf("its answer is longer than %d bytes", maxReply)
		}
		return out, nil
	}
	return e, e.setLimit(config.Timeout)
}
