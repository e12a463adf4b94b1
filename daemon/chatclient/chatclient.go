// Package chatclient serves chat clients over HTTP: they come with a token of a
// person's, and get what that person may use and what they said.
//
//	GET  /api/models              the models that they may ask
//	GET  /api/servers             the servers whose tools they may use
//	GET  /api/conversations       their conversations
//	GET  /api/conversations/{id}  one of them
//	GET  /api/settings            the settings, with what they are for them
//	PUT, DELETE /api/settings/{key}  a value of their own
//	POST /api/chat                a message, and what the turn came to
//	POST /api/run-tool            a decision on a call that waits, and how the turn went on
//
// An error is {"error":{"type","message"}}, of the types that programs get.
package chatclient

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/daemon/rounds"
	"nize/daemon/settings"
	"nize/store"
	"nize/store/printable"
)

// Client is what a chat client asks for, by the operations that nizectl calls.
type Client struct {
	Models        *control.Models
	Servers       *control.Servers
	Conversations *control.Conversations
	Approvals     *control.Approvals
	Settings      *settings.Settings
}

// Options say who calls and until when.
type Options struct {
	// Caller says whose token a request comes with; its error is the sentence that
	// the client is told.
	Caller func(*http.Request) (store.Caller, error)
	// Listen ends by cancel what its caller may not go on with.
	Listen func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func())
	// Speak is who prints in a language that a request asks for.
	Speak func(locale string) mux.Speaker
	// Closing ends when nobody is to be waited for any more.
	Closing context.Context
	Log     *slog.Logger
}

// Handler has the routes below /api/.
func (c *Client) Handler(o Options) http.Handler {
	caller := func(r *http.Request) (store.Caller, error) {
		by, err := o.Caller(r)
		if err != nil {
			return by, &api.Error{Code: rounds.Authentication, Message: "Invalid authorization format: " + err.Error()}
		}
		return by, whole(by)
	}
	on := http.NewServeMux()
	m := mux.New(on, mux.Options{Log: o.Log, Speak: o.Speak, Fail: fail, Caller: caller})
	mux.Handle(m, api.ListChatModels, c.ListModels)
	mux.Handle(m, api.ListChatServers, c.ListServers)
	mux.Handle(m, api.ListChatConversations, c.ListConversations)
	mux.Handle(m, api.GetChatConversation, c.GetConversation)
	mux.Handle(m, api.ListOwnSettings, c.Settings.ListOwn)
	mux.Handle(m, api.PutOwnSetting, c.Settings.PutOwn)
	mux.Handle(m, api.UnsetOwnSetting, c.Settings.UnsetOwn)
	on.Handle("POST /api/chat", handleTurn(o, caller, c.chat))
	on.Handle("POST /api/run-tool", handleTurn(o, caller, c.runTool))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		on.ServeHTTP(w, r)
	})
}

// failure is an error as programs get it.
type failure struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func failureOf(e *api.Error) (f failure) {
	f.Error.Type, f.Error.Message = rounds.Internal, e.Message
	switch e.Status() {
	case http.StatusBadRequest, http.StatusForbidden:
		f.Error.Type = rounds.InvalidRequest
	case http.StatusNotFound:
		f.Error.Type = rounds.NotFound
	case http.StatusConflict, http.StatusGone:
		f.Error.Type = rounds.Conflict
	case http.StatusTooManyRequests:
		f.Error.Type = "rate_limited"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		f.Error.Type = rounds.Upstream
	}
	if e.Code == rounds.Authentication {
		f.Error.Type = rounds.Authentication
	}
	return f
}

// fail writes an error.
func fail(w http.ResponseWriter, e *api.Error) {
	status := e.Status()
	if e.Code == rounds.Authentication {
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	body, _ := json.Marshal(failureOf(e)) // two strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

// whole refuses a token that is limited to some tools: its limits say nothing of
// conversations.
func whole(by store.Caller) error {
	if len(by.Scopes) > 0 {
		return store.Mark(fmt.Errorf("the token is limited by scopes; a chat client needs one without them"), store.ErrRefused)
	}
	return nil
}

// ListModels lists the models that the caller may ask.
func (c *Client) ListModels(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ChatModel], err error) {
	all, err := c.Models.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	var list []api.ChatModel
	for _, m := range all.Items {
		list = append(list, api.ChatModel{ID: m.Name, Default: m.Default, Available: m.Available, Images: m.Images})
	}
	return api.Items(list), nil
}

// ListServers lists the enabled servers that the caller may use.
func (c *Client) ListServers(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ChatServer], err error) {
	all, err := c.Servers.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	var list []api.ChatServer
	for _, s := range all.Items {
		if !s.Server.Disabled {
			list = append(list, api.ChatServer{ID: s.Server.Name, Title: printable.Escape(s.Server.Title), Description: printable.EscapeLines(s.Server.Description), State: s.State, ToolCount: s.ToolCount})
		}
	}
	return api.Items(list), nil
}

// ListConversations lists the caller's conversations, newest first.
func (c *Client) ListConversations(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.ChatConversation], err error) {
	all, err := c.Conversations.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	var list []api.ChatConversation
	for _, th := range all.Items {
		list = append(list, conversationOf(th))
	}
	return api.Items(list), nil
}

// GetConversation shows a conversation that the caller began or wrote in. Nobody
// gives a reason here, so admins read no others.
func (c *Client) GetConversation(ctx context.Context, by store.Caller, req api.ConversationRequest) (none api.ChatConversationView, err error) {
	by.Role = store.Member
	shown, err := c.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: req.ID})
	if err != nil {
		return none, err
	}
	view := api.ChatConversationView{ChatConversation: conversationOf(shown.Thread), Messages: []api.ChatMessage{}, ProposedCalls: []api.ProposedCall{}}
	for _, t := range shown.Turns {
		if t.Role == store.FromSummary || t.Role == store.FromAgent { // between models
			continue
		}
		m := api.ChatMessage{N: t.N, Role: string(t.Role), Name: t.By.Name, Content: t.Text, CallID: t.CallID, At: t.At}
		for _, call := range t.Calls {
			m.ToolCalls = append(m.ToolCalls, api.ChatCall{ID: call.ID, Name: call.Name, Arguments: call.Args})
		}
		view.Messages = append(view.Messages, m)
	}
	for _, card := range shown.Cards {
		view.ProposedCalls = append(view.ProposedCalls, proposedOf(card))
	}
	return view, nil
}

func conversationOf(th store.Thread) api.ChatConversation {
	return api.ChatConversation{ID: th.ID, Title: printable.Escape(th.Title), Surface: string(th.Address.Surface), Agent: th.Agent, Model: th.Model, Servers: th.Servers, Created: th.Created, Updated: th.Updated}
}

func proposedOf(card store.Card) api.ProposedCall {
	return api.ProposedCall{ID: card.Call, Tool: card.Tool, Title: printable.Escape(card.Title), Arguments: card.Args, Digest: card.Digest, Expires: card.Expires}
}
