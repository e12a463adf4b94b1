// Package chatclient serves the HTTP API for chat clients, which authenticate with a
// person's token.
//
// They get what that person may use, and that person's conversations. The operations are
// declared in daemon/api. An error is {"error":{"type","message"}}, with the same types as
// for programs.
package chatclient

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/mux"
	"nize/daemon/openapi"
	"nize/daemon/rounds"
	"nize/daemon/settings"
	"nize/store"
	"nize/store/outage"
	"nize/store/printable"
)

// Client implements the operations of chat clients, on top of the operations that nizectl
// uses.
type Client struct {
	Models        *control.Models
	Servers       *control.Servers
	Conversations *control.Conversations
	Approvals     *control.Approvals
	Settings      *settings.Settings
}

// Options configure authentication and shutdown.
type Options struct {
	// Caller returns the owner of a request's token. Its error is a sentence for the
	// client, or an outage.
	Caller func(*http.Request) (store.Caller, error)
	// Listen is called for a long-lived request. It calls cancel if the caller may not
	// continue, and returns an error if the caller may not open another one. leave must be
	// called when the request ends.
	Listen func(ctx context.Context, by store.Caller, cancel context.CancelFunc) (leave func(), err error)
	// Speak returns the translator for the language that a request asks for.
	Speak func(locale string) mux.Speaker
	// Closing ends when requests must no longer wait.
	Closing context.Context
	Log     *slog.Logger
}

// Routes returns the operations below /api/.
func (c *Client) Routes(o Options) []openapi.Route {
	caller := func(r *http.Request) (store.Caller, error) {
		by, err := o.Caller(r)
		if outage.Is(err) {
			return by, err
		}
		if err != nil {
			return by, &api.Error{Code: "authentication", Message: "Invalid authorization format: " + err.Error()}
		}
		return by, whole(by)
	}
	on := http.NewServeMux()
	m := mux.New(on, mux.Options{Log: o.Log, Speak: o.Speak, Fail: rounds.Form.Write, Caller: caller, Strict: true})
	read := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		on.ServeHTTP(w, r)
	})
	return []openapi.Route{
		handle(m, api.ListChatModels, c.ListModels, openapi.Doc{ID: "listModels"}, read),
		handle(m, api.ListChatServers, c.ListServers, openapi.Doc{ID: "listServers"}, read),
		handle(m, api.ListChatConversations, c.ListConversations, openapi.Doc{ID: "listConversations", Text: "Newest first."}, read),
		handle(m, api.GetChatConversation, c.GetConversation, openapi.Doc{ID: "getConversation", Fails: map[int]string{404: "the caller took part in no conversation of that id"}}, read),
		handle(m, api.ListOwnSettings, c.Settings.ListOwn, openapi.Doc{ID: "listSettings", Text: "A settings page can be built from it: each setting has a category, a label, a control and a range, in the requested language."}, read),
		handle(m, api.PutOwnSetting, c.Settings.PutOwn, openapi.Doc{ID: "putSetting", Fails: settingFails, Examples: []openapi.Example{{Name: "language", Summary: "a value, always as a string", Value: `{"value": "zh-Hans"}`}}}, read),
		handle(m, api.UnsetOwnSetting, c.Settings.UnsetOwn, openapi.Doc{ID: "unsetSetting", Fails: settingFails}, read),
		handleTurn(o, caller, api.Chat, c.chat, chatDoc),
		handleTurn(o, caller, api.RunTool, c.runTool, runToolDoc),
	}
}

// handle mounts a read-only operation and returns its route.
func handle[Req, Res any](m *mux.Mux, op api.Op[Req, Res], do func(context.Context, store.Caller, Req) (Res, error), doc openapi.Doc, h http.Handler) openapi.Route {
	mux.Handle(m, op, do)
	return openapi.Handle(op, doc, h, byToken)
}

var settingFails = map[int]string{400: "the value is invalid, or people can't have their own value of the setting", 404: "there is no setting of that key"}

var byToken = openapi.Security{openapi.Token: {}}

// whole returns an error for a token that is limited to some tools, since such limits don't
// apply to conversations.
func whole(by store.Caller) error {
	if len(by.Scopes) > 0 {
		return store.Mark(fmt.Errorf("the token is limited by scopes; a chat client needs one without them"), store.ErrRefused)
	}
	return nil
}

// ListModels returns the models that the caller may use.
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

// ListServers returns the enabled servers that the caller may use.
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

// ListConversations returns the caller's conversations, newest first.
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

// GetConversation returns a conversation that the caller started or wrote in. Since the
// request takes no reason, admins can't read other people's here.
func (c *Client) GetConversation(ctx context.Context, by store.Caller, req api.ConversationRequest) (none api.ChatConversationView, err error) {
	by.Role = store.Member
	shown, err := c.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: req.ID})
	if err != nil {
		return none, err
	}
	view := api.ChatConversationView{ChatConversation: conversationOf(shown.Thread), Messages: []api.ChatMessage{}, ProposedCalls: []api.ProposedCall{}}
	for _, t := range shown.Turns {
		if t.Role == store.FromSummary || t.Role == store.FromAgent { // internal to models
			continue
		}
		m := api.ChatMessage{N: t.N, Role: string(t.Role), Name: t.By.Name, Content: t.Text, Finish: t.Finish, CallID: t.CallID, At: t.At}
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
	return api.ProposedCall{
		ID: card.Call, Tool: card.Tool, Server: card.Server, Title: printable.Escape(card.Title), Description: printable.EscapeLines(card.Description),
		Why: printable.EscapeLines(card.Why), Arguments: card.Args, Warnings: card.Warnings, Digest: card.Digest, Policy: card.Policy, Expires: card.Expires,
	}
}
