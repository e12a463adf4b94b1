package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nize/mcp/catalog"
	"nize/mcp/expose"
	"nize/mcp/feedback"
	"nize/mcp/index"
	"nize/mcp/policy"
	"nize/store"
	"nize/store/toolschema"
)

// Index searches the tools; mcp/index is the real implementation.
type Index interface {
	Search(ctx context.Context, q index.Query) (index.Answer, error)
	Domains(keep func(store.Tool) bool) []index.Domain
	Domain(id, after string, n int, keep func(store.Tool) bool) ([]store.Tool, string)
	Explain(q index.Query, toolID string) []index.Share
	feedback.Index
}

// Discovery finds and describes the tools that a caller may use.
type Discovery struct {
	policy   *policy.Engine
	catalog  *catalog.Catalog
	index    Index
	feedback *feedback.Learner
	config   store.Config
	store    discoveryStore
}

type discoveryStore interface {
	ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	RecordUnmetRequest(user, text string)
}

// FoundTool is one tool in an answer. Its texts are shortened, because a model reads the
// full texts with get_tool_schema.
type FoundTool struct {
	ToolID            string  `json:"tool_id"`
	ToolName          string  `json:"tool_name"`
	Description       string  `json:"description"`
	Domain            string  `json:"domain"`
	ServerID          string  `json:"server_id"`
	ServerName        string  `json:"server_name"`
	ServerDescription string  `json:"server_description,omitempty"`
	Score             float64 `json:"score,omitempty"`
}

// NewFoundTool returns the tool in the form used in answers.
func NewFoundTool(s store.Server, t store.Tool, score float64) FoundTool {
	return FoundTool{
		ToolID: t.ID(), ToolName: t.Name, Description: brief(t.Description, 100), Domain: s.Domain,
		ServerID: s.Name, ServerName: cmp.Or(s.Title, s.Name), ServerDescription: brief(s.Description, 60),
		Score: float64(int(score*100+.5)) / 100,
	}
}

// brief returns the first sentence of a description, cut to n bytes.
func brief(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	return store.Clip(store.FirstSentence(s), n)
}

// Search is discover_tools for callers within nized.
func (d *Discovery) Search(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Answer, error) {
	q, err := d.prepareQuery(ctx, by, scope, q)
	if err != nil {
		return index.Answer{}, err
	}
	a, err := d.index.Search(ctx, q)
	if err == nil && d.isUnmet(scope, q, a) {
		d.store.RecordUnmetRequest(by.User, q.Text)
	}
	return a, err
}

// isUnmet reports whether a search shows that no tool can do what the query asks for. It
// returns false in a conversation, which is judged at the end of the turn because a model
// searches in several ways, and for a search that was narrowed.
func (d *Discovery) isUnmet(scope store.Scope, q index.Query, a index.Answer) bool {
	return len(a.Hits) == 0 && scope.Thread == "" && q.Domain == "" && q.MinScore <= store.GetFloat(d.config, "", "index.min_similarity")
}

// Explain is Search that also returns, for each hit and then for each near miss, the share
// of each signal in the tool's rank.
func (d *Discovery) Explain(ctx context.Context, by store.Caller, scope store.Scope, q index.Query) (index.Answer, [][]index.Share, error) {
	q, err := d.prepareQuery(ctx, by, scope, q)
	if err != nil {
		return index.Answer{}, nil, err
	}
	a, err := d.index.Search(ctx, q)
	if err != nil {
		return index.Answer{}, nil, err
	}
	var shares [][]index.Share
	for _, h := range slices.Concat(a.Hits, a.Near) {
		shares = append(shares, d.index.Explain(q, h.Tool.ID()))
	}
	return a, shares, nil
}

// keep returns the access filter of a search. The index may lag behind the store, so the
// filter uses the catalog's record.
func (d *Discovery) keep(v *policy.View) func(store.Tool) bool {
	return func(t store.Tool) bool {
		e, ok := d.catalog.Get(t.ID())
		return ok && v.Usable(e)
	}
}

// discover implements discover_tools.
func (d *Discovery) discover(ctx context.Context, inv *Invocation, a metaArgs) (json.RawMessage, error) {
	q := index.Query{Text: a.Query, Domain: a.Domain, TopK: 5, MinScore: store.GetFloat(d.config, "", "index.min_similarity")}
	if a.TopK != nil {
		q.TopK = *a.TopK
	}
	if a.Min != nil {
		q.MinScore = *a.Min
	}
	answer, err := d.Search(ctx, inv.By, inv.Scope, q)
	if err != nil {
		return nil, fmt.Errorf("searching: %w", err)
	}
	var found []string
	for _, h := range answer.Hits {
		found = append(found, h.Tool.ID())
	}
	d.feedback.NoteSearch(inv.By, inv.Scope.Thread, a.Query, found)
	out := struct {
		Tools    []FoundTool `json:"tools"`
		Degraded bool        `json:"degraded,omitempty"`
		Note     string      `json:"note,omitempty"`
	}{Tools: []FoundTool{}, Degraded: answer.Degraded, Note: answer.Note}
	for _, h := range answer.Hits {
		out.Tools = append(out.Tools, NewFoundTool(d.catalog.Server(h.Tool.Server), h.Tool, h.Score))
	}
	if len(out.Tools) == 0 {
		near, err := d.describeNearest(ctx, inv, answer.Near)
		if err != nil {
			return nil, err
		}
		out.Note = strings.TrimSpace(out.Note + " " + near)
	}
	return mustJSON(out), nil
}

// The number of near misses and domains in the answer of a search without hits.
const (
	nearTools   = 3 // as many as a person sees
	nearDomains = 12
)

// describeNearest describes the alternatives when nothing matches: the closest tools and
// the domains, so that a model can rephrase its query or inform the person.
func (d *Discovery) describeNearest(ctx context.Context, inv *Invocation, hits []store.Hit) (string, error) {
	q, err := d.prepareQuery(ctx, inv.By, inv.Scope, index.Query{})
	if err != nil {
		return "", err
	}
	var near, domains []string
	for _, h := range hits[:min(len(hits), nearTools)] {
		near = append(near, fmt.Sprintf("%s (%s)", h.Tool.ID(), strings.TrimSuffix(brief(h.Tool.Description, 80), ".")))
	}
	list := d.index.Domains(q.Keep)
	for _, dom := range list[:min(len(list), nearDomains)] {
		domains = append(domains, dom.ID)
	}
	text := ""
	if len(near) > 0 {
		text = "The nearest: " + strings.Join(near, "; ") + "."
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

// Description is the answer of get_tool_schema.
type Description struct {
	ToolID        string            `json:"tool_id"`
	Name          string            `json:"name"`
	Title         string            `json:"title,omitempty"`
	Description   string            `json:"description"`
	InputSchema   json.RawMessage   `json:"input_schema"`
	OutputSchema  json.RawMessage   `json:"output_schema,omitempty"`
	Annotations   store.Annotations `json:"annotations,omitzero"`
	Server        string            `json:"server"`
	Domain        string            `json:"domain"`
	NeedsApproval bool              `json:"needs_approval"`
}

// Describe returns the description of one tool that the caller may use.
func (d *Discovery) Describe(ctx context.Context, by store.Caller, scope store.Scope, id string) (Description, error) {
	v, err := d.policy.View(ctx, by, scope)
	if err != nil {
		return Description{}, err
	}
	t, err := d.policy.Find(v, id)
	if err != nil {
		return Description{}, err
	}
	verdict, err := d.policy.Judge(ctx, v, t, policy.Proposal{})
	if err != nil {
		return Description{}, err
	}
	output := t.OutputSchema
	if !expose.IsObject(output) { // a boolean schema such as true describes nothing
		output = nil
	}
	return Description{
		ToolID: t.ID(), Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: toolschema.Listed(t.InputSchema), OutputSchema: output,
		Annotations: t.Annotations, Server: t.Server, Domain: t.Record.Domain, NeedsApproval: verdict.Asks(),
	}, nil
}

// describe implements get_tool_schema.
func (d *Discovery) describe(ctx context.Context, inv *Invocation, a metaArgs) (json.RawMessage, error) {
	described, err := d.Describe(ctx, inv.By, inv.Scope, a.ToolID)
	if err != nil {
		return nil, err
	}
	return mustJSON(described), nil
}

// ListedTool is a tool with the domain of its server.
type ListedTool struct {
	store.Tool
	Domain string
}

// List returns the tools of one server, or of all servers for "", sorted by id. Admins get
// all tools, including held ones; other callers get those they may use.
func (d *Discovery) List(ctx context.Context, by store.Caller, server string) ([]ListedTool, error) {
	v, err := d.policy.View(ctx, by, store.Scope{})
	if err != nil {
		return nil, err
	}
	var list []ListedTool
	d.catalog.Each(func(t *policy.Tool) bool {
		if t.Server != policy.BuiltinServer && (server == "" || t.Server == server) && (by.IsAdmin() || v.Usable(t)) {
			list = append(list, ListedTool{t.Tool, t.Record.Domain})
		}
		return true
	})
	slices.SortFunc(list, func(a, b ListedTool) int { return strings.Compare(a.ID(), b.ID()) })
	return list, nil
}
