package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/schema"
	"nize/store"
)

const instructions = `Everyday tools that need no account and no network. Times are computed from the embedded IANA database: pass cities, countries or zones as people write them. ` +
	`Arithmetic and unit conversion are exact where the result is a finite decimal. The notebook (note_…) keeps notes on this computer; note_add and note_delete change it.`

// toolbox is what the tools work with. The zero value of each field works.
type toolbox struct {
	now   func() time.Time // time.Now if nil
	roll  func(n int) int  // 0 to n-1, random if nil
	notes notebook
}

func (b *toolbox) clock() time.Time {
	if b.now == nil {
		return time.Now()
	}
	return b.now()
}

func (b *toolbox) random(n int) int {
	if b.roll == nil {
		return rand.IntN(n)
	}
	return b.roll(n)
}

// kind says what a tool does to the world.
type kind int

const (
	pure    kind = iota // the same answer every time, nothing changes
	reading             // changes nothing, but answers differ
	adding              // adds something
	erasing             // destroys something
)

// tool is one entry of the table in tools.go.
type tool struct {
	name, title, description string
	kind                     kind
	in, out                  string // JSON Schemas
	run                      func(context.Context, json.RawMessage) (json.RawMessage, string, error)
}

// typed adapts a function over structs. The text is for people and models, the
// struct for programs; they say the same.
func typed[In, Out any](f func(In) (Out, string, error)) func(context.Context, json.RawMessage) (json.RawMessage, string, error) {
	return func(_ context.Context, raw json.RawMessage) (json.RawMessage, string, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, "", fmt.Errorf("reading the arguments: %w", err)
		}
		out, text, err := f(in)
		if err != nil {
			return nil, "", err
		}
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(out); err != nil {
			return nil, "", fmt.Errorf("writing the answer: %w", err)
		}
		return bytes.TrimSpace(buf.Bytes()), text, nil
	}
}

func newServer(b *toolbox) *sdk.Server {
	server := sdk.NewServer(
		&sdk.Implementation{Name: "nize-toolbox", Title: "Toolbox", Version: buildVersion()},
		&sdk.ServerOptions{Instructions: instructions, Logger: slog.New(slog.DiscardHandler)})
	for _, t := range b.tools() {
		no, destructive := false, t.kind == erasing
		server.AddTool(&sdk.Tool{
			Name: t.name, Title: t.title, Description: t.description,
			InputSchema: json.RawMessage(t.in), OutputSchema: json.RawMessage(t.out),
			Annotations: &sdk.ToolAnnotations{
				Title:           t.title,
				ReadOnlyHint:    t.kind <= reading,
				IdempotentHint:  t.kind != adding,
				DestructiveHint: &destructive,
				OpenWorldHint:   &no,
			},
		}, handle(t))
	}
	return server
}

// handle checks the arguments, runs the tool and never lets a panic end the
// process.
func handle(t tool) sdk.ToolHandler {
	// Compiled at the first call: all of them would be half of the start-up time.
	validator := sync.OnceValues(func() (*schema.Validator, error) { return schema.Compile(json.RawMessage(t.in)) })
	return func(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = failed(fmt.Errorf("%s failed by a mistake of its own; other arguments may work", t.name)), nil
			}
		}()
		args := req.Params.Arguments
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		v, err := validator()
		if err != nil {
			return nil, err
		}
		if err := v.Check(args); err != nil && !errors.Is(err, schema.ErrUnchecked) {
			return failed(err), nil
		}
		structured, text, err := t.run(ctx, args)
		if err != nil {
			return failed(err), nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: structured}, nil
	}
}

func failed(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}}
}

// suggest is " Did you mean X?" where a name is near.
func suggest(name string, names []string) string {
	if near := store.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
