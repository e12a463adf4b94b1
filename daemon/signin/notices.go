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

// What people are told of their sign-ins: a new browser, and what was ended
// since a secret of it was used twice. Each notice is stored before what it is of
// is answered, and tried until it was told.

// Teller says something to a person alone, on a platform or, where that is ""
// or they are not there, on the first where they are. It is false where they are
// on none. The same id is said once.
type Teller func(ctx context.Context, user string, at store.Surface, id string, since time.Time, text store.Text) (told bool, err error)

// againAfter is the pause before what could not be told is tried again.
const againAfter = 30 * time.Second

func (s *Server) wake() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// Run tells people until ctx ends.
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

// tell tells what is due and says whether something is left.
func (s *Server) tell(ctx context.Context) (left bool) {
	all, err := s.Notices.ListNotices(ctx)
	if err != nil && ctx.Err() == nil {
		s.Log.Error("telling people of their sign-ins", "err", err)
	}
	for _, n := range all {
		if !n.Told.IsZero() {
			continue
		}
		if _, err := s.Tell(ctx, n.User, n.Surface, n.ID, n.Since, noticeText(n)); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("a person is told of a sign-in later", "user", n.User, "err", err)
			}
			left = true
			continue
		}
		n.Told = s.Now()
		if err := s.Notices.PutNotice(context.WithoutCancel(ctx), n); err != nil {
			s.Log.Error("noting that a person was told", "err", err)
			left = true
		}
	}
	return left || err != nil
}

// noticeText is a notice as its person reads it.
func noticeText(n oauth.Notice) store.Text {
	if n.Kind == oauth.NewBrowser {
		return store.Textf("A browser is signed in to nize as you: %s, from %s. If that was not you, sign it out on the page /login, or tell an admin: nizectl login revoke %s", n.Agent, n.Address, n.ID)
	}
	return store.Textf("What you had signed in to %s was ended: a secret of it was used twice, the second time from %s. A client that is out of step does that, and a thief. Sign in again.", n.Name, n.Address)
}

// beginSession signs a browser in, and has its person told.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request, asked oauth.Request) (store.Token, error) {
	t, err := s.Begin(r.Context(), w, r, asked)
	s.wake()
	return t, err
}

// Alarms are what operators see of the last hour.
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
			Title: store.Textf("What was signed in to %s was ended: a secret of it was used twice", n.Name),
			Text:  store.Textf("The second use came from %s. A client that is out of step does that, and a thief. Its owner signs in again.", n.Address)}
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
			one.Title = store.Textf("%s denied a sign-in that they did not ask for", names[n.User])
			one.Text = store.Textf("It came from %s (%s), for %s. Who sent them its code may be after their account.", n.Address, n.Agent, client)
		}
		list = append(list, one)
	}
	return list, nil
}
