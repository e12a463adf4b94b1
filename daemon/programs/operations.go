package programs

import (
	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/rounds"
)

// The operations of programs.
var (
	runRound    = api.Op[rounds.Request, rounds.Answer]{Method: "POST", Path: "/llm-exec/round", Summary: "run a round with a model and tools, or go on with one"}
	streamRound = api.Op[rounds.Request, rounds.Answer]{Method: "POST", Path: "/llm-exec/round/stream", Summary: "the same, as server-sent events"}
	getRound    = api.Op[oneRound, rounds.Answer]{Method: "GET", Path: "/llm-exec/rounds/{id}", Summary: "what a round came to"}
	followRound = api.Op[followed, api.Empty]{Method: "GET", Path: "/llm-exec/rounds/{id}/events", Summary: "go on with the events of a round"}
	cancelRound = api.Op[oneRound, api.Empty]{Method: "DELETE", Path: "/llm-exec/rounds/{id}", Summary: "end a round"}
)

type oneRound struct {
	ID string `path:"id" json:"-" doc:"the round's id"`
}

type followed struct {
	ID   string `path:"id" json:"-" doc:"the round's id"`
	Last string `header:"Last-Event-ID" json:"-" doc:"the id of the last event that the client has; without it all of them come"`
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
	notThere  = "the model, a callable, the conversation, the round or the call is not there for this project; param says which"
	noRound   = "the project has no round of that id"
	malformed = "what is wrong with the request, and in which field; or the tools of an MCP server could not be fetched"
	tooMany   = "limits.project.rounds or limits.rounds are at work; Retry-After says in how many seconds to send it again"
	otherwise = "the digest is not that of the call, it was decided otherwise, or the conversation's last round has not ended"
)

var (
	roundID        = map[string]string{"X-Round-Id": "the round's id"}
	roundFails     = map[int]string{400: malformed, 404: notThere, 409: otherwise, 429: tooMany}
	runRoundDoc    = openapi.Doc{ID: "runRound", Headers: roundID, Fails: roundFails, Examples: roundExamples, Text: waiting}
	getRoundDoc    = openapi.Doc{ID: "getRound", Headers: roundID, Fails: map[int]string{404: noRound}, Text: "It is answered when nobody works on the round any more."}
	cancelRoundDoc = openapi.Doc{ID: "cancelRound", Fails: map[int]string{404: noRound}, Text: "What runs is cut off, what waits is cancelled. A round that has ended stays as it is."}
)

const waiting = `The answer's status says what is to be done:

- completed: message is the assistant's answer; finish_reason is stop if it is whole.
- requires_approval: send the round_id with approvals, each with the id and the digest of a proposed call.
- requires_action: run the functions that were proposed and send the round_id with tool_outputs.
- max_steps: the model was asked as often as it may be.
- failed: error says why.

A round that waits goes on also after a restart; the same decisions again change nothing. Where nobody waits for the answer any more, the round is cut off.`

var streamRoundDoc = openapi.Doc{
	ID: "streamRound", Headers: roundID, Fails: roundFails, Examples: roundExamples, Events: roundEvents,
	Text: "A stream that broke goes on at /llm-exec/rounds/{id}/events; the round goes on without its client for http.resume_grace, then it stops.",
}

var followRoundDoc = openapi.Doc{
	ID: "followRound", Headers: roundID, Fails: map[int]string{400: "Last-Event-ID is not the id of an event", 404: noRound, 429: "the project has as many requests open as it may; the message names the setting"}, Events: roundEvents,
	Text: "Without a gap and without a double, also after a restart. 204 says that nothing comes any more.",
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
	{Name: "mcp", Summary: "the tools of an MCP server, each of its calls after a yes", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What date is it today?"}],
 "tools": [{"type": "mcp", "server_label": "system", "server_url": "https://mcp.example.com/mcp", "allowed_tools": ["get_current_date"], "require_approval": "always", "headers": {}}]}`},
	{Name: "approve", Summary: "a yes to a call that was proposed", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV", "approvals": [{"id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "digest": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef", "approve": true}]}`},
	{Name: "mcpWithCredential", Summary: "all tools of a server, with a credential of the project's under its label", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What date is it today?"}],
 "tools": [{"type": "mcp", "server_label": "Mon MCP", "server_url": "https://mcp.example.com/mcp", "allowed_tools": [], "require_approval": "auto",
            "headers": {"Authorization": {"secret_key": "MCP_TOKEN"}, "X-Custom-Header": "value"}}]}`},
	{Name: "callable", Summary: "a tool that is registered with nize, beside a server", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What is 6*7?"}],
 "tools": [{"type": "callable", "callable_id": "toolbox:calculate"},
           {"type": "mcp", "server_label": "system", "server_url": "https://mcp.example.com/mcp", "allowed_tools": ["get_current_date"], "require_approval": "never"}]}`},
	{Name: "function", Summary: "a function that the caller runs itself", Value: `{"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "How is order 17?"}], "temperature": 0.2, "max_tokens": 500, "max_steps": 5,
 "tools": [{"type": "function", "function": {"name": "look_up", "description": "Looks an order up", "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}}}]}`},
	{Name: "output", Summary: "what that function came to", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV", "tool_outputs": [{"id": "01K9Z3NDEKTSV4RRFFQ69G5FAW", "output": "It was sent yesterday."}]}`},
	{Name: "look", Summary: "whether somebody else has decided meanwhile", Value: `{"round_id": "01K9Z3NDEKTSV4RRFFQ69G5FAV"}`},
	{Name: "continue", Summary: "the next message of a conversation", Value: `{"model": "openai/gpt-4o-mini", "conversation_id": "01K9Z3NDEKTSV4RRFFQ69G5FAX", "messages": [{"role": "user", "content": "And tomorrow?"}]}`},
}
