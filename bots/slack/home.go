package slack

import (
	"context"

	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
)

// openHome draws the Home for who opened it; somebody without access sees that
// they have none.
func (l *talk) openHome(ctx context.Context, e incoming.Event) error {
	p, err := l.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	if p.User.ID == "" {
		return l.homes.DrawRefused(ctx, p, noAccess(p))
	}
	l.access.welcome(ctx, p, "", "")
	st := view.ReadHomeState(e.Home.Metadata)
	st.Pages = nil // it opens at the beginning
	return l.homes.Draw(ctx, p, st, "")
}
