// Package hooks implements the hooks that run around uses of meta-tools and calls of tools.
//
// Audit, access control and the truncation of results are built in and run in that order.
// The hooks that admins and people configure run within them: see [Set]. Their types are in
// store/hooks, and their records in store/record, since they are moved and deleted with people.
package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"nize/mcp"
	"nize/mcp/feature"
	"nize/store"
)

// Audit is always the first hook. A call's own state changes always have events, since the
// store writes both in one transaction; Audit adds an event for the use of a meta-tool,
// with its outcome and duration.
type Audit struct {
	Events interface {
		AddEvent(by store.Caller, e store.Event)
	}
	Log *slog.Logger
	Now func() time.Time
}

var _ mcp.LimitedHook = Audit{}

func (Audit) Ref() store.HookRef                            { return store.HookRef{ID: "audit"} }
func (Audit) Limit() time.Duration                          { return 0 }
func (Audit) Before(context.Context, *mcp.Invocation) error { return nil }

func (a Audit) After(ctx context.Context, inv *mcp.Invocation, r *store.Result) error {
	took := a.Now().Sub(inv.Started)
	outcome, code := store.Done, store.Code("")
	if r.Error != nil {
		outcome, code = store.Failed, r.Error.Code
	}
	if inv.Point == mcp.AroundCall {
		if !a.Log.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		a.Log.Debug("call", "call", inv.Call.ID, "tool", inv.Tool, "user", inv.By.User, "surface", string(inv.By.Surface), "took", took, "code", string(code))
		return nil
	}
	data, err := json.Marshal(struct {
		Args   json.RawMessage `json:"args"`
		TookUS int64           `json:"took_us"`
		Code   store.Code      `json:"code,omitempty"`
		Thread string          `json:"thread,omitempty"` // so that it is deleted with the conversation
	}{store.Redact(inv.Args, 512), took.Microseconds(), code, inv.Scope.Thread})
	if err != nil {
		return fmt.Errorf("describing the use of %s: %w", inv.Tool, err)
	}
	a.Events.AddEvent(inv.By, store.Event{Kind: "meta." + inv.Tool, Subject: inv.Tool, Outcome: outcome, Data: data})
	return nil
}

// Access denies a call whose tool its caller may not use. The gateway already searches only
// usable tools; the hook checks again at the time of the call, so that bypassing the search
// doesn't give access to the tool.
type Access struct{}

var _ mcp.LimitedHook = Access{}

func (Access) Ref() store.HookRef { return store.HookRef{ID: "access-control"} }

func (Access) Limit() time.Duration { return 0 }

func (Access) Before(_ context.Context, inv *mcp.Invocation) error { return inv.Allowed() }

func (Access) After(context.Context, *mcp.Invocation, *store.Result) error { return nil }

// Truncate truncates long results. The whole result is stored with the call, and the marker
// names the tool that reads the rest.
type Truncate struct {
	Bytes func() int // limit of the bytes that are passed on
	Items int        // limit of the content items
}

var _ mcp.LimitedHook = Truncate{}

func (Truncate) Ref() store.HookRef                            { return store.HookRef{ID: "response-truncation"} }
func (Truncate) Limit() time.Duration                          { return 0 }
func (Truncate) Before(context.Context, *mcp.Invocation) error { return nil }

func (t Truncate) After(_ context.Context, inv *mcp.Invocation, r *store.Result) error {
	if inv.Point != mcp.AroundCall || r.Raw == nil || inv.Tool == mcp.ReadResult || !isTool(inv.Call) {
		return nil
	}
	limit := least(t.Bytes(), inv.MaxBytes)
	t.Items = least(t.Items, inv.MaxItems)
	if len(r.Raw) <= limit && bytes.Count(r.Raw, []byte(`"type"`)) <= t.Items {
		return nil
	}
	shown, err := t.cut(callID(inv), r.Raw, limit)
	if err != nil {
		return err
	}
	r.Shown = shown
	return nil
}

// isTool reports whether a tool was called. A prompt or resource is read by a client that
// requested the whole of it, in its own form.
func isTool(c *store.Call) bool {
	kind, _ := feature.Of(c.Tool)
	return kind == ""
}

// cut keeps whole items while they fit, then the beginning of the first text that doesn't,
// and drops structuredContent, which would be wrong if it were cut.
func (t Truncate) cut(call string, raw json.RawMessage, limit int) (json.RawMessage, error) {
	var result struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("cutting the result of call %s: %w", call, err)
	}
	if len(raw) <= limit && len(result.Content) <= t.Items {
		return nil, nil
	}
	whole := &store.Result{Raw: raw}
	total := len(whole.Whole())
	var out struct {
		Content []json.RawMessage `json:"content"`
		IsError bool              `json:"isError,omitempty"`
	}
	out.IsError = result.IsError
	left, shown := limit, 0
	for i, item := range result.Content {
		if i >= t.Items {
			break
		}
		if len(item) <= left {
			out.Content = append(out.Content, item)
			left -= len(item)
			shown += len((&store.Result{Raw: wrap(item)}).Whole()) + 1
			continue
		}
		var text struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(item, &text); err != nil || text.Type != "text" {
			break
		}
		head := strings.ToValidUTF8(text.Text[:min(len(text.Text), left/2)], "")
		out.Content = append(out.Content, textItem(head))
		shown += len(head)
		break
	}
	marker := fmt.Sprintf("[cut: %d of %d bytes are shown. Read on with %s {\"call\":%q,\"offset\":%d}]", min(shown, total), total, mcp.ReadResult, call, min(shown, total))
	out.Content = append(out.Content, textItem(marker))
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("cutting the result of call %s: %w", call, err)
	}
	return b, nil
}

func wrap(item json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage(`{"content":[`), item...), `]}`...)
}

// asCallError reports whether an error is a hook's own decision.
func asCallError(err error, said **store.CallError) bool { return errors.As(err, said) }

func textItem(text string) json.RawMessage {
	b, err := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
	if err != nil {
		panic(err) // unreachable: a string always encodes
	}
	return b
}
