package signin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"nize/daemon/alert"
	"nize/store"
	"nize/store/oauth"
)

// Notices to people about their sign-ins: a new browser, or sessions that were ended
// because one of their secrets was used twice. A notice is stored before the response to
// the event is sent, and delivery is retried until it succeeds.

// Teller sends a private message to a person on a platform, or if that is "" or they don't
// use it, on the first platform that they use. It returns false if they use none. A
// repeated id is sent only once.
type Teller func(ctx context.Context, user string, at store.Surface, id string, since time.Time, text store.Text) (told bool, err error)

// againAfter is the delay before a failed delivery is retried.
const againAfter = 30 * time.Second

func (s *Server) wake() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Run delivers notices until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	for {
		var again <-chan time.Time
		if s.tell(ctx) {
			again = time.After(againAfter)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.due:
		case <-again:
		}
	}
}

// tell delivers the notices that are due and reports whether any are left.
func (s *Server) tell(ctx context.Context) (left bool) {
	all, err := s.Notices.ListNotices(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("notifying people of their sign-ins", "err", err)
	}
	for _, n := range all {
		if !n.Told.IsZero() {
			continue
		}
		if _, err := s.Tell(ctx, n.User, n.Surface, n.ID, n.Since, noticeText(n)); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("a sign-in notice will be retried", "user", n.User, "err", err)
			}
			left = true
			continue
		}
		n.Told = s.Now()
		if err := s.Notices.PutNotice(context.WithoutCancel(ctx), n); err != nil {
			s.Log.Error("recording that a sign-in notice was delivered", "err", err)
			left = true
		}
	}
	return left || err != nil
}

// noticeText returns the text of a notice.
func noticeText(n oauth.Notice) store.Text {
	if n.Kind == oauth.NewBrowser {
		return store.Textf("A browser is signed in to nize as you: %s, from %s. If that was not you, sign it out on the page /login, or tell an admin: nizectl login revoke %s", n.Agent, n.Address, n.ID)
	}
	return store.Textf("Your sign-in to %s was revoked: one of its secrets was used twice, the second time from %s. A client that is out of step can cause this, and so can a thief. Sign in again.", n.Name, n.Address)
}

// beginSession signs a browser in and notifies its person.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request, asked oauth.Request) (store.Token, error) {
	t, err := s.Begin(r.Context(), w, r, asked)
	s.wake()
	return t, err
}

// Alarms returns the last hour's symptoms for operators.
func (s *Server) Alarms(ctx context.Context) ([]alert.Symptom, error) {
	all, err := s.Notices.ListNotices(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing notices: %w", err)
	}
	var names map[string]string
	var list []alert.Symptom
	for _, n := range all {
		if n.Kind == oauth.NewBrowser || s.Now().Sub(n.Since) >= oauth.NoticeLife {
			continue
		}
		one := alert.Symptom{Key: alert.Key{Kind: alert.SignIn, Subject: n.ID}, Cure: "nizectl audit --kind signin", Users: []string{n.User},
			Title: store.Textf("A sign-in to %s was revoked: one of its secrets was used twice", n.Name),
			Text:  store.Textf("The second use came from %s. A client that is out of step can cause this, and so can a thief. Its owner must sign in again.", n.Address)}
		if n.Kind == oauth.NotMe {
			if names == nil {
				if names, err = s.Directory.Names(ctx); err != nil {
					return nil, err
				}
			}
			client := store.Plain(n.Name)
			if n.Name == "" {
				client = store.Textf("a browser")
			}
			one.Title = store.Textf("%s denied a sign-in that they did not request", names[n.User])
			one.Text = store.Textf("It came from %s (%s), for %s. Whoever sent them its code may be after their account.", n.Address, n.Agent, client)
		}
		list = append(list, one)
	}
	return list, nil
}
