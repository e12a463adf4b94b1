package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"nize/mcp"
	"nize/mcp/policy"
	"nize/store"
)

// Starters returns up to n tools for the caller to start with, from as many servers as
// possible: first those annotated as read-only, then those with a title, and none annotated
// as destructive. The order is only a suggestion, so unverified annotations are good
// enough.
func (t *Tools) Starters(ctx context.Context, by store.Caller, n int) (list []store.Tool, err error) {
	all, err := t.Gateway.Discovery.List(ctx, by, "")
	if err != nil {
		return nil, fmt.Errorf("listing tools: %w", err)
	}
	says := func(hint *bool) bool { return hint != nil && *hint }
	all = slices.DeleteFunc(all, func(one mcp.ListedTool) bool {
		return one.Server == policy.NativeServer || one.State != store.ToolAccepted || says(one.Annotations.Destructive) && !says(one.Annotations.ReadOnly)
	})
	rank := func(one mcp.ListedTool) (place int) {
		if !says(one.Annotations.ReadOnly) {
			place += 2
		}
		if one.Title == "" && one.Annotations.Title == "" {
			place++
		}
		return place
	}
	slices.SortStableFunc(all, func(a, b mcp.ListedTool) int { return cmp.Compare(rank(a), rank(b)) })
	for round := 1; len(list) < n && round <= n; round++ { // one of each server, then a second of each
		of := map[string]int{}
		for _, one := range all {
			if of[one.Server]++; of[one.Server] == round && len(list) < n {
				list = append(list, one.Tool)
			}
		}
	}
	return list, nil
}
