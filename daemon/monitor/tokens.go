package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"nize/daemon/alert"
	"nize/store"
	"nize/store/printable"
)

// tokenNotice is how long before a token's expiry its owner is notified. A token with a
// shorter lifetime was meant to expire.
const tokenNotice = 7 * 24 * time.Hour

func (m *Monitor) tokens(ctx context.Context, r *alert.Result) error {
	tokens, err := m.Store.ExpiringTokens(ctx, m.Now().Add(tokenNotice))
	if err != nil {
		return fmt.Errorf("listing tokens: %w", err)
	}
	ending := expiring(tokens, m.Now())
	if len(ending) == 0 {
		return nil
	}
	names, err := m.Directory.Names(ctx)
	if err != nil {
		return err
	}
	for _, t := range ending {
		r.Wrong = append(r.Wrong, alert.Symptom{
			Key:   alert.Key{Kind: alert.TokenEnds, Subject: t.ID},
			Title: store.Textf("Token %s of %s expires on %s", t.Name, names[t.User], t.Expires.UTC().Format(time.DateOnly)),
			Text:  store.Textf("Clients that use it are refused from %s on.", t.Expires.UTC().Format("2006-01-02 15:04 MST")),
			Cure:  rotateCommand(t.Name, names[t.User]),
			Users: []string{t.User},
		})
	}
	return nil
}

// expiring returns the tokens whose owners must act soon. It excludes tokens from a
// sign-in, since their owners just sign in again.
func expiring(tokens []store.Token, now time.Time) []store.Token {
	return slices.DeleteFunc(tokens, func(t store.Token) bool {
		return t.SignedIn != nil || t.State(now) != "active" || !t.Revoked.IsZero() || t.Expires.Sub(now) > tokenNotice || t.Expires.Sub(t.Created) <= tokenNotice
	})
}

func rotateCommand(token, user string) string {
	return fmt.Sprintf("nizectl tokens rotate %s --user %s --grace 10m", printable.ShellWord(token), printable.ShellWord(user))
}
