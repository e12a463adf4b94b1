package daemon

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"nize/daemon/api"
	"nize/mcp/index"
	"nize/store"
)

func (d *Daemon) listTools(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	only := r.URL.Query().Get("server")
	if only != "" {
		if _, err := d.server(ctx, only); err != nil {
			return nil, err
		}
	}
	tools, err := d.gateway.Discovery.List(ctx, by, only)
	if err != nil {
		return nil, fmt.Errorf("listing tools: %w", err)
	}
	views := make([]api.ToolView, len(tools))
	for i, t := range tools {
		views[i] = toolView(t.Tool, t.Domain)
	}
	return items(views), nil
}

func (d *Daemon) domainsOfServers(ctx context.Context) (map[string]string, error) {
	servers, err := d.db.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	out := map[string]string{}
	for _, s := range servers {
		out[s.Name] = s.Normal().Domain
	}
	return out, nil
}

func (d *Daemon) searchTools(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	p := r.URL.Query()
	q := index.Query{Text: p.Get("q"), Domain: p.Get("domain"), TopK: 5, MinScore: store.GetFloat(d.config, "", "index.min_similarity")}
	if q.Text == "" {
		return nil, fmt.Errorf("%w search: say what the tool should do", store.ErrInvalid)
	}
	if v := p.Get("top_k"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 50 {
			return nil, fmt.Errorf("%w top_k %q: use 1 to 50", store.ErrInvalid, v)
		}
		q.TopK = n
	}
	if v := p.Get("min"); v != "" {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return nil, fmt.Errorf("%w min %q: use 0 to 1", store.ErrInvalid, v)
		}
		q.MinScore = f
	}
	var answer index.Answer
	var shares [][]index.Share
	var err error
	switch v := p.Get("explain"); v {
	case "", "0":
		answer, err = d.gateway.Discovery.Search(ctx, by, store.Scope{}, q)
	case "1":
		answer, shares, err = d.gateway.Discovery.Explain(ctx, by, store.Scope{}, q)
	default:
		return nil, fmt.Errorf("%w explain %q: use 1 or 0", store.ErrInvalid, v)
	}
	if err != nil {
		return nil, fmt.Errorf("searching tools: %w", err)
	}
	out := api.Found{Tools: []api.FoundTool{}, Degraded: answer.Degraded, Note: answer.Note}
	for i, h := range answer.Hits {
		s, err := d.db.GetServer(ctx, h.Tool.Server)
		if err != nil {
			continue // removed meanwhile
		}
		s = s.Normal()
		f := api.FoundTool{ID: h.Tool.ID(), Name: h.Tool.Name, Description: h.Tool.Description, Domain: s.Domain, ServerID: s.Name, ServerName: s.Name, ServerDescription: s.Description, Score: h.Score}
		if shares != nil {
			f.Shares = sharesView(shares[i])
		}
		out.Tools = append(out.Tools, f)
	}
	return out, nil
}

// sharesView leaves out the signals that have no say about a tool, and rounds:
// a share is read, not reckoned with.
func sharesView(shares []index.Share) []api.Share {
	var out []api.Share
	for _, s := range shares {
		if v := math.Round(s.Value*1000) / 1000; v != 0 {
			out = append(out, api.Share{Signal: string(s.Signal), Value: v})
		}
	}
	return out
}

func (d *Daemon) getTool(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	id := r.PathValue("id")
	t, err := d.db.GetTool(ctx, id)
	if err == nil && by.IsAdmin() && t.State != store.ToolAccepted {
		domains, err := d.domainsOfServers(ctx)
		if err != nil {
			return nil, err
		}
		return schemaView(t, domains[t.Server]), nil // an admin may look at what is held
	}
	desc, err := d.gateway.Discovery.Describe(ctx, by, store.Scope{}, id)
	if err != nil {
		return nil, err
	}
	if t, err = d.db.GetTool(ctx, desc.ToolID); err != nil {
		return nil, fmt.Errorf("tool %s: %w", desc.ToolID, err)
	}
	view := schemaView(t, desc.Domain)
	by.Surface = store.OnTerminal // an admin's own call from nizectl asks nobody; what a chat would ask is what counts
	view.NeedsApproval, view.Why = d.gateway.Policy.NeedsApproval(ctx, by, desc.ToolID)
	view.Private, err = d.gateway.Policy.ReturnsPrivately(ctx, by, desc.ToolID)
	return view, err
}

func schemaView(t store.Tool, domain string) api.ToolSchema {
	return api.ToolSchema{ToolView: toolView(t, domain), InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations, Pin: t.Pin, Accepted: t.Accepted}
}

func (d *Daemon) callTool(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.CallTool](r)
	if err != nil {
		return nil, err
	}
	return d.gateway.Execute(ctx, by, store.Request{Tool: r.PathValue("id"), Args: req.Args}, nil)
}

func (d *Daemon) listDomains(ctx context.Context, by store.Caller, _ *http.Request) (any, error) {
	list, err := d.gateway.Discovery.Domains(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	out := make([]api.Domain, len(list))
	for i, dom := range list {
		out[i] = api.Domain{ID: dom.ID, Description: dom.Description, ToolCount: dom.Tools}
	}
	return items(out), nil
}

func (d *Daemon) getDomain(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	id := r.PathValue("id")
	tools, next, err := d.gateway.Discovery.Browse(ctx, by, store.Scope{}, id, r.URL.Query().Get("cursor"))
	if err != nil {
		return nil, err
	}
	out := api.DomainTools{Items: []api.ToolView{}, NextCursor: next}
	for _, t := range tools {
		out.Items = append(out.Items, toolView(t, id))
	}
	return out, nil
}
