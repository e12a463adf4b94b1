package people

import (
	"context"
	"time"

	"nize/bots/account"
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
