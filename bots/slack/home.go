package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
)

// openHome draws the Home for who opened it; somebody without access sees that
// they have none.
func (t *talk) openHome(ctx context.Context, e incoming.Event) error {
	p, err := t.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	if p.User.ID == "" {
		return t.homes.DrawRefused(ctx, p, noAccess(p))
	}
	t.access.welcome(ctx, p, "", "")
	st := view.ReadHomeState(e.Home.Metadata)
	st.Pages = nil // it opens at the beginning
	return t.homes.Draw(ctx, p, st, "")
}
