package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"nize/store"
	"nize/store/outage"
)

// outcome converts a runner's result and error to a final state.
func outcome(result *store.Result, err error) store.Outcome {
	if err != nil {
		failure := callError(err)
		state := store.Failed
		switch failure.Code {
		case store.CodeUnknown:
			state = store.Lost
		case store.CodeCancelled:
			state = store.Cancelled
		}
		return store.Outcome{State: state, Reason: failure.Message, Result: &store.Result{IsError: true, Error: failure}}
	}
	if result.IsError {
		return store.Outcome{State: store.Failed, Reason: store.Plain(briefResult(result)), Result: result}
	}
	return store.Outcome{State: store.Done, Result: result}
}

// privateReason is the public reason of a private call whose tool reported an error.
var privateReason = store.Textf("the tool reported an error")

// withoutPrivate removes the parts of an outcome that other people must not read. It keeps
// the result, which contains the tool's own words.
func withoutPrivate(o store.Outcome) store.Outcome {
	o.Private = true
	if o.State == store.Failed && o.Result != nil && (o.Result.Error == nil || o.Result.Error.Code == store.CodeTool) {
		o.Reason = privateReason
	}
	return o
}

// callError returns err as a caller may see it: an error of unknown type becomes "internal
// error".
func callError(err error) *store.CallError {
	var failure *store.CallError
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, context.Canceled):
		return &store.CallError{Code: store.CodeCancelled, Message: store.Textf("the caller left before the tool answered")}
	case errors.Is(err, context.DeadlineExceeded):
		return &store.CallError{Code: store.CodeTimeout, Message: store.Textf("the tool did not answer in time"), Retryable: true}
	case errors.Is(err, store.ErrRefused):
		return &store.CallError{Code: store.CodeRefused, Message: store.TextOf(err)}
	case outage.Is(err):
		return &store.CallError{Code: store.CodeUnavailable, Message: store.TextOf(store.ErrNoDatabase), Retryable: true}
	case errors.Is(err, store.ErrDiskFull):
		return &store.CallError{Code: store.CodeUnavailable, Message: store.Textf("the disk is full, so nothing can be recorded and nothing runs; free space and try again"), Retryable: true}
	}
	return &store.CallError{Code: store.CodeInternal, Message: store.Textf("internal error; the daemon's log has the cause")}
}

// briefResult returns a tool's result in one line: JSON compacted to a line, or the first
// line of any other text.
func briefResult(r *store.Result) string {
	text := strings.TrimSpace(r.Text())
	var compact bytes.Buffer
	if (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Compact(&compact, []byte(text)) == nil {
		text = compact.String()
	}
	return store.Clip(firstLine(text), 200)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
