//go:build conformance

// Command client is the client under test of the conformance suite.
//
// It connects to the suite's server through nized's pool, lists its tools, and calls them.
//
//	conformance client --command "client" --scenario tools_call
//
// The suite appends the address of its server, and passes the scenario in the environment.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"nize/mcp/feature"
	"nize/mcp/scan"
	"nize/mcp/taskwire"
	"nize/mcp/upstream"
	"nize/store"
	"nize/store/database"
	"nize/store/seal"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client URL")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

// person answers each question with the defaults of its form.
type person struct{}

func (person) AskRequester(_ context.Context, _ *store.Call, e taskwire.Elicit) (taskwire.Answer, error) {
	var form struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
			Type    string          `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(e.Schema, &form); err != nil {
		return taskwire.Answer{Action: taskwire.Decline}, nil
	}
	values := map[string]json.RawMessage{}
	for name, p := range form.Properties {
		switch {
		case p.Default != nil:
			values[name] = p.Default
		case p.Type == "boolean":
			values[name] = json.RawMessage("true")
		case p.Type == "string":
			values[name] = json.RawMessage(`"conformance"`)
		}
	}
	content, err := json.Marshal(values)
	return taskwire.Answer{Action: taskwire.Accept, Content: content}, err
}

func (person) NoteRemote(context.Context, *store.Call, store.RemoteTask) error { return nil }

// server is the name of the suite's server.
const server = "suite"

func run(url string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "nize-client")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	master, err := seal.Open(filepath.Join(dir, "nize.key"), store.Secret{})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, err := database.Open(ctx, database.Options{Path: filepath.Join(dir, "nize.db"), Master: master, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	admin := store.Caller{User: "conformance", Name: "conformance", Role: store.Admin, Surface: store.OnCLI} // whose list is accepted
	if _, err := db.PutServer(ctx, admin, store.Server{Name: server, Transport: store.HTTP, URL: url}, 0); err != nil {
		return err
	}
	b := newBrowser(db, log)
	pool := upstream.New(upstream.Options{Log: log, Servers: db, Tools: db, Credentials: db, Logins: b.logins, Gate: scan.Gate{}, Attendant: person{}})
	b.pool = pool
	defer func() { err = errors.Join(err, pool.Close(context.WithoutCancel(ctx))) }()
	if _, err = pool.Sync(ctx, admin, server); b.wanted(err) {
		err = b.logIn(ctx, db)
	}
	if err != nil {
		return err
	}
	tools, err := db.ListTools(ctx, server)
	if err != nil {
		return err
	}
	for _, c := range calls(tools) {
		fmt.Printf("%s %s\n", c.name, c.args)
		call := &store.Call{ID: store.NewID(time.Now()), Server: server, Tool: c.name, Args: c.args}
		for _, t := range tools {
			if t.Name == c.name {
				call.Pin = t.Accepted
			}
		}
		result, err := pool.Run(ctx, admin, call, nil)
		for range maxLogins { // nized never does this itself: a person decides to sign in again
			if !b.wanted(err) {
				break
			}
			if err := b.logIn(ctx, db); err != nil {
				return err
			}
			result, err = pool.Run(ctx, admin, call, nil)
		}
		if err != nil { // some scenarios answer with one
			fmt.Println("  failed:", store.ErrText(err))
			continue
		}
		fmt.Printf("  %s\n", result.Raw)
	}
	return nil
}

// use is a call of a tool, a prompt or a resource.
type use struct {
	name string
	args json.RawMessage
}

// calls returns the calls of the scenario: those specified by the suite, or else each
// listed item once, with valid arguments.
func calls(tools []store.Tool) (all []use) {
	var said struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &said) == nil && len(said.ToolCalls) > 0 {
		for _, c := range said.ToolCalls {
			all = append(all, use{c.Name, c.Arguments})
		}
		return all
	}
	schemas := map[string]json.RawMessage{}
	for _, t := range tools {
		schemas[t.Name] = t.InputSchema
	}
	for _, t := range tools {
		switch kind, _ := feature.Of(t.Name); {
		case kind == feature.Template:
		case t.Name == "json_schema_echo": // it wants the schema that was listed
			all = append(all, use{t.Name, json.RawMessage(fmt.Sprintf(`{"schema":%s}`, schemas["json_schema_2020_12_tool"]))})
		default:
			all = append(all, use{t.Name, sample(t.InputSchema)})
		}
	}
	return all
}

// sample returns arguments that a schema accepts, as far as its types tell.
func sample(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	args := map[string]any{}
	if json.Unmarshal(schema, &s) == nil {
		for _, name := range s.Required {
			args[name] = map[string]any{"string": "x", "integer": 1, "number": 1, "boolean": true, "object": map[string]any{}, "array": []any{}}[s.Properties[name].Type]
		}
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // our own values always encode
	}
	return b
}
