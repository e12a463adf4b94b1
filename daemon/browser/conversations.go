package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// Operations that only a page has, at paths of their own.
var (
	listConversations  = api.Op[listRequest, conversations]{Method: "GET", Path: api.ListConversations.Path, Summary: "list conversations"}
	changeConversation = api.Op[changeRequest, store.Thread]{Method: "PATCH", Path: api.ShowConversation.Path, Summary: "change a conversation"}
	shareAnswer        = api.Op[shareRequest, api.Empty]{Method: "POST", Path: api.ShowConversation.Path + "/share", Summary: "share a private answer"}
	findConversation   = api.Op[api.ConversationRequest, link]{Method: "GET", Path: api.ShowConversation.Path + "/link", Summary: "show the address of a conversation"}
	listAgents         = api.Op[api.Empty, api.List[choice]]{Method: "GET", Path: api.ListAgents.Path, Summary: "list agents"}
	listModels         = api.Op[api.Empty, api.List[pageModel]]{Method: "GET", Path: api.ListModels.Path, Summary: "list models"}
	listServers        = api.Op[api.Empty, api.List[api.ChatServer]]{Method: "GET", Path: api.ListServers.Path, Summary: "list servers"}
)

// listRequest selects a page of the conversations last used before a time. If there are
// words, all of them must be in the title or in a message.
type listRequest struct {
	Words  string    `query:"q" json:"-"`
	Before time.Time `query:"before" json:"-"`
}

// conversations is a page of conversations.
type conversations struct {
	Items []listed `json:"items"`
	More  bool     `json:"more"`
}

// listed is a conversation and the text in it that matches a search.
type listed struct {
	store.Thread
	Found string `json:"found,omitempty"`
}

// maxListed bounds how many of a person's conversations are searched.
const maxListed = 100_000

// list returns the caller's conversations, newest first.
func (b *Browser) list(ctx context.Context, by store.Caller, req listRequest) (out conversations, err error) {
	limit, s := pageSize+1, newSearch(req.Words, b.Now)
	if len(s.words) > 0 || !req.Before.IsZero() {
		limit = maxListed
	}
	all, err := b.Store.ListThreads(ctx, by.User, limit)
	if err != nil {
		return out, fmt.Errorf("listing conversations: %w", err)
	}
	out.Items = []listed{}
	for n, th := range all {
		if !req.Before.IsZero() && !th.Updated.Before(req.Before) {
			continue
		}
		it := listed{Thread: th}
		if !s.in(th.Title) {
			if it.Found, err = s.said(ctx, b.Store, by, th.ID, n); err != nil {
				return out, err
			}
			if it.Found == "" {
				continue
			}
		}
		if out.More = len(out.Items) == pageSize; out.More {
			break
		}
		out.Items = append(out.Items, it)
	}
	return out, nil
}

// changeRequest changes the fields of a conversation that are not nil.
type changeRequest struct {
	ID        string    `path:"id" json:"-"`
	Title     *string   `json:"title"`
	Agent     *string   `json:"agent"`
	Model     *string   `json:"model"`     // "" is the agent's
	Servers   *[]string `json:"servers"`   // empty is all
	Streaming *string   `json:"streaming"` // on, off, or "" for the person's preference
}

// maxTitle bounds a title set by a person, in runes.
const maxTitle = 120

// change changes one of the caller's conversations. It checks access to agents, models and
// servers as the chats do.
func (b *Browser) change(ctx context.Context, by store.Caller, req changeRequest) (none store.Thread, err error) {
	if _, err := b.own(ctx, by, req.ID); err != nil {
		return none, err
	}
	if req.Title != nil {
		title := []rune(strings.Join(strings.Fields(store.RedactText(*req.Title)), " "))
		*req.Title = string(title[:min(len(title), maxTitle)])
	}
	if req.Agent != nil && *req.Agent != "" {
		if err := b.Agents.Check(ctx, by, *req.Agent); err != nil {
			return none, err
		}
	}
	if req.Model != nil && *req.Model != "" {
		if err := b.Models.MayAsk(ctx, by, *req.Model); err != nil {
			return none, err
		}
	}
	if req.Servers != nil {
		for _, s := range *req.Servers {
			if err := b.Servers.Check(ctx, by, s); err != nil {
				return none, err
			}
		}
	}
	if s := req.Streaming; s != nil && !slices.Contains([]string{"", store.StreamingOn, store.StreamingOff}, *s) {
		return none, fmt.Errorf("%w streaming: use on, off, or nothing for what you like", store.ErrInvalid)
	}
	by.Role = store.Member // an admin may change only their own here
	if err := b.Conversations.Change(ctx, by, req.ID, req.apply); err != nil {
		return none, err
	}
	return b.own(ctx, by, req.ID)
}

func (req changeRequest) apply(th *store.Thread) {
	if req.Title != nil && *req.Title != "" {
		th.Title, th.Named = *req.Title, true
	}
	if req.Agent != nil {
		th.Agent = *req.Agent
	}
	if req.Model != nil {
		th.Model = *req.Model
	}
	if req.Servers != nil {
		th.Servers = *req.Servers
	}
	if req.Streaming != nil {
		th.Streaming = *req.Streaming
	}
}

// forget erases one of the caller's conversations.
func (b *Browser) forget(ctx context.Context, by store.Caller, req api.ConversationRequest) (none store.Forgotten, err error) {
	if _, err := b.own(ctx, by, req.ID); err != nil {
		return none, err
	}
	return b.Conversations.Forget(ctx, by, req)
}

// shareRequest names a private answer.
type shareRequest struct {
	ID   string `path:"id" json:"-"`
	Turn int    `json:"turn"`
}

// share publishes the caller's private answer in the conversation where it was requested.
func (b *Browser) share(ctx context.Context, by store.Caller, req shareRequest) (none api.Empty, err error) {
	th, err := b.readable(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	if err := b.Conversations.Handler.Share(ctx, by, th.ID, req.Turn); !errors.Is(err, store.ErrDecided) { // it was shared before
		return none, err
	}
	return none, nil
}

// link is the URL of a conversation; "" if its platform has none.
type link struct {
	URL string `json:"url"`
}

func (b *Browser) find(ctx context.Context, by store.Caller, req api.ConversationRequest) (out link, err error) {
	th, err := b.readable(ctx, by, req.ID)
	if err != nil {
		return out, err
	}
	if at, ok := bots.On[bots.Linker](b.Bots, th.Address.Surface); ok {
		out.URL = at.Link(ctx, th.Address)
	}
	return out, nil
}

// pageModel is a model, with its target if the reader is an admin.
type pageModel struct {
	api.ChatModel
	Provider string     `json:"provider,omitempty"`
	Target   string     `json:"target,omitempty"`
	Why      store.Text `json:"why,omitzero"` // reason if it is not available
}

func (b *Browser) listModels(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[pageModel], err error) {
	all, err := b.Models.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	list := []pageModel{}
	for _, m := range all.Items {
		provider, _, _ := strings.Cut(m.Target, "/")
		list = append(list, pageModel{api.ChatModel{ID: m.Name, Default: m.Default, Available: m.Available, Images: m.Images}, provider, m.Target, m.Why})
	}
	return api.Items(list), nil
}

// choice is an agent that a conversation may use.
type choice struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Default bool   `json:"default"`
}

// listAgents returns the agents that the caller may use, without their configuration, which
// a page doesn't need.
func (b *Browser) listAgents(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[choice], err error) {
	all, err := b.Agents.UsableBy(ctx, by)
	if err != nil {
		return none, err
	}
	var list []choice
	for _, a := range all {
		list = append(list, choice{a.ID, bots.Escape(a.Name), a.Default})
	}
	return api.Items(list), nil
}
