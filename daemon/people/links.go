package daemon

import (
	"context"
	"fmt"
	"net/http"

	"nize/daemon/api"
	"nize/store"
)

// Linking: a code of one of a person's identities is given under
// another, and the two become one user.

func (d *Daemon) makeLink(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.MakeLink](r)
	if err != nil {
		return nil, err
	}
	id, err := d.directory.Owner(ctx, by, req.User)
	if err != nil {
		return nil, err
	}
	u, err := d.db.GetUser(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading user %s: %w", id, err)
	}
	code, hash := store.NewCode()
	expires, err := d.db.PutLink(ctx, by, u.ID, hash)
	if err != nil {
		return nil, fmt.Errorf("a code for %s: %w", u.Name, err)
	}
	return api.LinkCode{Code: api.Secret{Secret: code}, User: u, Expires: expires}, nil
}

// givenCode reads a request with a code. One that can be none is not counted
// as a try: it says nothing about those that there are.
func givenCode(r *http.Request) (req api.UseLink, hash [32]byte, err error) {
	if req, err = decode[api.UseLink](r); err != nil {
		return req, hash, err
	}
	hash, err = store.ReadCode(req.Code.Reveal())
	return req, hash, err
}

func (d *Daemon) lookAtLink(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	_, hash, err := givenCode(r)
	if err != nil {
		return nil, err
	}
	v := api.LinkView{}
	if v.Other, err = d.db.FindLink(ctx, by, hash); err != nil {
		return nil, err
	}
	if v.You, err = d.db.GetUser(ctx, by.User); err != nil {
		return nil, fmt.Errorf("reading user %s: %w", by.User, err)
	}
	return v, nil
}

func (d *Daemon) join(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, hash, err := givenCode(r)
	if err != nil {
		return nil, err
	}
	j, err := d.db.Join(ctx, by, hash, req.Role)
	if err != nil {
		return nil, err
	}
	d.log.Info("identities joined", "user", j.User.ID, "absorbed", j.Absorbed.ID)
	return j, nil
}

func (d *Daemon) unlink(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	u, err := d.directory.Find(ctx, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	identity := r.PathValue("identity")
	if len(u.Identities) > 0 && !hasIdentity(u, identity) {
		return nil, store.Unknown("identity", identity, u.Identities)
	}
	if u, err = d.db.Unlink(ctx, by, u.ID, identity); err != nil {
		return nil, err
	}
	return d.userView(ctx, u)
}
