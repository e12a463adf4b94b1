package commands

import (
	"context"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// revokes is the prefix of the command that revokes a standing answer.
const revokes = "revoke "

func (cmd *Commands) grantLines(ctx context.Context, a bots.Asked) (lines []string, err error) {
	w := phrases.For(a.Locale)
	grants, err := cmd.Grants.GivenBy(ctx, a.By.User)
	for _, g := range grants {
		key := phrases.GrantAllow
		if g.Deny {
			key = phrases.GrantDeny
		}
		lines = append(lines, "- "+w.Say(key, g.ID, grantText(a, g)))
	}
	return lines, err
}

// revokeGrant revokes one of the person's standing answers; another person's is treated as
// unknown.
func (cmd *Commands) revokeGrant(ctx context.Context, a bots.Asked, id string) (bots.Answer, error) {
	grants, err := cmd.Grants.GivenBy(ctx, a.By.User)
	if err != nil {
		return bots.Answer{}, err
	}
	i := slices.IndexFunc(grants, func(g store.Grant) bool { return g.ID == id })
	if i < 0 {
		return bots.Answer{}, store.Errorf("grant %q %w", id, store.ErrNotFound)
	}
	if _, err := cmd.Grants.Revoke(ctx, a.By, api.RevokeGrantRequest{ID: id}); err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(phrases.For(a.Locale).Say(phrases.GrantRevoked, bots.Brief(grants[i].Tool, 120))), nil
}

// grantText describes a standing answer to the person who gave it: the tool, and the
// answer's conditions and scope.
func grantText(a bots.Asked, g store.Grant) string {
	w := phrases.For(a.Locale)
	parts := []string{bots.Brief(g.Tool, 120)}
	switch g.Scope {
	case store.ForChannel:
		parts = append(parts, w.Say(phrases.GrantInChannel))
	case store.ForConversation:
		parts = append(parts, w.Say(phrases.GrantInConversation))
	case store.ForEveryone:
		parts = append(parts, w.Say(phrases.AlwaysForEveryone))
	}
	if g.Pattern != nil {
		parts = append(parts, w.Say(phrases.GrantOnly, bots.Brief(string(g.Pattern), 120)))
	}
	if g.Repository != "" {
		parts = append(parts, w.Say(phrases.GrantInRepository, bots.Brief(g.Repository, 120)))
	}
	if g.Exact != "" {
		parts = append(parts, w.Say(phrases.AlwaysArgsThese))
	}
	if !g.Expires.IsZero() {
		parts = append(parts, w.Say(phrases.GrantUntil, g.Expires.In(zoneOf(a)).Format("2006-01-02 15:04 MST")))
	}
	return strings.Join(parts, w.Say(phrases.Comma))
}
