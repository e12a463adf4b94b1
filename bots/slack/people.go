package slack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

const (
	// keepPerson is how long what Slack says of somebody counts where it
	// decides nothing but the language (membership 5 min at most).
	keepPerson = 5 * time.Minute
	// freshPerson is how old it may be when somebody presses.
	freshPerson = 10 * time.Second
	maxPeople   = 10_000
)

// person is somebody on Slack, as nize knows them.
type person struct {
	id     string // of Slack
	team   string // their home
	name   string
	locale string
	zone   string
	member bool // a full member of the workspace that the bot is in
	admin  bool // of the workspace
	active bool // their account is switched on
	bot    bool // not a person
	at     time.Time

	user   store.User // of nize; zero without access
	barred bool       // a full member whom bots.access keeps out
}

// by is the person as the author of what they do.
func (p person) by() store.Caller {
	return store.Caller{User: p.user.ID, Name: p.user.Name, Role: p.user.Role, Surface: store.OnSlack, Identity: p.identity()}
}

func (p person) identity() string { return "slack:" + p.team + ":" + p.id }

func (p person) words() phrases.Catalogue { return phrases.For(p.locale) }

// people remembers what Slack says of people, for a short time.
type people struct {
	mu    sync.Mutex // guards what follows
	known map[string]person
	dms   map[string]string // whose conversation with nize a channel is
	// asking are who is being looked up, until Slack tells that they changed: what
	// it answered before that is not remembered.
	asking map[string]*asking
}

// asking counts look-ups of one person that are under way.
type asking struct{ n int }

// beginLocked notes a look-up, which end ends; p.mu is held.
func (p *people) beginLocked(id string) *asking {
	a := p.asking[id]
	if a == nil {
		a = &asking{}
		p.asking[id] = a
	}
	a.n++
	return a
}

// end remembers what a look-up found, unless it may be old; of one that failed
// nothing was found.
func (p *people) end(id string, a *asking, found *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking[id] != a {
		return
	}
	if a.n--; a.n == 0 {
		delete(p.asking, id)
	}
	if found.id == "" {
		return
	}
	if len(p.known) >= maxPeople {
		clear(p.known)
	}
	p.known[id] = *found
}

// look asks Slack about somebody, or remembers if that is not older than age.
func (l *live) look(ctx context.Context, id string, age time.Duration) (p person, err error) {
	now := l.b.o.Now()
	l.people.mu.Lock()
	known, ok := l.people.known[id]
	if ok && now.Sub(known.at) < age {
		l.people.mu.Unlock()
		return known, nil
	}
	a := l.people.beginLocked(id)
	l.people.mu.Unlock()
	defer func() { l.people.end(id, a, &p) }()
	var u *slackgo.User
	err = l.wire.Call(ctx, func(ctx context.Context) (err error) {
		u, err = l.wire.API.GetUserInfoContext(ctx, id)
		return err
	})
	if err != nil {
		return person{}, fmt.Errorf("asking Slack who %s is: %w", id, err)
	}
	p = person{id: id, team: u.TeamID, name: nameOf(u), locale: u.Locale, zone: u.TZ, at: now, active: !u.Deleted, bot: isBot(u), admin: u.IsAdmin || u.IsOwner || u.IsPrimaryOwner}
	if p.team == "" {
		p.team = l.account.Team
	}
	p.member = u.ID == id && fullMember(u, l.account.Team)
	if _, err := time.LoadLocation(p.zone); err != nil {
		p.zone = ""
	}
	return p, nil
}

// fullMember says whether somebody may talk to nize by what they are on Slack: a
// person, switched on, of this workspace, and no guest.
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

// nameFor is how somebody is called who is mentioned in a text. A text that
// mentions thousands is no reason to ask Slack thousands of times.
func (l *live) nameFor(ctx context.Context) func(string) string {
	asked := map[string]bool{}
	return func(id string) string {
		if !incoming.IdForm.MatchString(id) || !asked[id] && len(asked) == maxLookups {
			return id
		}
		asked[id] = true
		p, err := l.look(ctx, id, time.Hour)
		if err != nil {
			return id
		}
		return p.name
	}
}

// once says whether it is the first time within a day that it is asked about
// that key.
func (l *live) once(ctx context.Context, what string) (bool, error) {
	item := store.Item{ID: store.NewID(l.b.o.Now()), Kind: "slack.once", Keys: []string{"slack:" + what}, Payload: []byte("{}"), At: l.b.o.Now()}
	first, err := l.b.o.Store.Accept(ctx, item)
	if err != nil || !first {
		return false, err
	}
	return true, l.b.o.Store.Done(ctx, item.ID)
}

// tell says something to one person: in their own conversation with nize
// openly, elsewhere so that nobody else sees it.
func (l *live) tell(ctx context.Context, p person, channel, thread, text string) error {
	if channel == "" || channel[0] == 'D' {
		return l.direct(ctx, p.id, channel, thread, text)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionText(view.Fallback(text, view.MaxFallback), false), slackgo.MsgOptionBlocks(view.WordsBlocks(text)...), slackgo.MsgOptionDisableLinkUnfurl()}
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	err := l.wire.Ephemeral(ctx, channel, p.id, options...)
	if noEphemeral[wire.Code(err)] {
		return l.direct(ctx, p.id, "", "", text)
	}
	return err
}

// noEphemeral are Slack's answers where nothing can be shown to one person alone
// in a channel.
var noEphemeral = map[string]bool{"not_in_channel": true, "channel_not_found": true, "user_not_in_channel": true}

// direct writes to somebody's conversation with nize.
func (l *live) direct(ctx context.Context, user, channel, thread, text string) error {
	if channel == "" {
		var err error
		if channel, err = l.dm(ctx, user); err != nil {
			return err
		}
	}
	options := view.Words(text).Post
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	_, err := l.wire.Post(ctx, channel, options...)
	return err
}

// dm is the channel of somebody's conversation with nize.
func (l *live) dm(ctx context.Context, user string) (channel string, err error) {
	err = l.wire.Call(ctx, func(ctx context.Context) error {
		c, _, _, err := l.wire.API.OpenConversationContext(ctx, &slackgo.OpenConversationParameters{Users: []string{user}})
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

// reads is whose conversation with nize a channel is, "" for any other channel.
func (l *live) reads(ctx context.Context, channel string) (user string, err error) {
	l.people.mu.Lock()
	user, known := l.people.dms[channel]
	l.people.mu.Unlock()
	if known || !strings.HasPrefix(channel, "D") {
		return user, nil
	}
	err = l.wire.Call(ctx, func(ctx context.Context) error {
		c, err := l.wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
		if err == nil {
			user = c.User
		}
		return err
	})
	if err != nil {
		return "", err
	}
	l.people.mu.Lock()
	defer l.people.mu.Unlock()
	l.people.dms[channel] = user
	return user, nil
}

// Direct implements [bots.Courier]: somebody's conversation with nize, outside
// any thread. Only who may talk to nize gets anything.
func (b *Bot) Direct(ctx context.Context, u store.User) (store.Address, error) {
	l := b.current()
	if l == nil {
		return store.Address{}, fmt.Errorf("%w: %w", store.ErrNotFound, errOff)
	}
	if admitted, err := b.admits(ctx, u); err != nil || !admitted {
		return store.Address{}, cmp.Or(err, fmt.Errorf("%s, whom bots.access keeps out, on Slack: %w", u.Name, store.ErrNotFound))
	}
	for _, id := range l.idsOf(u) {
		p, err := l.look(ctx, id, keepPerson)
		if err != nil {
			return store.Address{}, err
		}
		if !p.member {
			continue
		}
		channel, err := l.dm(ctx, id)
		if err != nil {
			return store.Address{}, err
		}
		l.people.mu.Lock()
		l.people.dms[channel] = id
		l.people.mu.Unlock()
		return store.Address{Surface: store.OnSlack, Team: l.account.Team, Channel: channel}, nil
	}
	return store.Address{}, fmt.Errorf("%s on Slack: %w", u.Name, store.ErrNotFound)
}
