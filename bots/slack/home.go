package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
)

// openHome draws the Home for the person who opened it; without access, it says so.
func (t *talk) openHome(ctx context.Context, e incoming.Event) error {
	p, err := t.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	if p.User.ID == "" {
		return t.homes.DrawRefused(ctx, p, noAccess(p))
	}
	t.access.welcome(ctx, p, "", "")
	st := view.ReadHomeState(e.Home.PrivateMetadata)
	st.Pages = nil // it opens on the first page
	return t.homes.Draw(ctx, p, st, "")
}
