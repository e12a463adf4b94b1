package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nize/store"
)

// AdmitFunc says whether bots.access lets somebody in whom Slack does. Who comes
// for the first time has an identity and no id.
type AdmitFunc func(ctx context.Context, u store.User) (bool, error)

// Who is the person behind an id, as a user of nize; one without access has no
// user. A first contact makes a member.
func (d *Directory) Who(ctx context.Context, id string, age time.Duration) (Person, error) {
	p, err := d.LookUp(ctx, id, age)
	if err != nil || !p.Member {
		return p, err
	}
	u, err := d.o.Store.FindUser(ctx, p.Identity())
	known := err == nil
	switch {
	case errors.Is(err, store.ErrNotFound):
		u = store.User{Name: p.Name, Role: store.Member, State: store.Active, Identities: []string{p.Identity()}}
	case err != nil:
		return p, fmt.Errorf("finding the user %s: %w", p.Identity(), err)
	}
	p.Locale = store.Language(d.o.Config, u.ID, p.Locale)
	p.Zone = store.TimeZone(d.o.Config, u.ID, p.Zone)
	if u.State != store.Active {
		return p, nil
	}
	admitted, err := d.admits(ctx, u)
	if err != nil {
		return p, fmt.Errorf("asking whether %s may talk to nize: %w", p.Identity(), err)
	}
	if !admitted {
		p.Barred = true
		return p, nil
	}
	if !known {
		if u, err = d.o.Store.EnsureUser(ctx, p.Identity(), p.Name, store.Member); err != nil {
			return p, fmt.Errorf("finding the user %s: %w", p.Identity(), err)
		}
	}
	if u.State == store.Active {
		p.User = u
	}
	return p, nil
}

func (d *Directory) admits(ctx context.Context, u store.User) (bool, error) {
	if d.o.Admit == nil {
		return true, nil
	}
	return d.o.Admit(ctx, u)
}
