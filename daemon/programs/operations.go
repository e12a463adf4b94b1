package programs

import (
	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/rounds"
)

// The operations of programs.
var (
	runRound    = api.Op[rounds.Request, rounds.Answer]{Method: "POST", Path: "/llm-exec/round", Summary: "run a round with a model and tools, or continue one"}
	streamRound = api.Op[rounds.Request, rounds.Answer]{Method: "POST", Path: "/llm-exec/round/stream", Summary: "the same, as server-sent events"}
	getRound    = api.Op[oneRound, rounds.Answer]{Method: "GET", Path: "/llm-exec/rounds/{id}", Summary: "show the result of a round"}
	followRound = api.Op[followed, api.Empty]{Method: "GET", Path: "/llm-exec/rounds/{id}/events", Summary: "resume the events of a round"}
	cancelRound = api.Op[oneRound, api.Empty]{Method: "DELETE", Path: "/llm-exec/rounds/{id}", Summary: "end a round"}
)

type oneRound struct {
	ID string `path:"id" json:"-" doc:"the round's id"`
}

type followed struct {
	ID   string `path:"id" json:"-" doc:"the round's id"`
	Last string `header:"Last-Event-ID" json:"-" doc:"the id of the last event that the client has; omit it to get all events"`
}

// Ways to authenticate a request.
const (
	// ProjectKey is the scheme of a project's key alone.
	ProjectKey = projectKey

	projectKey = "projectKey"
	projectID  = "projectId"
)

// Schemes are the schemes in the document.
var Schemes = map[string]openapi.Scheme{
	projectKey: {Type: "apiKey", In: "header", Name: "x-api-key", Description: "a key of a project: nizectl projects keys create PROJECT"},
	projectID:  {Type: "apiKey", In: "header", Name: "x-project-id", Description: "the project, by its name or id, that a member's token acts for"},
}

const (
	notThere  = "this project has no such model, callable, conversation, round or call; param names it"
	noRound   = "the project has no round of that id"
	malformed = "the request is invalid, with the field in param; or the tools of an MCP server could not be fetched"
	tooMany   = "limits.project.rounds or limits.rounds is reached; Retry-After is the number of seconds until a retry"
	otherwise = "the digest does not match the call, the call has a different decision, or the conversation's last round has not ended"
)

var (
	roundID        = map[string]string{"X-Round-Id": "the round's id"}
	roundFails     = map[int]string{400: malformed, 404: notThere, 409: otherwise, 429: tooMany}
	runRoundDoc    = openapi.Doc{ID: "runRound", Headers: roundID, Fails: roundFails, Examples: roundExamples, Text: waiting}
	getRoundDoc    = openapi.Doc{ID: "getRound", Headers: roundID, Fails: map[int]string{404: noRound}, Text: "The response is sent when no request is working on the round."}
	cancelRoundDoc = openapi.Doc{ID: "cancelRound", Fails: map[int]string{404: noRound}, Text: "Running calls are interrupted and pending ones are cancelled. A round that has ended is not changed."}
)

const waiting = `The status of the response tells what to do next:

- completed: message is the assistant's answer; finish_reason is stop if it is complete.
- requires_approval: send the round_id with approvals, each with the id and the digest of a proposed call.
- requires_action: run the functions that were proposed and send the round_id with tool_outputs.
- max_steps: the maximum number of model calls was reached.
- failed: error is the reason.

A round that waits can be continued even after a restart; repeated decisions have no effect. If the client disconnects, the round is interrupted.`

var streamRoundDoc = openapi.Doc{
	ID: "streamRound", Headers: roundID, Fails: roundFails, Examples: roundExamples, Events: roundEvents,
	Text: "An interrupted stream can be resumed at /llm-exec/rounds/{id}/events. The round continues without a client for http.resume_grace and then stops.",
}

var followRoundDoc = openapi.Doc{
	ID: "followRound", Headers: roundID, Fails: map[int]string{400: "Last-Event-ID is not the id of an event", 404: noRound, 429: "the project has reached its limit of open requests; the message names the setting"}, Events: roundEvents,
	Text: "Without gaps or duplicates, even after a restart. 204 means that there are no more events.",
}

var roundEvents = func() *openapi.Events {
	all := &openapi.Events{Name: "RoundEvent", Only: true, Base: struct {
		RoundID string `json:"round_id"`
	}{}}
	for _, e := range rounds.EventsOf() {
		all.List = append(all.List, openapi.Event(e))
	}
	return all
}()

// roundExamples are examples of requests. A test sends them with its own addresses and ids.
var roundExamples = []openapi.Example{
	{Name: "plain", Summary: "a model alone", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]}`},
	{Name: "mcp", Summary: "the tools of an MCP server, with approval of each call", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What date is it today?"}],
 "tools": [{"type": "mcp", "server_label": "system", "server_url": "https://mcp.example.com/mcp", "allowed_tools": ["get_current_date"], "require_approval": "always", "headers": {}}]}`},
	{Name: "approve", Summary: "approval of a proposed call", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV", "approvals": [{"id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "digest": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef", "approve": true}]}`},
	{Name: "mcpWithCredential", Summary: "all tools of a server, with a credential of the project's under its label", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What date is it today?"}],
 "tools": [{"type": "mcp", "server_label": "Mon MCP", "server_url": "https://mcp.example.com/mcp", "allowed_tools": [], "require_approval": "auto",
            "headers": {"Authorization": {"secret_key": "MCP_TOKEN"}, "X-Custom-Header": "value"}}]}`},
	{Name: "callable", Summary: "a tool that is registered with nize, beside a server", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What is 6*7?"}],
 "tools": [{"type": "callable", "callable_id": "toolbox:calculate"},
           {"type": "mcp", "server_label": "system", "server_url": "https://mcp.example.com/mcp", "allowed_tools": ["get_current_date"], "require_approval": "never"}]}`},
	{Name: "function", Summary: "a function that the caller runs itself", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "How is order 17?"}], "temperature": 0.2, "max_tokens": 500, "max_steps": 5,
 "tools": [{"type": "function", "function": {"name": "look_up", "description": "Looks an order up", "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}}}]}`},
	{Name: "output", Summary: "the output of that function", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV", "tool_outputs": [{"id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "output": "It was sent yesterday."}]}`},
	{Name: "look", Summary: "check whether another person has decided", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV"}`},
	{Name: "continue", Summary: "the next message of a conversation", Value: `{"model": "openai/gpt-4o-mini", "conversation_id": "01K9Z3NDEKTSV4RRFFQ69G5FAX", "messages": [{"role": "user", "content": "And tomorrow?"}]}`},
}
