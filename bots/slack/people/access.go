package people

import (
	"context"
	"time"

	"nize/bots/account"
	"nize/store"
)

// AdmitFunc reports whether bots.access admits a person whom Slack admits. A new person has
// an identity but no id.
type AdmitFunc func(ctx context.Context, u store.User) (bool, error)

// Who returns the person with a Slack id and their nize user; without access, the person
// has no user. The first contact creates a member.
func (d *Directory) Who(ctx context.Context, id string, age time.Duration) (Person, error) {
	p, err := d.LookUp(ctx, id, age)
	if err != nil || !p.Member {
		return p, err
	}
	k, err := account.Know(ctx, d.o.Store, d.o.Config, account.Person{Identity: p.Identity(), Name: p.Name, Locale: p.Locale, Zone: p.Zone}, func(u store.User) (bool, error) {
		return d.admits(ctx, u)
	})
	p.User, p.Barred, p.Locale, p.Zone = k.User, k.Barred, k.Locale, k.Zone
	return p, err
}

func (d *Directory) admits(ctx context.Context, u store.User) (bool, error) {
	if d.o.Admit == nil {
		return true, nil
	}
	return d.o.Admit(ctx, u)
}
