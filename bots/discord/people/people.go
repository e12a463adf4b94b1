// Package people looks up Discord members, their nize users, channels and their admins, and
// roles. It caches Discord's answers for a short time, and disables users who left.
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

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/bots/sweep"
	"nize/store"
)

const (
	// Recent is the cache time of Discord's data about a person, except for presses.
	Recent = 5 * time.Minute
	// Fresh is the cache time for presses.
	Fresh = 10 * time.Second
)

// Person is a Discord user with what nize knows about them.
type Person struct {
	ID     string
	Name   string
	Locale string
	Zone   string
	Member bool // of the guild, and not a bot
	left   bool // Discord says that they are not in the guild
	roles  []string

	User   store.User // the nize user; zero without access
	Barred bool       // a member whom discord.access excludes

	Act string // inbox id of the action that is being answered; "" if it is not stored
}

// Identity returns the person's identity in nize.
func (p Person) Identity() string { return identityOf(p.ID) }

func identityOf(id string) string { return string(store.OnDiscord) + ":" + id }

// Caller returns the person as a caller.
func (p Person) Caller() store.Caller {
	return store.Caller{User: p.User.ID, Name: p.User.Name, Role: p.User.Role, Surface: store.OnDiscord, Identity: p.Identity()}
}

// Words returns nize's texts in the person's language.
func (p Person) Words() phrases.Catalogue { return phrases.For(p.Locale) }

// Asked returns a command of the person at an address.
func (p Person) Asked(at store.Address, words string) bots.Asked {
	return bots.Asked{By: p.Caller(), At: at, Words: words, Locale: p.Locale, Zone: p.Zone}
}

// Store is the part of the store that the directory needs.
type Store interface {
	sweep.Store
	account.Users
	Accept(ctx context.Context, item store.Item) (bool, error)
	Done(ctx context.Context, id string) error
	RecordPrivacyNotice(ctx context.Context, by store.Caller, user string) error
}

// Options configure a [Directory].
type Options struct {
	Wire   *wire.Client
	Store  Store
	Config store.Config // discord.access
	Now    func() time.Time
	Log    *slog.Logger
	Guild  string
}

// Directory looks up people and channels of one guild.
type Directory struct {
	account.Notices
	o      Options
	sweeps *sweep.Sweeper

	known    account.Lookups[Person]
	locales  account.Lookups[string] // of people, from their last interaction
	channels account.Lookups[discordgo.Channel]
	guild    account.Lookups[discordgo.Guild] // only the bot's guild
	dms      account.Lookups[string]          // direct channels
}

// New returns an empty directory.
func New(o Options) *Directory {
	d := &Directory{Notices: account.Notices{Surface: store.OnDiscord, Inbox: o.Store, Users: o.Store, Config: o.Config, Now: o.Now, Log: o.Log}, o: o,
		known: account.Lookups[Person]{Now: o.Now}, locales: account.Lookups[string]{Now: o.Now}, channels: account.Lookups[discordgo.Channel]{Now: o.Now},
		guild: account.Lookups[discordgo.Guild]{Now: o.Now}, dms: account.Lookups[string]{Now: o.Now}}
	d.sweeps = sweep.New(sweep.Options{
		Store: o.Store, Surface: store.OnDiscord, Title: "Discord", Team: o.Guild, Now: o.Now, Wait: o.Wire.Wait, Log: o.Log,
		Gone: d.isGone, Unknown: wire.Refused,
	})
	return d
}

// IDOf returns the Discord id of an identity, "" for another platform's.
func IDOf(identity string) string {
	id, ok := strings.CutPrefix(identity, string(store.OnDiscord)+":")
	if !ok || !incoming.IDForm.MatchString(id) {
		return ""
	}
	return id
}

// IDs returns a user's Discord ids.
func IDs(u store.User) (ids []string) {
	for _, identity := range u.Identities {
		if id := IDOf(identity); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// SetLocale stores a person's Discord language, which only interactions contain.
func (d *Directory) SetLocale(user, locale string) { d.locales.Put(user, locale) }

// LookUp returns a person's membership from Discord, or from the cache if that is not older
// than age.
func (d *Directory) LookUp(ctx context.Context, id string, age time.Duration) (Person, error) {
	p, err := d.known.Get(id, age, func() (Person, error) { return d.ask(ctx, id) })
	locale, _ := d.locales.Known(id, account.Ever)
	p.Locale = cmp.Or(locale, p.Locale)
	return p, err
}

func (d *Directory) ask(ctx context.Context, id string) (Person, error) {
	m := discordgo.Member{User: &discordgo.User{ID: id}}
	err := d.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "guilds/" + d.o.Guild + "/members/" + id, Into: &m})
	p := Person{ID: id, Name: id}
	switch code := wire.Code(err); {
	case code == discordgo.ErrCodeUnknownMember || code == discordgo.ErrCodeUnknownUser:
		p.left = true
	case err != nil:
		return p, fmt.Errorf("asking Discord who %s is: %w", id, err)
	default:
		if m.User == nil {
			m.User = &discordgo.User{ID: id}
		}
		p.Name, p.roles = cmp.Or(m.DisplayName(), id), m.Roles
		p.Member = m.User.ID == id && !m.User.Bot && !m.Pending
	}
	g, err := d.Guild(ctx, Recent)
	p.Locale = g.PreferredLocale
	return p, err
}

// Forget makes the next lookup of a person a fresh one, even if an older one is in
// progress.
func (d *Directory) Forget(id string) { d.known.Forget(id) }

// Who returns the person with a Discord id and their nize user; without access, the person
// has no user. The first contact creates a member.
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

// admits reports whether discord.access admits a member of the guild: always for nize's
// admins and for those who manage the guild, otherwise by role, or everybody.
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

// manages reports whether a person manages the guild.
func manages(g discordgo.Guild, p Person) bool {
	return p.ID == g.OwnerID || inGuild(g, p)&(discordgo.PermissionAdministrator|discordgo.PermissionManageGuild) != 0
}

// inGuild returns a person's permissions in the whole guild.
func inGuild(g discordgo.Guild, p Person) (may int64) {
	for _, r := range g.Roles {
		if r.ID == g.ID || slices.Contains(p.roles, r.ID) { // the guild's own id is the role of everybody
			may |= r.Permissions
		}
	}
	return may
}

// OpenDM returns a person's direct channel.
func (d *Directory) OpenDM(ctx context.Context, user string) (string, error) {
	if channel, ok := d.dms.Known(user, account.Ever); ok {
		return channel, nil
	}
	var c discordgo.Channel
	err := d.o.Wire.Do(ctx, wire.Request{Method: "POST", Path: "users/@me/channels", Body: map[string]string{"recipient_id": user}, Into: &c})
	if err != nil || !incoming.IDForm.MatchString(c.ID) {
		return "", fmt.Errorf("opening a conversation with %s: %w", user, cmp.Or(err, store.ErrInvalid))
	}
	d.noteDM(c.ID, user)
	return c.ID, nil
}

func (d *Directory) noteDM(channel, user string) {
	d.dms.Put(user, channel)
	d.channels.Put(channel, discordgo.Channel{ID: channel, Type: discordgo.ChannelTypeDM, Recipients: []*discordgo.User{{ID: user}}})
}

// Direct returns a person's direct channel. Only people with access get messages.
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

// isGone reports whether a person is no longer in the guild.
func (d *Directory) isGone(ctx context.Context, identity string) (bool, error) {
	id := IDOf(identity)
	if id == "" {
		return false, nil
	}
	p, err := d.LookUp(ctx, id, Fresh)
	return err == nil && p.left, err
}

// Left handles the event that a person left the guild.
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

// Sweep starts a check of all users, unless one is in progress.
func (d *Directory) Sweep() { d.sweeps.Begin() }

// KeepSweeping runs the periodic sweeps until ctx ends.
func (d *Directory) KeepSweeping(ctx context.Context) { d.sweeps.Run(ctx) }
