package mcp

import (
	"context"
	"encoding/json"

	"nize/mcp/index"
	"nize/store"
)

// Domains returns the domains that contain a tool which the caller may use.
func (d *Discovery) Domains(ctx context.Context, by store.Caller, scope store.Scope) ([]index.Domain, error) {
	v, err := d.policy.View(ctx, by, scope)
	if err != nil {
		return nil, err
	}
	return d.index.Domains(d.keep(v)), nil
}

// domains implements list_tool_domains. It returns a page of domains, and totals.
func (d *Discovery) domains(ctx context.Context, inv *Invocation, a metaArgs) (json.RawMessage, error) {
	list, err := d.Domains(ctx, inv.By, inv.Scope)
	if err != nil {
		return nil, err
	}
	type domain struct {
		ID          string `json:"id"`
		Description string `json:"description,omitempty"`
		ToolCount   int    `json:"tool_count"`
	}
	out := struct {
		Domains     []domain `json:"domains"`
		DomainCount int      `json:"domain_count"`
		ToolCount   int      `json:"tool_count"`
		NextCursor  string   `json:"next_cursor,omitempty"`
	}{Domains: []domain{}, DomainCount: len(list)}
	for _, one := range list {
		out.ToolCount += one.Tools
		switch {
		case one.ID <= a.Cursor:
		case len(out.Domains) < domainsPage:
			out.Domains = append(out.Domains, domain{one.ID, brief(one.Description, 80), one.Tools})
		default:
			out.NextCursor = out.Domains[len(out.Domains)-1].ID
		}
	}
	return mustJSON(out), nil
}

// The page sizes of list_tool_domains and browse_tool_domain. Each page is about 10 kB,
// which a model reads before it chooses.
const (
	domainsPage = 100
	pageSize    = 50
)

// Browse returns a page of the tools of a domain that the caller may use, and the cursor of
// the next page.
func (d *Discovery) Browse(ctx context.Context, by store.Caller, scope store.Scope, domain, cursor string) ([]store.Tool, string, error) {
	v, err := d.policy.View(ctx, by, scope)
	if err != nil {
		return nil, "", err
	}
	tools, next := d.index.Domain(domain, cursor, pageSize, d.keep(v))
	if len(tools) == 0 && cursor == "" {
		var ids []string
		for _, one := range d.index.Domains(d.keep(v)) {
			ids = append(ids, one.ID)
		}
		return nil, "", &store.CallError{Code: store.CodeNotFound, Message: store.TextOf(store.Unknown("domain", domain, ids))}
	}
	return tools, next, nil
}

// browse implements browse_tool_domain. It omits fields that are the same for all tools.
func (d *Discovery) browse(ctx context.Context, inv *Invocation, a metaArgs) (json.RawMessage, error) {
	tools, next, err := d.Browse(ctx, inv.By, inv.Scope, a.DomainID, a.Cursor)
	if err != nil {
		return nil, err
	}
	type listed struct {
		ToolID      string `json:"tool_id"`
		ToolName    string `json:"tool_name"`
		Description string `json:"description"`
	}
	out := struct {
		Tools      []listed `json:"tools"`
		NextCursor string   `json:"next_cursor,omitempty"`
	}{[]listed{}, next}
	for _, t := range tools {
		out.Tools = append(out.Tools, listed{t.ID(), t.Name, brief(t.Description, 100)})
	}
	return mustJSON(out), nil
}
