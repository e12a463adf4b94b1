package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"nize/store"
)

const (
	maxCalls = 64       // calls of one reply
	maxArgs  = 1 << 20  // bytes of one call's arguments
	maxID    = 256      // bytes of a call's id
	maxExtra = 64 << 10 // bytes of what a service puts beside a call and needs back
	maxName  = 256      // bytes of a function's name that are kept: more than any service accepts
)

// piece is a part of a tool call in a stream.
type piece struct {
	Index    looseInt  `json:"index"`
	ID       looseText `json:"id"`
	Function struct {
		Name looseText `json:"name"`
		// Arguments is a string, or an object from services that don't send strings.
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

// callGatherer collects the pieces of the calls of one reply. The rules, in order:
//
//  1. a known index, and no id or the same one: that call
//  2. a known index with another id: the call with that id, or a new one
//  3. no index, and a known id: that call
//  4. no index, no id and no name: the last call
//  5. otherwise a new call
//
// In addition, a named piece with arguments for a call whose arguments are complete is a
// new call: some services number every call 0, or give all calls the same id.
type callGatherer struct {
	calls   []*gatheredCall
	byIndex map[int]*gatheredCall
}

type gatheredCall struct {
	id, name string
	args     []byte
	extra    json.RawMessage
}

func (g *callGatherer) addPiece(p piece) error {
	args, err := argsText(p.Function.Arguments)
	if err != nil {
		return err
	}
	c := g.findCall(p, args)
	if c == nil {
		if len(g.calls) == maxCalls {
			return fmt.Errorf("over %d tool calls in one answer", maxCalls)
		}
		c = &gatheredCall{id: string(p.ID)}
		g.calls = append(g.calls, c)
	}
	if p.Index.given {
		if g.byIndex == nil {
			g.byIndex = make(map[int]*gatheredCall)
		}
		g.byIndex[p.Index.n] = c
	}
	if c.id == "" {
		c.id = string(p.ID)
	}
	if c.name == "" {
		c.name = store.Head(string(p.Function.Name), maxName)
	}
	if len(c.args)+len(args) > maxArgs {
		return fmt.Errorf("the arguments of a tool call are over %d bytes", maxArgs)
	}
	c.args = append(c.args, args...)
	if len(p.Extra) > 0 && len(p.Extra) <= maxExtra && string(p.Extra) != "null" {
		c.extra = p.Extra
	}
	return nil
}

// dropRepeated removes duplicates: calls with the same id, name and arguments as an earlier
// one.
func (g *callGatherer) dropRepeated() {
	var kept []*gatheredCall
	for _, c := range g.calls {
		if c.id == "" || !slices.ContainsFunc(kept, func(o *gatheredCall) bool {
			return o.id == c.id && o.name == c.name && bytes.Equal(o.args, c.args)
		}) {
			kept = append(kept, c)
		}
	}
	g.calls = kept
}

// extras returns what the service put beside each call; nil for none.
func (g *callGatherer) extras() []json.RawMessage {
	out, some := make([]json.RawMessage, len(g.calls)), false
	for i, c := range g.calls {
		out[i], some = c.extra, some || len(c.extra) > 0
	}
	if !some {
		return nil
	}
	return out
}

// findCall returns the call that a piece belongs to, or nil for a new one.
func (g *callGatherer) findCall(p piece, args string) *gatheredCall {
	c := g.candidate(p)
	if c != nil && p.Function.Name != "" && args != "" && json.Valid(c.args) {
		return nil
	}
	return c
}

func (g *callGatherer) candidate(p piece) *gatheredCall {
	if p.Index.given {
		c := g.byIndex[p.Index.n]
		if c == nil || p.ID == "" || c.id == "" || string(p.ID) == c.id {
			return c
		}
	}
	if p.ID != "" {
		for _, c := range g.calls {
			if c.id == string(p.ID) {
				return c
			}
		}
		return nil
	}
	if !p.Index.given && p.Function.Name == "" && len(g.calls) > 0 {
		return g.calls[len(g.calls)-1]
	}
	return nil
}

// complete reports whether all calls are complete: each has a name, and arguments that are
// a JSON object, or none.
func (g *callGatherer) complete() bool {
	return !slices.ContainsFunc(g.calls, func(c *gatheredCall) bool {
		args := bytes.TrimSpace(c.args)
		return c.name == "" || len(args) > 0 && (args[0] != '{' || !json.Valid(args))
	})
}

// toolCalls returns the calls. One without a name can't be made; the agent tells the model
// so.
func (g *callGatherer) toolCalls() []store.ToolCall {
	var out []store.ToolCall
	for _, c := range g.calls {
		args := string(bytes.TrimSpace(c.args))
		if args == "" {
			args = "{}"
		}
		if len(c.id) > maxID {
			c.id = "" // we choose its id
		}
		out = append(out, store.ToolCall{Provider: c.id, Name: c.name, Args: args})
	}
	return out
}

// argsText decodes arguments that are a string, an object or missing.
func argsText(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", fmt.Errorf("reading the arguments of a tool call: %w", err)
		}
		return s, nil
	}
	return string(raw), nil
}
