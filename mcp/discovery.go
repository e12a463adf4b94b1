package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"nize/mcp/index"
	"nize/store"
)

// Found is one tool in an answer. Texts are cut, since a model reads
// the whole of it with get_tool_schema.
type Found struct {
	ToolID            string  `json:"tool_id"`
	ToolName          string  `json:"tool_name"`
	Description       string  `json:"description"`
	Domain            string  `json:"domain"`
	ServerID          string  `json:"server_id"`
	ServerName        string  `json:"server_name"`
	ServerDescription string  `json:"server_description,omitempty"`
	Score             float64 `json:"score,omitempty"`
}

// FoundIn is the tool as an answer shows it.
func FoundIn(s store.Server, t store.Tool, score float64) Found {
	return Found{
		ToolID: t.ID(), ToolName: t.Name, Description: brief(t.Description, 100), Domain: s.Domain,
		ServerID: s.Name, ServerName: s.Name, ServerDescription: brief(s.Description, 60),
		Score: float64(int(score*100+.5)) / 100,
	}
}

// brief is the first sentence of a description, cut to n bytes.
func brief(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return store.Clip(s, n)
}

func (c *catalog) server(name string) store.Server {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, ok := c.servers[name]; ok {
		return *s
	}
	return store.Server{Name: name}.Normal()
}

// Search is discover_tools for callers inside the house.
func (g *Gateway) Search(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Answer, error) {
	q, err := g.prepared(ctx, by, scope, q)
	if err != nil {
		return index.Answer{}, err
	}
	a, err := g.opt.Index.Search(ctx, q)
	if err == nil && g.unmet(scope, q, a) {
		g.opt.Store.RecordUnmetRequest(q.Text)
	}
	return a, err
}

// unmet says whether a search shows that no tool can do what was asked for.
// In a conversation the end of the turn tells, since a model asks in
// several ways; a search that was narrowed tells nothing.
func (g *Gateway) unmet(scope store.Scope, q index.Query, a index.Answer) bool {
	return len(a.Hits) == 0 && scope.Thread == "" && q.Domain == "" && q.MinScore <= store.GetFloat(g.opt.Config, "", "index.min_similarity")
}

// Explain is Search that also says, hit by hit, what each signal adds to the
// place of the tool.
func (g *Gateway) Explain(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Answer, [][]index.Share, error) {
	q, err := g.prepared(ctx, by, scope, q)
	if err != nil {
		return index.Answer{}, nil, err
	}
	a, err := g.opt.Index.Search(ctx, q)
	if err != nil {
		return index.Answer{}, nil, err
	}
	shares := make([][]index.Share, len(a.Hits))
	for i, h := range a.Hits {
		shares[i] = g.opt.Index.Explain(q, h.Tool.ID())
	}
	return a, shares, nil
}

// keep is the access filter of a search. The index may be a moment behind the
// store, so the catalog's own record decides.
func (g *Gateway) keep(v *view) func(store.Tool) bool {
	return func(t store.Tool) bool {
		e, ok := g.tools.get(t.ID())
		return ok && v.usable(e) == nil
	}
}

func (g *Gateway) discover(ctx context.Context, inv *Invocation, a metaArgs) (json.RawMessage, error) {
	q := index.Query{Text: a.Query, Domain: a.Domain, TopK: 5, MinScore: store.GetFloat(g.opt.Config, "", "index.min_similarity")}
	if a.TopK != nil {
		q.TopK = *a.TopK
	}
	if a.Min != nil {
		q.MinScore = *a.Min
	}
	answer, err := g.Search(ctx, inv.By, inv.Scope, q)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	g.remember(inv, a.Query, answer)
	out := struct {
		Tools    []Found `json:"tools"`
		Degraded bool    `json:"degraded,omitempty"`
		Note     string  `json:"note,omitempty"`
	}{Tools: []Found{}, Degraded: answer.Degraded, Note: answer.Note}
	for _, h := range answer.Hits {
		out.Tools = append(out.Tools, FoundIn(g.tools.server(h.Tool.Server), h.Tool, h.Score))
	}
	if len(out.Tools) == 0 {
		near, err := g.nearest(ctx, inv, a.Query)
		if err != nil {
			return nil, err
		}
		out.Note = strings.TrimSpace(out.Note + " " + near)
	}
	return mustJSON(out), nil
}

// What a search that found nothing names besides.
const (
	nearTools   = 3 // as many as a person is told
	nearDomains = 12
)

// nearest says what there is where nothing fits: the tools that come nearest,
// and the domains, so that a model can ask in other words or tell the person.
func (g *Gateway) nearest(ctx context.Context, inv *Invocation, query string) (string, error) {
	q, err := g.prepared(ctx, inv.By, inv.Scope, index.Query{Text: query, TopK: nearTools})
	if err != nil {
		return "", err
	}
	answer, err := g.opt.Index.Search(ctx, q)
	if err != nil {
		return "", fmt.Errorf("searching what is near: %w", err)
	}
	var near, domains []string
	for _, h := range answer.Hits {
		near = append(near, fmt.Sprintf("%s (%s)", h.Tool.ID(), strings.TrimSuffix(brief(h.Tool.Description, 80), ".")))
	}
	list := g.opt.Index.Domains(q.Keep)
	for _, d := range list[:min(len(list), nearDomains)] {
		domains = append(domains, d.ID)
	}
	text := ""
	if len(near) > 0 {
		text = "The nearest, which may do something else: " + strings.Join(near, "; ") + "."
	}
	if len(domains) > 0 {
		text += " Domains: " + strings.Join(domains, ", ")
		if more := len(list) - len(domains); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		text += "."
	}
	return text, nil
}
