package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/mcp"
	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/mcp/view"
	"nize/store"
	"nize/store/hooks"
)

// Tools implements the operations on the tools of all servers.
type Tools struct {
	Store interface {
		GetUser(ctx context.Context, id string) (store.User, error)
		ListTokens(ctx context.Context, user string) ([]store.Token, error)
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	}
	Hooks interface { // nil if there are none
		Around(user, tool string) []hooks.Hook
	}
	Budgets interface {
		OfTool(ctx context.Context, user, tool string) ([]api.Budget, error)
	}
	Gateway   *mcp.Gateway
	Servers   *Servers
	Agents    *Agents
	Directory *people.Directory
	// PlaceOf parses a channel's place.
	PlaceOf func(ctx context.Context, channel string) (string, error)
	Config  store.Config
	Now     func() time.Time

	progress progress
}

// Mount registers the operations.
func (t *Tools) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListDomains, t.ListDomains)
	mux.Handle(m, api.BrowseDomain, t.BrowseDomain)
	mux.Handle(m, api.ListTools, t.List)
	mux.Handle(m, api.SearchTools, t.Search)
	mux.Handle(m, api.GetTool, t.Get)
	mux.Handle(m, api.CallTool, t.Call)
	mux.HandleStream(m, api.FollowProgress, t.FollowProgress)
	mux.Handle(m, api.ExplainTool, t.Explain)
}

// List returns the tools that the caller may see, of one server or of all.
func (t *Tools) List(ctx context.Context, by store.Caller, req api.ListToolsRequest) (none api.List[api.ToolView], err error) {
	if req.Server != "" && req.Server != policy.NativeServer {
		if _, err := t.Servers.Find(ctx, by, req.Server); err != nil {
			return none, err
		}
	}
	tools, err := t.Gateway.Discovery.List(ctx, by, req.Server)
	if err != nil {
		return none, fmt.Errorf("listing tools: %w", err)
	}
	views := make([]api.ToolView, len(tools))
	for i, tool := range tools {
		views[i] = toolView(tool.Tool, tool.Domain)
	}
	return api.Items(views), nil
}

func toolView(t store.Tool, domain string) api.ToolView {
	return api.ToolView{ID: t.ID(), ToolID: t.ID(), Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, Domain: domain, State: t.State, Findings: t.Findings, ViewDomains: view.Of(t.Meta).Domains()}
}

// Search finds tools by what they do.
func (t *Tools) Search(ctx context.Context, by store.Caller, req api.SearchToolsRequest) (none api.Found, err error) {
	q := index.Query{Text: req.Query, Domain: req.Domain, TopK: cmp.Or(req.TopK, 5), MinScore: cmp.Or(req.Min, store.GetFloat(t.Config, "", "index.min_similarity"))}
	switch {
	case q.Text == "":
		return none, fmt.Errorf("%w search: say what the tool should do", store.ErrInvalid)
	case q.TopK < 1 || q.TopK > 50:
		return none, fmt.Errorf("%w top_k \"%d\": use 1 to 50", store.ErrInvalid, q.TopK)
	case !(q.MinScore >= 0 && q.MinScore <= 1):
		return none, fmt.Errorf("%w min \"%v\": use 0 to 1", store.ErrInvalid, q.MinScore)
	}
	if req.User != "" {
		if by, err = t.as(ctx, by, req.User); err != nil {
			return none, err
		}
	}
	var answer index.Answer
	var shares [][]index.Share
	if req.Explain || req.User != "" { // not recorded as unmet: the user themselves requested nothing
		answer, shares, err = t.Gateway.Discovery.Explain(ctx, by, store.Scope{}, q)
		if !req.Explain {
			shares = nil
		}
	} else {
		answer, err = t.Gateway.Discovery.Search(ctx, by, store.Scope{}, q)
	}
	if err != nil {
		return none, fmt.Errorf("searching tools: %w", err)
	}
	out := api.Found{Tools: []api.FoundTool{}, Degraded: answer.Degraded, Note: answer.Note}
	for i, h := range slices.Concat(answer.Hits, answer.Near) {
		s, ok := t.Gateway.Catalog.FindServer(h.Tool.Server)
		if !ok {
			continue // removed in the meantime
		}
		f := api.FoundTool{ID: h.Tool.ID(), ToolID: h.Tool.ID(), Name: h.Tool.Name, Description: h.Tool.Description, Domain: s.Domain, ServerID: s.Name, ServerName: cmp.Or(s.Title, s.Name), ServerDescription: s.Description, Score: h.Score}
		if shares != nil {
			f.Shares = sharesView(shares[i])
		}
		if i < len(answer.Hits) {
			out.Tools = append(out.Tools, f)
		} else {
			out.Near = append(out.Near, f)
		}
	}
	return out, nil
}

// Find returns the tools of a conversation or channel that match a request in plain words,
// best first; if none fits, it returns the nearest.
func (t *Tools) Find(ctx context.Context, by store.Caller, in store.Scope, text string, most int) (fit, near []store.Hit, err error) {
	found, err := t.Gateway.Discovery.Search(ctx, by, in, index.Query{Text: text, TopK: most, MinScore: store.GetFloat(t.Config, "", "index.min_similarity")})
	if err != nil {
		return nil, nil, fmt.Errorf("searching tools: %w", err)
	}
	return found.Hits, found.Near, nil
}

// sharesView omits signals that don't affect a tool, and rounds the others for display.
func sharesView(shares []index.Share) []api.Share {
	var out []api.Share
	for _, s := range shares {
		if v := math.Round(s.Value*1000) / 1000; v != 0 {
			out = append(out, api.Share{Signal: string(s.Signal), Value: v})
		}
	}
	return out
}

// Get returns one tool by its id.
func (t *Tools) Get(ctx context.Context, by store.Caller, req api.ToolRequest) (none api.ToolSchema, err error) {
	tool, err := t.Gateway.Catalog.GetStored(ctx, req.ID)
	if err == nil && by.IsAdmin() && tool.State != store.ToolAccepted {
		return schemaView(tool, t.Gateway.Catalog.Server(tool.Server).Domain), nil // an admin may see a held tool
	}
	desc, err := t.Gateway.Discovery.Describe(ctx, by, store.Scope{}, req.ID)
	if err != nil {
		return none, searchByHand(err)
	}
	if tool, err = t.Gateway.Catalog.GetStored(ctx, desc.ToolID); err != nil {
		return none, fmt.Errorf("tool %s: %w", desc.ToolID, err)
	}
	view := schemaView(tool, desc.Domain)
	by.Surface = store.OnTerminal // an admin's own call from nizectl needs no approval; show whether one in a chat would
	view.NeedsApproval, view.Why = t.Gateway.Policy.NeedsApproval(ctx, by, desc.ToolID)
	view.Private, err = t.Gateway.Policy.ReturnsPrivately(ctx, by, desc.ToolID)
	return view, err
}

func schemaView(t store.Tool, domain string) api.ToolSchema {
	return api.ToolSchema{ToolView: toolView(t, domain), InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations, Pin: t.Pin, Accepted: t.Accepted}
}

// Call runs one tool and waits until it ends.
func (t *Tools) Call(ctx context.Context, by store.Caller, req api.CallToolRequest) (store.Call, error) {
	var tell store.ProgressFunc
	if req.Follow != "" {
		var end func()
		tell, end = t.progress.begin(progressKey{by.User, req.Follow})
		defer end()
	}
	call, err := t.Gateway.Execute(ctx, by, store.Request{Tool: req.ID, Args: req.Args}, tell)
	if err != nil {
		return store.Call{}, searchByHand(err)
	}
	return *call, nil
}

// searchByHand replaces the search function for models with the command for people in an
// error.
func searchByHand(err error) error {
	var call *store.CallError
	if !errors.As(err, &call) {
		return err
	}
	format, args := call.Message.Parts()
	if len(args) != 1 || !strings.HasSuffix(format, "; search with discover_tools") {
		return err
	}
	told := *call
	told.Message = store.Textf("%s; search with nizectl tools search", args[0])
	return &told
}

// ListDomains returns the domains of the tools that the caller may see.
func (t *Tools) ListDomains(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.Domain], err error) {
	list, err := t.Gateway.Discovery.Domains(ctx, by, store.Scope{})
	if err != nil {
		return none, err
	}
	out := make([]api.Domain, len(list))
	for i, dom := range list {
		out[i] = api.Domain{ID: dom.ID, Description: dom.Description, ToolCount: dom.Tools}
	}
	return api.Items(out), nil
}

// BrowseDomain returns the tools of one domain, page by page.
func (t *Tools) BrowseDomain(ctx context.Context, by store.Caller, req api.BrowseDomainRequest) (none api.DomainTools, err error) {
	tools, next, err := t.Gateway.Discovery.Browse(ctx, by, store.Scope{}, req.ID, req.Cursor)
	if err != nil {
		return none, err
	}
	out := api.DomainTools{Items: []api.ToolView{}, NextCursor: next}
	for _, tool := range tools {
		out.Items = append(out.Items, toolView(tool, req.ID))
	}
	return out, nil
}
