package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"nize/daemon/api"
	"nize/store"
	"nize/store/oauth"
)

// Operations on sign-ins for people whom nize has already authenticated, in a chat or at
// the control socket.

func hashLogin(secret string) oauth.Hash { return oauth.HashOf("login " + secret) }

// find returns the request of a code that a person enters. Wrong guesses are limited.
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
	if !s.guesses.Take(by.User, s.Now()) {
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

// Show returns who requests the sign-in of a code, from where and for what.
func (s *Server) Show(ctx context.Context, by store.Caller, req api.LoginCodeRequest) (api.SignInRequest, error) {
	asked, err := s.find(ctx, by, req.Code)
	return view(asked), err
}

// Approve confirms a request for a person and returns the number for its page.
func (s *Server) Approve(ctx context.Context, by store.Caller, req api.LoginCodeRequest) (none api.ApprovedLogin, err error) {
	if _, only := s.company(ctx); only {
		return none, errOnly
	}
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
		o.User, o.Surface, o.Number = u.ID, by.Surface, hash
		return true, nil
	})
	if err != nil {
		return none, err
	}
	return api.ApprovedLogin{SignInRequest: view(asked), User: u.ID, UserName: u.Name, Number: api.NewSecret(number)}, nil
}

// Deny ends a request and raises an alarm for operators, since someone tried to sign in as
// a person who did not request it.
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
	err = s.Notices.PutNotice(ctx, oauth.Notice{ID: asked.ID, Kind: oauth.NotMe, User: by.User, Name: asked.Name, Address: asked.Address, Agent: asked.Agent, Since: s.Now(), Told: s.Now()})
	if err != nil {
		return none, fmt.Errorf("noting a denied sign-in: %w", err)
	}
	return view(asked), nil
}

// Start returns a single-use URL that signs a browser in as a person.
func (s *Server) Start(ctx context.Context, by store.Caller, req api.StartLoginRequest) (none api.StartedLogin, err error) {
	if _, only := s.company(ctx); only {
		return none, errOnly
	}
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
	err = s.Store.AddRequest(ctx, by, oauth.Request{ID: NewSecret()[:22], Code: hashLogin(secret), Origin: s.Base(), User: u.ID, Surface: by.Surface, Address: by.Address})
	if err != nil {
		return none, fmt.Errorf("keeping a sign-in: %w", err)
	}
	return api.StartedLogin{URL: api.NewSecret(loginURL(s.Base(), secret)), User: u.ID, UserName: u.Name, Expires: s.Now().Add(oauth.LoginLife)}, nil
}

// List returns the browsers that are signed in.
func (s *Server) List(ctx context.Context, by store.Caller, req api.ListTokensRequest) (none api.TokenPage, err error) {
	user := ""
	if req.User != "" || !by.IsAdmin() {
		if user, err = s.Directory.Owner(ctx, by, req.User); err != nil {
			return none, err
		}
	}
	page, err := s.Pages.Page(ctx, oauth.TokenQuery{User: user, Kinds: []string{oauth.Browser}, Active: true}, req)
	page.Items = slices.DeleteFunc(page.Items, func(t api.TokenView) bool { return s.idle(t.Token) })
	return page, err
}

// Revoke signs a browser out.
func (s *Server) Revoke(ctx context.Context, by store.Caller, req api.LoginIDRequest) (none api.Empty, err error) {
	switch t, err := s.Pages.Store.GetToken(ctx, req.ID); {
	case err == nil && t.Audience == store.ForWeb && (by.IsAdmin() || t.User == by.User) && t.State(s.Now()) == "active":
		return none, s.Store.RevokeSignIn(ctx, by, t.ID)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return none, err
	}
	list, err := s.List(ctx, by, api.ListTokensRequest{})
	if err != nil {
		return none, err
	}
	var ids []string
	for _, t := range list.Items {
		ids = append(ids, t.ID)
	}
	return none, store.Unknown("session", req.ID, ids)
}
