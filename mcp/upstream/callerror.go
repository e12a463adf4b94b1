package upstream

import (
	"context"
	"errors"
	"fmt"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// callError is what the caller of Run is told. repeatable says that running the
// call twice does no harm, so that its outcome need not be known.
func callError(ctx context.Context, cfg store.Server, tool string, repeatable bool, err error) *store.CallError {
	var known *store.CallError
	if errors.As(err, &known) {
		return known
	}
	f := wire.AsFault(err)
	id := cfg.Name + ":" + tool
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
			return say(store.CodeTimeout, true, "%s did not answer within %s", id, cfg.Timeout)
		}
		return say(store.CodeUnknown, false, "%s did not answer within %s: the outcome is unknown; look before you run it again", id, cfg.Timeout)
	case f.Reach == wire.Answered:
		var rpc *wire.RPCError
		if errors.As(f.Err, &rpc) && rpc.Code == wire.CodeInvalidParams {
			return say(store.CodeInvalid, false, "%s: the server refuses the arguments: %v", id, rpc)
		}
		return say(store.CodeTool, false, "%s: the server answered with %v", id, f.Err)
	case f.Reach == wire.Never:
		return say(store.CodeUnavailable, true, "%s is not reachable: %v", cfg.Name, f.Err)
	case repeatable:
		return say(store.CodeUnavailable, true, "%s failed: %v", id, f.Err)
	}
	return say(store.CodeUnknown, false, "%s failed after it was sent: the outcome is unknown; look before you run it again (%v)", id, f.Err)
}
