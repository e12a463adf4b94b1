package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/store"
)

const instructions = `Everyday tools that need no account and no network. Pass cities, countries or zones as people write them. Arithmetic and unit conversion are exact to 15 digits. The notebook (note_…) keeps notes on this computer; note_add and note_delete change it.`

// toolbox is the state of the tools.
type toolbox struct {
	now   func() time.Time
	roll  func(n int) int // 0 to n-1
	notes notebook
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	return info.Main.Version
}

func newServer(b *toolbox) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "nize-toolbox", Title: "Toolbox", Version: version()},
		&sdk.ServerOptions{Instructions: instructions, Logger: slog.New(slog.DiscardHandler)})
	for _, addTools := range []func(*sdk.Server){b.addClocks, addCalculator, addUnits, b.addDice, addText, b.addNotes, addColor, addCountdown} {
		addTools(s)
	}
	return s
}

// Annotations of tools.
var (
	no, yes = false, true
	reads   = sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	adds    = sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	erases  = sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &yes, OpenWorldHint: &no}
)

func about(does sdk.ToolAnnotations, name, title, description string) *sdk.Tool {
	does.Title = title
	return &sdk.Tool{Name: name, Title: title, Description: description, Annotations: &does}
}

// limits adds constraints to the schema of an argument that a struct can't express.
type limits map[string]func(*jsonschema.Schema)

func between(low, high float64) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.Minimum, s.Maximum = &low, &high }
}

func length(low, high int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) { s.MinLength, s.MaxLength = &low, &high }
}

// add registers a tool that answers with text for people and a struct for programs.
func add[In, Out any](s *sdk.Server, tool *sdk.Tool, l limits, run func(In) (Out, string, error)) {
	addCall(s, tool, l, func(_ context.Context, _ *sdk.CallToolRequest, in In) ([]sdk.Content, Out, error) {
		out, text, err := run(in)
		return []sdk.Content{&sdk.TextContent{Text: text}}, out, err
	})
}

// addCall is add for tools with other content, or that need their request.
func addCall[In, Out any](s *sdk.Server, tool *sdk.Tool, l limits, run func(context.Context, *sdk.CallToolRequest, In) ([]sdk.Content, Out, error)) {
	in := schemaOf[In]()
	for name, limit := range l {
		limit(in.Properties[name])
	}
	tool.InputSchema, tool.OutputSchema = in, schemaOf[Out]()
	sdk.AddTool(s, tool, func(ctx context.Context, req *sdk.CallToolRequest, in In) (res *sdk.CallToolResult, out Out, err error) {
		defer func() {
			if p := recover(); p != nil { // one broken tool must not end the process
				err = fmt.Errorf("%s failed because of a bug; other arguments may work", tool.Name)
			}
		}()
		content, out, err := run(ctx, req, in)
		return &sdk.CallToolResult{Content: content}, out, err
	})
}

// schemaOf infers a schema. A list may be omitted, so null need not be a second type.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // a mistake in one of our structs
	}
	for _, p := range s.Properties {
		if slices.Equal(p.Types, []string{"null", "array"}) {
			p.Types, p.Type = nil, "array"
		}
	}
	return s
}

// suggest returns "; did you mean X?" if a name is similar.
func suggest(name string, names []string) string {
	slices.Sort(names) // so that the choice among equals doesn't depend on a map's order
	if near := store.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
