package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/store"
	"nize/store/oauth"
)

// What people do about sign-ins where nize knows them: in a chat, or at the
// control socket.

func hashLogin(secret string) oauth.Hash { return oauth.HashOf("login " + secret) }

// find finds the request of a code that a person gives; guessing has a limit.
func (s *Server) find(ctx context.Context, by store.Caller, code string) (oauth.Request, error) {
	hash, err := readCode(code)
	if err != nil {
		return oauth.Request{}, err
	}
	asked, err := s.Store.FindRequest(ctx, hash)
	if err == nil && asked.Open(s.Now()) {
		return asked, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return asked, err
	}
	if !s.guesses.take(by.User, s.Now()) {
		return asked, store.Mark(store.Errorf("too many wrong codes; try again in ten minutes"), store.ErrRefused)
	}
	return asked, store.Errorf("code %w: it is wrong, or its page has ended; look at the page", store.ErrNotFound)
}

func view(asked oauth.Request) api.SignInRequest {
	v := api.SignInRequest{ID: asked.ID, Client: asked.Name, Host: asked.Host, Redirect: redirectHost(asked), Scope: scopeText(asked.Scopes), Address: asked.Address, Browser: asked.Agent, Asked: asked.Created}
	if asked.Client == "" {
		v.Scope = ""
	}
	return v
}

// Show says who asks with a code, from where and for what.
func (s *Server) Show(ctx context.Context, by store.Caller, req api.LoginCodeRequest) (api.SignInRequest, error) {
	asked, err := s.find(ctx, by, req.Code)
	return view(asked), err
}

// Approve confirms a request for a person and returns the number for its page.
func (s *Server) Approve(ctx context.Context, by store.Caller, req api.LoginCodeRequest) (none api.ApprovedLogin, err error) {
	user, err := s.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	u, err := s.Directory.Find(ctx, user)
	if err != nil {
		return none, err
	}
	if u.State != store.Active {
		return none, store.Mark(store.Errorf("%s is disabled", u.Name), store.ErrRefused)
	}
	asked, err := s.find(ctx, by, req.Code)
	if err != nil {
		return none, err
	}
	number, hash := newNumber(asked.ID)
	asked, err = s.Store.ChangeRequest(ctx, by, asked.ID, "signin.confirm", func(o *oauth.Request, now time.Time, open func(string) int) (bool, error) {
		switch {
		case !o.Open(now):
			return false, store.Errorf("this sign-in has ended: %w", store.ErrExpired)
		case o.User != "":
			return false, store.Errorf("this sign-in was confirmed before: %w", store.ErrDecided)
		case open(u.ID) >= oauth.MaxPerUser:
			return false, store.Mark(store.Errorf("%d sign-ins of yours wait for their number already; finish one of them first", oauth.MaxPerUser), store.ErrRefused)
		}
		o.User, o.Number = u.ID, hash
		return true, nil
	})
	if err != nil {
		return none, err
	}
	return api.ApprovedLogin{SignInRequest: view(asked), User: u.ID, UserName: u.Name, Number: api.NewSecret(number)}, nil
}

// Deny ends a request, and tells operators: somebody wanted in as a person who
// did not ask.
func (s *Server) Deny(ctx context.Context, by store.Caller, req api.LoginCodeRequest) (none api.SignInRequest, err error) {
	asked, err := s.find(ctx, by, req.Code)
	if err != nil {
		return none, err
	}
	asked, err = s.Store.ChangeRequest(ctx, by, asked.ID, "signin.deny", func(o *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
		if !o.Open(now) {
			return false, store.Errorf("this sign-in has ended: %w", store.ErrExpired)
		}
		o.Ended = oauth.Denied
		return true, nil
	})
	if err != nil {
		return none, err
	}
	s.raise(alarm{user: by.User, title: store.Textf("%s denied a sign-in that they did not ask for", by.Name), text: store.Textf("It came from %s (%s), for %s. Who sent them its code may be after their account.", asked.Address, asked.Agent, clientText(asked)), id: asked.ID})
	return view(asked), nil
}

func clientText(asked oauth.Request) store.Text {
	if asked.Client == "" {
		return store.Textf("a browser")
	}
	return store.Plain(asked.Name)
}

// Start makes an address that signs a browser in as a person, once.
func (s *Server) Start(ctx context.Context, by store.Caller, req api.StartLoginRequest) (none api.StartedLogin, err error) {
	user, err := s.Directory.Owner(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	u, err := s.Directory.Find(ctx, user)
	if err != nil {
		return none, err
	}
	if u.State != store.Active {
		return none, store.Mark(store.Errorf("%s is disabled", u.Name), store.ErrRefused)
	}
	secret := NewSecret()
	err = s.Store.AddRequest(ctx, by, oauth.Request{ID: NewSecret()[:22], Code: hashLogin(secret), Origin: s.Base(), User: u.ID, Address: by.Address})
	if err != nil {
		return none, fmt.Errorf("keeping a sign-in: %w", err)
	}
	return api.StartedLogin{URL: api.NewSecret(loginURL(s.Base(), secret)), User: u.ID, UserName: u.Name, Expires: s.Now().Add(oauth.LoginLife)}, nil
}

// List lists the browsers that are signed in.
func (s *Server) List(ctx context.Context, by store.Caller, req api.ListTokensRequest) (none api.List[api.TokenView], err error) {
	user := ""
	if req.User != "" || !by.IsAdmin() {
		if user, err = s.Directory.Owner(ctx, by, req.User); err != nil {
			return none, err
		}
	}
	tokens, err := s.Tokens.ListTokens(ctx, user)
	if err != nil {
		return none, fmt.Errorf("listing sessions: %w", err)
	}
	names, err := s.Directory.Names(ctx)
	if err != nil {
		return none, err
	}
	var list []api.TokenView
	for _, t := range tokens {
		if t.Audience == store.ForWeb && t.State(s.Now()) == "active" && !s.idle(t) {
			list = append(list, api.TokenView{Token: t, State: "active", UserName: names[t.User]})
		}
	}
	return api.Items(list), nil
}

// Revoke signs a browser out.
func (s *Server) Revoke(ctx context.Context, by store.Caller, req api.LoginIDRequest) (none api.Empty, err error) {
	list, err := s.List(ctx, by, api.ListTokensRequest{})
	if err != nil {
		return none, err
	}
	var ids []string
	for _, t := range list.Items {
		ids = append(ids, t.ID)
		if t.ID == req.ID {
			return none, s.Store.RevokeSignIn(ctx, by, t.ID)
		}
	}
	return none, store.Unknown("session", req.ID, ids)
}

// alarmTime is how long operators see that somebody tried something.
const alarmTime = time.Hour

// alarm is something that operators, and who it was done to, are told.
type alarm struct {
	user, id    string
	title, text store.Text
	since       time.Time
}

const maxAlarms = 100

func (s *Server) raise(a alarm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.since = s.Now()
	if s.alarms = append(s.alarms, a); len(s.alarms) > maxAlarms {
		s.alarms = s.alarms[1:]
	}
}

// alarm tells that a secret was used that should have been gone.
func (s *Server) alarm(r *http.Request, user, _ string, asked oauth.Request) {
	s.raise(alarm{
		user: user, id: asked.ID, title: store.Textf("What was signed in to %s was ended: a secret of it was used twice", asked.Name),
		text: store.Textf("The second use came from %s. A client that is out of step does that, and a thief. Its owner signs in again.", address(r)),
	})
}

// Alarms are those of the last hour.
func (s *Server) Alarms() []alert.Symptom {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []alert.Symptom
	for _, a := range s.alarms {
		if s.Now().Sub(a.since) < alarmTime {
			list = append(list, alert.Symptom{Key: alert.Key{Kind: alert.SignIn, Subject: a.id}, Title: a.title, Text: a.text, Cure: "nizectl audit --kind signin", Users: []string{a.user}})
		}
	}
	return list
}
