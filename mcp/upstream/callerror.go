package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// callError returns the error of Run. repeatable means that running the call twice is
// harmless, so that its outcome need not be known.
func callError(ctx context.Context, cfg store.Server, tool string, repeatable bool, err error) *store.CallError {
	var known *store.CallError
	if errors.As(err, &known) {
		return known
	}
	f := wire.AsFault(err)
	id := cfg.Name + ":" + tool
	said := ""
	if f.Said != "" {
		said = "; meanwhile it wrote " + f.Said + " to standard output"
	}
	say := func(code store.Code, retryable bool, format string, args ...any) *store.CallError {
		return &store.CallError{Code: code, Message: store.Plain(store.RedactText(fmt.Sprintf(format, args...))), Retryable: retryable}
	}
	switch {
	case f.Code != "":
		return say(f.Code, f.Reach == wire.Never, "%s: %v", id, f.Err)
	case errors.Is(err, context.Canceled) || context.Cause(ctx) == context.Canceled:
		if f.Reach == wire.Never {
			return say(store.CodeCancelled, true, "%s was cancelled before it was sent", id)
		}
		return say(store.CodeCancelled, repeatable, "%s was cancelled; the server was told to stop", id)
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		switch {
		case f.Reach == wire.Never:
			return say(store.CodeTimeout, true, "%s was not sent within %s: %v", id, cfg.Timeout, f.Err)
		case repeatable:
			return say(store.CodeTimeout, true, "%s did not answer within %s%s", id, cfg.Timeout, said)
		}
		return say(store.CodeUnknown, false, "%s did not answer within %s: the outcome is unknown; check before you run it again%s", id, cfg.Timeout, said)
	case f.Reach == wire.Answered:
		var rpc *wire.RPCError
		if errors.As(f.Err, &rpc) && rpc.Code == wire.CodeInvalidParams {
			return say(store.CodeInvalid, false, "%s: the server refuses the arguments: %v", id, rpc)
		}
		return say(store.CodeTool, false, "%s: the server answered with %v", id, f.Err)
	case f.Reach == wire.Never && wantsCredential(f.Err):
		return say(store.CodeUnavailable, true, "%s: %v: it rejects the credential; see the server's headers and nizectl credentials set", id, f.Err)
	case f.Reach == wire.Never:
		return say(store.CodeUnavailable, true, "%s is not reachable: %v", cfg.Name, f.Err)
	case repeatable:
		return say(store.CodeUnavailable, true, "%s failed: %v", id, f.Err)
	}
	return say(store.CodeUnknown, false, "%s failed after it was sent: the outcome is unknown; check before you run it again (%v)", id, f.Err)
}

// wantsCredential reports whether a server rejected the credential while connecting and
// gave no explanation of its own.
func wantsCredential(err error) bool {
	var status *wire.StatusError
	return errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
}
