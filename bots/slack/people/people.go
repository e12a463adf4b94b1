// Package people looks up Slack users, their nize users, channel members and admins, and
// user groups. It caches Slack's answers for a short time, and disables users who left.
package people

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/wire"
	"nize/bots/sweep"
	"nize/store"
)

const (
	// Recent is the cache time of Slack's data about a person where it decides nothing but
	// the language (for membership, 5 min at most).
	Recent = 5 * time.Minute
	// Fresh is the cache time for presses.
	Fresh = 10 * time.Second
	// MaxKnown limits how many people are cached.
	MaxKnown = 10_000
)

// MaxLookups limits the lookups of names for one message.
const MaxLookups = 40

// Person is a Slack user with what nize knows about them.
type Person struct {
	ID     string // Slack user id
	Team   string // their home workspace
	Name   string
	Locale string
	Zone   string
	Member bool // full member of the bot's workspace
	admin  bool // of the workspace
	active bool // the account is not deactivated
	IsBot  bool // not a person

	User   store.User // the nize user; zero without access
	Barred bool       // a full member whom bots.access excludes

	Act string // inbox id of the action that is being answered; "" if it is not stored
}

// Caller returns the person as a caller.
func (p Person) Caller() store.Caller {
	return store.Caller{User: p.User.ID, Name: p.User.Name, Role: p.User.Role, Surface: store.OnSlack, Identity: p.Identity()}
}

func (p Person) Identity() string { return "slack:" + p.Team + ":" + p.ID }

func (p Person) Words() phrases.Catalogue { return phrases.For(p.Locale) }

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
	Config store.Config
	Admit  AdmitFunc // nil admits everybody
	Now    func() time.Time
	Log    *slog.Logger
	Team   string // the workspace
}

// Directory looks up people and channels of one workspace.
type Directory struct {
	account.Notices
	o Options

	known   account.Lookups[Person]
	dms     account.Lookups[string]   // direct channel to its person
	rosters account.Lookups[[]string] // Slack ids
	sweeps  *sweep.Sweeper
}

func New(o Options) *Directory {
	d := &Directory{Notices: account.Notices{Surface: store.OnSlack, Inbox: o.Store, Users: o.Store, Config: o.Config, Now: o.Now, Log: o.Log}, o: o,
		known: account.Lookups[Person]{Now: o.Now}, dms: account.Lookups[string]{Now: o.Now}, rosters: account.Lookups[[]string]{Now: o.Now, Most: 1000}}
	d.sweeps = sweep.New(sweep.Options{
		Store: o.Store, Surface: store.OnSlack, Title: "Slack", Team: o.Team, Now: o.Now, Wait: o.Wire.Wait, Log: o.Log, Gone: d.isGone, Unknown: unknown,
	})
	return d
}

// Asked returns a command of the person at an address.
func (p Person) Asked(at store.Address, words string) bots.Asked {
	return bots.Asked{By: p.Caller(), At: at, Words: words, Locale: p.Locale, Zone: p.Zone}
}

// LookUp returns a person from Slack, or from the cache if that is not older than age.
func (d *Directory) LookUp(ctx context.Context, id string, age time.Duration) (Person, error) {
	return d.known.Get(id, age, func() (Person, error) { return d.ask(ctx, id) })
}

func (d *Directory) ask(ctx context.Context, id string) (p Person, err error) {
	var u *slackgo.User
	err = d.o.Wire.Call(ctx, func(ctx context.Context) (err error) {
		u, err = d.o.Wire.API.GetUserInfoContext(ctx, id)
		return err
	})
	if err != nil {
		return Person{}, fmt.Errorf("asking Slack who %s is: %w", id, err)
	}
	p = Person{ID: id, Team: u.TeamID, Name: nameOf(u), Locale: u.Locale, Zone: u.TZ, active: !u.Deleted, IsBot: isBot(u), admin: u.IsAdmin || u.IsOwner || u.IsPrimaryOwner}
	if p.Team == "" {
		p.Team = d.o.Team
	}
	p.Member = u.ID == id && fullMember(u, d.o.Team)
	if _, err := time.LoadLocation(p.Zone); err != nil {
		p.Zone = ""
	}
	return p, nil
}

// fullMember reports whether a Slack user may talk to nize: an active person of this
// workspace who is not a guest.
func fullMember(u *slackgo.User, team string) bool {
	home := u.TeamID == "" || u.TeamID == team || slices.Contains(u.Enterprise.Teams, team)
	return home && !u.Deleted && !isBot(u) && !u.IsRestricted && !u.IsUltraRestricted && !u.IsStranger && !u.IsInvitedUser
}

func isBot(u *slackgo.User) bool {
	return u.IsBot || u.IsAppUser || u.IsWorkflowBot || u.IsConnectorBot
}

func nameOf(u *slackgo.User) string {
	for _, name := range []string{u.Profile.DisplayName, u.RealName, u.Name} {
		if name != "" {
			return name
		}
	}
	return u.ID
}

// NameFor returns a function that returns the names of mentioned people. Its lookups are
// limited, so that a text with thousands of mentions doesn't cause thousands of requests.
func (d *Directory) NameFor(ctx context.Context) func(string) string {
	asked := map[string]bool{}
	return func(id string) string {
		if !incoming.IDForm.MatchString(id) || !asked[id] && len(asked) == MaxLookups {
			return id
		}
		asked[id] = true
		p, err := d.LookUp(ctx, id, time.Hour)
		if err != nil {
			return id
		}
		return p.Name
	}
}

// OpenDM returns the channel of a person's direct conversation with nize.
func (d *Directory) OpenDM(ctx context.Context, user string) (channel string, err error) {
	err = d.o.Wire.Call(ctx, func(ctx context.Context) error {
		c, _, _, err := d.o.Wire.API.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{user}})
		if err == nil {
			channel = c.ID
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("opening a conversation with %s: %w", user, err)
	}
	return channel, nil
}

// ReaderOf returns the person whose direct conversation a channel is, "" for any other
// channel.
func (d *Directory) ReaderOf(ctx context.Context, channel string) (user string, err error) {
	user, known := d.dms.Known(channel, account.Ever)
	if known || !strings.HasPrefix(channel, "D") {
		return user, nil
	}
	err = d.o.Wire.Call(ctx, func(ctx context.Context) error {
		c, err := d.o.Wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
		if err == nil {
			user = c.User
		}
		return err
	})
	if err != nil {
		return "", err
	}
	d.dms.Put(channel, user)
	return user, nil
}

// Direct returns a person's direct conversation with nize, outside threads. Only people
// with access get messages.
func (d *Directory) Direct(ctx context.Context, u store.User) (store.Address, error) {
	if admitted, err := d.admits(ctx, u); err != nil || !admitted {
		return store.Address{}, cmp.Or(err, fmt.Errorf("%s, whom bots.access keeps out, on Slack: %w", u.Name, store.ErrNotFound))
	}
	for _, id := range IDs(u) {
		p, err := d.LookUp(ctx, id, Recent)
		if err != nil {
			return store.Address{}, err
		}
		if !p.Member {
			continue
		}
		channel, err := d.OpenDM(ctx, id)
		if err != nil {
			return store.Address{}, err
		}
		d.dms.Put(channel, id)
		return store.Address{Surface: store.OnSlack, Team: d.o.Team, Channel: channel}, nil
	}
	return store.Address{}, fmt.Errorf("%s on Slack: %w", u.Name, store.ErrNotFound)
}
