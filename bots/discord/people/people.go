// Package people knows who is who on Discord: people, what they are in the guild
// and as users of nize, who is in a channel and administers it, and roles. What
// Discord says is remembered for a short time, and who left is disabled.
package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/bots/sweep"
	"nize/store"
)

const (
	// Recent is how long what Discord says of somebody counts where nobody presses.
	Recent = 5 * time.Minute
	// Fresh is how old it may be when somebody presses.
	Fresh = 10 * time.Second
)

// Permissions.
const (
	administrator  incoming.Bits = 1 << 3
	manageChannels incoming.Bits = 1 << 4
	manageGuild    incoming.Bits = 1 << 5
	viewChannel    incoming.Bits = 1 << 10
)

// Person is somebody on Discord, as nize knows them.
type Person struct {
	ID     string
	Name   string
	Locale string
	Zone   string
	Member bool // of the guild, and a person
	left   bool // Discord says that they are not in it
	roles  []string

	User   store.User // of nize; zero without access
	Barred bool       // a member whom discord.access keeps out

	Act string // what they did that is answered, as an id of the inbox; "" for what is not kept
}

// Identity is by what nize knows them.
func (p Person) Identity() string { return identityOf(p.ID) }

func identityOf(id string) string { return string(store.OnDiscord) + ":" + id }

// Caller is the person as the author of what they do.
func (p Person) Caller() store.Caller {
	return store.Caller{User: p.User.ID, Name: p.User.Name, Role: p.User.Role, Surface: store.OnDiscord, Identity: p.Identity()}
}

// Words are nize's in the person's language.
func (p Person) Words() phrases.Catalogue { return phrases.For(p.Locale) }

// Asked is a command that the person gave at an address.
func (p Person) Asked(at store.Address, words string) bots.Asked {
	return bots.Asked{By: p.Caller(), At: at, Words: words, Locale: p.Locale, Zone: p.Zone}
}

// Store is what of the store the directory needs.
type Store interface {
	sweep.Store
	account.Users
	Accept(ctx context.Context, item store.Item) (bool, error)
	Done(ctx context.Context, id string) error
	RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error
}

// Options are what a directory works with.
type Options struct {
	Wire   *wire.Client
	Store  Store
	Config store.Config // discord.access
	Now    func() time.Time
	Log    *slog.Logger
	Guild  string
}

// Directory looks people and channels of one guild up.
type Directory struct {
	account.Notices
	o      Options
	sweeps *sweep.Sweeper

	known    account.Lookups[Person]
	locales  account.Lookups[string] // of people, as they pressed or typed last
	channels account.Lookups[incoming.Channel]
	guild    account.Lookups[incoming.Guild] // the one
	dms      account.Lookups[string]         // somebody's own channel with nize
}

// New returns a directory that knows nobody.
func New(o Options) *Directory {
	d := &Directory{Notices: account.Notices{Surface: store.OnDiscord, Inbox: o.Store, Users: o.Store, Config: o.Config, Now: o.Now, Log: o.Log}, o: o,
		known: account.Lookups[Person]{Now: o.Now}, locales: account.Lookups[string]{Now: o.Now}, channels: account.Lookups[incoming.Channel]{Now: o.Now},
		guild: account.Lookups[incoming.Guild]{Now: o.Now}, dms: account.Lookups[string]{Now: o.Now}}
	d.sweeps = sweep.New(sweep.Options{
		Store: o.Store, Surface: store.OnDiscord, Title: "Discord", Team: o.Guild, Now: o.Now, Wait: o.Wire.Wait, Log: o.Log,
		Gone: d.isGone, Unknown: wire.Refused,
	})
	return d
}

// IDOf is whose identity of Discord's that is, "" for another platform's.
func IDOf(identity string) string {
	id, ok := strings.CutPrefix(identity, string(store.OnDiscord)+":")
	if !ok || !incoming.IDForm.MatchString(id) {
		return ""
	}
	return id
}

// IDs are a user's ids on Discord.
func IDs(u store.User) (ids []string) {
	for _, identity := range u.Identities {
		if id := IDOf(identity); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// SetLocale notes in which language somebody has Discord, which only
// interactions tell.
func (d *Directory) SetLocale(user, locale string) { d.locales.Put(user, locale) }

// LookUp asks Discord what somebody is in the guild, or remembers if that is not
// older than age.
func (d *Directory) LookUp(ctx context.Context, id string, age time.Duration) (Person, error) {
	p, err := d.known.Get(id, age, func() (Person, error) { return d.ask(ctx, id) })
	locale, _ := d.locales.Known(id, account.Ever)
	p.Locale = cmp.Or(locale, p.Locale)
	return p, err
}

func (d *Directory) ask(ctx context.Context, id string) (Person, error) {
	var m incoming.Member
	err := d.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "guilds/" + d.o.Guild + "/members/" + id, Into: &m})
	p := Person{ID: id, Name: id}
	switch code := wire.Code(err); {
	case code == wire.UnknownMember || code == wire.UnknownUser:
		p.left = true
	case err != nil:
		return p, fmt.Errorf("asking Discord who %s is: %w", id, err)
	default:
		if m.User.ID == "" {
			m.User.ID = id
		}
		p.Name, p.roles = m.DisplayName(), m.Roles
		p.Member = m.User.ID == id && !m.User.Bot && !m.Pending
	}
	g, err := d.Guild(ctx, Recent)
	p.Locale = g.Locale
	return p, err
}

// Forget makes the next look at somebody a fresh one, also where an older one is
// under way.
func (d *Directory) Forget(id string) { d.known.Forget(id) }

// Who is the person behind an id, as a user of nize; one without access has no
// user. A first contact makes a member.
func (d *Directory) Who(ctx context.Context, id string, age time.Duration) (Person, error) {
	p, err := d.LookUp(ctx, id, age)
	if err != nil || !p.Member {
		return p, err
	}
	k, err := account.Know(ctx, d.o.Store, d.o.Config, account.Person{Identity: p.Identity(), Name: p.Name, Locale: p.Locale, Zone: p.Zone}, func(u store.User) (bool, error) {
		return d.admits(ctx, p, u, age)
	})
	p.User, p.Barred, p.Locale, p.Zone = k.User, k.Barred, k.Locale, k.Zone
	return p, err
}

// admits says whether discord.access lets a member of the guild in: admins of
// nize and those who manage the guild always, others by a role, or everybody.
func (d *Directory) admits(ctx context.Context, p Person, u store.User, age time.Duration) (bool, error) {
	access := d.o.Config.Get("", "discord.access")
	role, byRole := strings.CutPrefix(access, "role:")
	switch {
	case access == "everyone", u.Role == store.Admin:
		return true, nil
	case byRole && slices.Contains(p.roles, role):
		return true, nil
	}
	g, err := d.Guild(ctx, age)
	if err != nil {
		return false, err
	}
	return manages(g, p), nil
}

// manages says whether somebody manages the guild.
func manages(g incoming.Guild, p Person) bool {
	return p.ID == g.Owner || inGuild(g, p)&(administrator|manageGuild) != 0
}

// inGuild are somebody's permissions in the whole guild.
func inGuild(g incoming.Guild, p Person) (may incoming.Bits) {
	for _, r := range g.Roles {
		if r.ID == g.ID || slices.Contains(p.roles, r.ID) { // the guild's own id is everybody's role
			may |= r.Permissions
		}
	}
	return may
}

// OpenDM is the channel of somebody's conversation with nize.
func (d *Directory) OpenDM(ctx context.Context, user string) (string, error) {
	if channel, ok := d.dms.Known(user, account.Ever); ok {
		return channel, nil
	}
	var c incoming.Channel
	err := d.o.Wire.Do(ctx, wire.Request{Method: "POST", Path: "users/@me/channels", Body: map[string]string{"recipient_id": user}, Into: &c})
	if err != nil || !incoming.IDForm.MatchString(c.ID) {
		return "", fmt.Errorf("opening a conversation with %s: %w", user, cmp.Or(err, store.ErrInvalid))
	}
	d.noteDM(c.ID, user)
	return c.ID, nil
}

func (d *Directory) noteDM(channel, user string) {
	d.dms.Put(user, channel)
	d.channels.Put(channel, incoming.Channel{ID: channel, Type: 1, Recipients: []incoming.User{{ID: user}}})
}

// Direct is somebody's conversation with nize. Only who may talk to nize gets
// anything.
func (d *Directory) Direct(ctx context.Context, u store.User) (store.Address, error) {
	for _, id := range IDs(u) {
		p, err := d.Who(ctx, id, Recent)
		if err != nil {
			return store.Address{}, wire.Unreachable(err)
		}
		if p.User.ID == "" {
			continue
		}
		channel, err := d.OpenDM(ctx, id)
		if err != nil {
			return store.Address{}, wire.Unreachable(err)
		}
		return store.Address{Surface: store.OnDiscord, Team: d.o.Guild, Channel: channel, Direct: true}, nil
	}
	return store.Address{}, fmt.Errorf("%s on Discord: %w", u.Name, store.ErrNotFound)
}

// isGone says whether somebody is not in the guild any more.
func (d *Directory) isGone(ctx context.Context, identity string) (bool, error) {
	id := IDOf(identity)
	if id == "" {
		return false, nil
	}
	p, err := d.LookUp(ctx, id, Fresh)
	return err == nil && p.left, err
}

// Left works on the news that somebody left the guild.
func (d *Directory) Left(ctx context.Context, user string) error {
	d.Forget(user)
	u, err := d.o.Store.FindUser(ctx, identityOf(user))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding who left: %w", err)
	}
	_, err = d.sweeps.DisableGone(ctx, u)
	return err
}

// Sweep begins to look everybody up now, or leaves one that is under way.
func (d *Directory) Sweep() { d.sweeps.Begin() }

// KeepSweeping sweeps when it is time, until ctx ends.
func (d *Directory) KeepSweeping(ctx context.Context) { d.sweeps.Run(ctx) }
