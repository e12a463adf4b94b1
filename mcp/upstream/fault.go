package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"nize/store"
)

// reach is how far a request that failed can have come.
type reach int

const (
	maybe    reach = iota // it may have run: nobody can tell
	never                 // it cannot have reached the tool
	answered              // the server answered it
)

// fault is why a request failed, and what that says about the tool and about
// the session.
type fault struct {
	reach reach
	drop  bool       // the session is of no more use: make a new one
	code  store.Code // for the caller; "" follows from reach
	err   error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// asFault finds the fault in err; an error without one tells nothing.
func asFault(err error) *fault {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{reach: maybe, drop: true, err: err}
}

// credentialError is an answer that wants another credential.
type credentialError struct{ text string }

func (e *credentialError) Error() string { return e.text }

// loginLost says whether a session failed because the server refused the
// credential (401 or 403).
func loginLost(err error) bool {
	var refused *credentialError
	var status *statusError
	return errors.As(err, &refused) ||
		errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden)
}

// netFault judges an error of an HTTP round trip: a dial that failed has sent
// nothing; net/http itself repeats what an idle connection lost unsent.
func netFault(err error) *fault {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &fault{reach: never, drop: true, err: withoutURL(err)}
	}
	return &fault{reach: maybe, drop: true, err: withoutURL(err)}
}

// withoutURL strips the *url.Error that repeats method and URL: a URL may hold a key.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// callError is what the caller of Run is told. repeatable says that running the
// call twice does no harm, so that its outcome need not be known.
func callError(ctx context.Context, cfg store.Server, tool string, repeatable bool, err error) *store.CallError {
	var known *store.CallError
	if errors.As(err, &known) {
		return known
	}
	f := asFault(err)
	id := cfg.Name + ":" + tool
	say := func(code store.Code, retryable bool, format string, args ...any) *store.CallError {
		return &store.CallError{Code: code, Message: store.RedactText(fmt.Sprintf(format, args...)), Retryable: retryable}
	}
	switch {
	case f.code != "":
		return say(f.code, f.reach == never, "%s: %v", id, f.err)
	case errors.Is(err, context.Canceled) || context.Cause(ctx) == context.Canceled:
		if f.reach == never {
			return say(store.CodeCancelled, true, "%s was cancelled before it was sent", id)
		}
		return say(store.CodeCancelled, repeatable, "%s was cancelled; the server was told to stop", id)
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		switch {
		case f.reach == never:
			return say(store.CodeTimeout, true, "%s was not sent within %s: %v", id, cfg.Timeout, f.err)
		case repeatable:
			return say(store.CodeTimeout, true, "%s did not answer within %s", id, cfg.Timeout)
		}
		return say(store.CodeUnknown, false, "%s did not answer within %s: the outcome is unknown; look before you run it again", id, cfg.Timeout)
	case f.reach == answered:
		var rpc *rpcError
		if errors.As(f.err, &rpc) && rpc.Code == codeInvalidParams {
			return say(store.CodeInvalid, false, "%s: the server refuses the arguments: %v", id, rpc)
		}
		return say(store.CodeTool, false, "%s: the server answered with %v", id, f.err)
	case f.reach == never:
		return say(store.CodeUnavailable, true, "%s is not reachable: %v", cfg.Name, f.err)
	case repeatable:
		return say(store.CodeUnavailable, true, "%s failed: %v", id, f.err)
	}
	return say(store.CodeUnknown, false, "%s failed after it was sent: the outcome is unknown; look before you run it again (%v)", id, f.err)
}
