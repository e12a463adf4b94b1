package asks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"nize/daemon/agenthook"
	"nize/daemon/api"
	"nize/daemon/failure"
	"nize/store"
)

// HookPath is the path to which Claude Code posts the events of its HTTP hook.
const HookPath = "/hooks/claude-code"

const (
	// maxEvent bounds the body of a hook event.
	maxEvent = 8 << 20
	// askTime is the timeout of submitting an ask, without waiting for a decision.
	askTime = 30 * time.Second
	// hookWait is how long Claude Code's hook waits over HTTP: less than the timeout that
	// nizectl connect configures for it.
	hookWait = 9 * time.Minute
	// cancelTime is the timeout of withdrawing an ask.
	cancelTime = 5 * time.Second
)

// Hook serves POST /hooks/claude-code: it reads an event of Claude Code's HTTP hook and
// responds as a command hook would. Any error denies the step.
func (a *Asks) Hook(caller func(*http.Request) (store.Caller, error)) http.Handler {
	client, _ := agenthook.Find("claude-code")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		by, err := caller(r)
		body, readErr := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
		if readErr != nil {
			failure.Text.Write(w, &api.Error{Code: "invalid", Message: "the event broke off"})
			return
		}
		e, eventErr := client.Read(body)
		switch {
		case errors.Is(eventErr, agenthook.ErrOther):
			w.WriteHeader(http.StatusNoContent)
			return
		case eventErr == nil && err == nil && client.Skips(e.Tool, nil, nil):
			w.WriteHeader(http.StatusNoContent)
			return
		case len(body) > maxEvent:
			eventErr = fmt.Errorf("the event is over %d MiB", maxEvent>>20)
		}
		var d agenthook.Decision
		switch err := cmp.Or(err, eventErr); {
		case err != nil:
			d = agenthook.Decision{Verdict: agenthook.Deny, Reason: "nize can't decide: " + err.Error()}
		default:
			d = a.decide(r.Context(), by, e)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(client.Answer(e, d)) // the client has disconnected
	})
}

// decide submits an ask for an event, and waits. If the wait ends without a decision, it
// withdraws the ask.
func (a *Asks) decide(ctx context.Context, by store.Caller, e agenthook.Event) agenthook.Decision {
	unable := func(err error) agenthook.Decision {
		why := store.ErrText(err)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			why = "it took too long to store the ask"
		case errors.Is(err, context.Canceled): // unless the client has disconnected
			why = "nized is stopping, or has lost its database"
		}
		return agenthook.Decision{Verdict: agenthook.Deny, Reason: "nize can't decide: " + why}
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	got, err := a.Post(asking, by, api.AskRequest{
		Source: "claude-code", Tool: e.Tool, Title: e.Title, Arguments: e.Args, Key: e.Key,
		Context: &api.AskContext{Cwd: e.Cwd, Session: e.Session},
	})
	if err != nil {
		return unable(err)
	}
	id := got.ID
	if got.State == string(store.Pending) {
		got, err = a.find(ctx, by, id, hookWait)
	}
	if err != nil || got.State == string(store.Pending) {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		_, _ = a.Cancel(late, by, api.CancelAskRequest{ID: id}) // if it fails, the ask expires
	}
	if err != nil {
		return unable(err)
	}
	return agenthook.DecisionOf(got, e.Args)
}

// FailClosed turns every error response to Claude Code's hook into a denial with the
// reason: no database, a rejected host, too many requests, a panic. Claude Code otherwise
// runs a step after an error status, unless its settings say otherwise, and versions
// without onFailure ignore that setting.
func FailClosed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(path.Clean("/"+r.URL.Path)+"/", HookPath+"/") {
			next.ServeHTTP(w, r)
			return
		}
		c := &closed{ResponseWriter: w}
		defer func() {
			fault := recover()
			if !c.passed {
				c.deny()
			}
			if fault != nil {
				_ = http.NewResponseController(w).Flush() // send the response before the connection is closed
				panic(fault)
			}
		}()
		next.ServeHTTP(c, r)
	})
}

// closed is a response that is passed on if it is a success, and otherwise becomes a
// denial.
type closed struct {
	http.ResponseWriter
	passed, failed bool
	reason         bytes.Buffer
}

// maxReason bounds how much of a failure's text is kept.
const maxReason = 2000

func (c *closed) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *closed) WriteHeader(status int) {
	switch {
	case c.failed:
	case c.passed, status < http.StatusOK:
		c.ResponseWriter.WriteHeader(status)
	case status < http.StatusMultipleChoices:
		c.passed = true
		c.ResponseWriter.WriteHeader(status)
	default:
		c.failed = true
	}
}

func (c *closed) Write(b []byte) (int, error) {
	if c.failed {
		c.reason.Write(b[:min(len(b), maxReason-c.reason.Len())])
		return len(b), nil
	}
	c.passed = true
	return c.ResponseWriter.Write(b)
}

func (c *closed) deny() {
	why := strings.TrimSpace(strings.ToValidUTF8(c.reason.String(), ""))
	client, _ := agenthook.Find("claude-code")
	body := client.Answer(agenthook.Event{}, agenthook.Decision{Verdict: agenthook.Deny, Reason: "nize can't decide: " + cmp.Or(why, "it failed without a reason; its log says more")})
	h := c.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Del("Location")
	c.ResponseWriter.WriteHeader(http.StatusOK)
	_, _ = c.ResponseWriter.Write(body) // the client has disconnected
}
