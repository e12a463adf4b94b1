//go:build conformance

// Command server is an MCP server with the tools of the conformance suite's scenarios on
// tasks.
//
// nized runs them like those of any server, so that the suite tests the whole path: its
// client, the gateway's tasks, and this server's questions.
//
//	server                    on standard input and output (2025-11-25)
//	server -http 127.0.0.1:0  over HTTP (2026-07-28); it prints its address
//
// The time that a tool takes, or waits before it asks, is longer than the mcp.task_after
// that the scenarios run with.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("http", "", "serve HTTP at this `ADDRESS`")
	flag.Parse()
	if err := run(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(addr string) error {
	s := newServer()
	if addr == "" {
		return s.Run(context.Background(), &sdk.StdioTransport{})
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	return (&http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}).Serve(l)
}

// takes is the minimum duration of a job.
const takes = time.Second

type handler func(ctx context.Context, req *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error)

func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "conformance", Version: "1"}, nil)
	add := func(name, schema string, h handler) {
		s.AddTool(&sdk.Tool{Name: name, Description: "A fixture of the conformance suite.", InputSchema: json.RawMessage(schema)}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			args := map[string]any{}
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return nil, err
			}
			return h(ctx, req, args)
		})
	}
	const nothing = `{"type":"object"}`
	add("greet", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, func(_ context.Context, _ *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprintf("Hello, %v!", args["name"])), nil
	})
	add("slow_compute", `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}}}`, func(ctx context.Context, _ *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error) {
		seconds, _ := args["seconds"].(float64)
		if err := wait(ctx, time.Duration(seconds*float64(time.Second))); err != nil {
			return nil, err
		}
		return text(fmt.Sprintf("computed %v", args["label"])), nil
	})
	add("failing_job", nothing, func(ctx context.Context, _ *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		res := text("the job failed")
		res.IsError = true
		return res, wait(ctx, takes)
	})
	add("protocol_error_job", nothing, func(ctx context.Context, _ *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		if err := wait(ctx, takes); err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the job broke down"}
	})
	add("confirm_delete", `{"type":"object","properties":{"filename":{"type":"string"}},"required":["filename"]}`, func(ctx context.Context, req *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, error) {
		if answer, ok := req.Params.InputResponses["confirm"].(*sdk.ElicitResult); ok {
			if yes, _ := answer.Content["confirm"].(bool); answer.Action != "accept" || !yes {
				return text(fmt.Sprintf("%v stays", args["filename"])), nil
			}
			return text(fmt.Sprintf("%v is deleted", args["filename"])), nil
		}
		if err := wait(ctx, takes); err != nil {
			return nil, err
		}
		return asks("confirm", sdk.InputRequestMap{"confirm": question(fmt.Sprintf("Delete %v?", args["filename"]), `"confirm":{"type":"boolean","title":"Delete it"}`)}), nil
	})
	add("multi_input", nothing, func(ctx context.Context, req *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		first, _ := req.Params.InputResponses["first"].(*sdk.ElicitResult)
		second, _ := req.Params.InputResponses["second"].(*sdk.ElicitResult)
		if first != nil && second != nil {
			return text(fmt.Sprintf("%v and %v", first.Content["name"], second.Content["name"])), nil
		}
		if err := wait(ctx, takes); err != nil {
			return nil, err
		}
		return asks("multi", sdk.InputRequestMap{
			"first":  question("The first name?", `"name":{"type":"string"},"confirm":{"type":"boolean"}`),
			"second": question("The second name?", `"name":{"type":"string"},"confirm":{"type":"boolean"}`),
		}), nil
	})
	add("test_tool_with_task", nothing, func(ctx context.Context, req *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["user_name"].(*sdk.ElicitResult)
		if !ok {
			return asks("name", sdk.InputRequestMap{"user_name": question("What is your name?", `"name":{"type":"string"}`)}), nil
		}
		return text(fmt.Sprintf("Hello, %v!", answer.Content["name"])), wait(ctx, takes)
	})
	return s
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func question(message, properties string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}
}

// asks returns a result that requests input; the SDK converts it into requests for a client
// of 2025-11-25.
func asks(state string, requests sdk.InputRequestMap) *sdk.CallToolResult {
	return &sdk.CallToolResult{InputRequests: requests, RequestState: state}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
