package slack

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/wire"
	"nize/store"
)

// Who is in a channel and who administers it, as Slack has it now: approvals
// ask at every press.

const (
	// freshMembers is how long one look at a channel serves the presses on it.
	freshMembers = 10 * time.Second
	// maxMemberPages bounds a look: 20,000 people.
	maxMemberPages = 20
	maxRosters     = 1000
)

// roster is a list of Slack ids as it was at some time.
type roster struct {
	ids []string
	at  time.Time
}

// rosters remembers lists of people for a short time.
type rosters struct {
	mu sync.Mutex // guards of
	of map[string]roster
}

// get returns the list under a key if it is younger than age, else a new one.
func (r *rosters) get(key string, now time.Time, age time.Duration, read func() ([]string, error)) ([]string, error) {
	r.mu.Lock()
	have, ok := r.of[key]
	r.mu.Unlock()
	if ok && now.Sub(have.at) < age {
		return have.ids, nil
	}
	ids, err := read()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxRosters {
		r.of = map[string]roster{}
	}
	r.of[key] = roster{ids, now}
	return ids, nil
}

// Member says whether a user of nize's is in the channel and a full member of
// the workspace.
func (b *Bot) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return false, err
	}
	u, err := b.o.Store.GetUser(ctx, user)
	if err != nil {
		return false, err
	}
	in, err := l.members(ctx, at.Channel)
	if err != nil {
		return false, err
	}
	for _, id := range l.idsOf(u) {
		if !slices.Contains(in, id) {
			continue
		}
		p, err := l.look(ctx, id, freshPerson)
		if err != nil {
			return false, err
		}
		if p.member {
			return true, nil
		}
	}
	return false, nil
}

// Admins returns the users of nize's who administer a channel: the workspace's
// admins and owners, and who made the channel.
func (b *Bot) Admins(ctx context.Context, at store.Address) ([]string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return nil, err
	}
	ids, err := l.rosters.get("admins", b.o.Now(), keepPerson, func() ([]string, error) { return l.workspaceAdmins(ctx) })
	if err != nil {
		return nil, err
	}
	creator, err := l.rosters.get("creator "+at.Channel, b.o.Now(), keepPerson, func() ([]string, error) { return l.creator(ctx, at.Channel) })
	if err != nil {
		return nil, err
	}
	users, err := b.o.Store.ListUsers(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, u := range users {
		admin := slices.ContainsFunc(l.idsOf(u), func(id string) bool {
			return slices.Contains(ids, id) && !l.lowered(id, true) || slices.Contains(creator, id) && !l.lowered(id, false)
		})
		if admin && u.State == store.Active {
			found = append(found, u.ID)
		}
	}
	return found, nil
}

// lowered says of somebody on a list whether what was seen of them lately is
// less: no admin of the workspace, or no full member. The lists may be minutes
// old; who presses was looked at just now.
func (l *live) lowered(id string, admin bool) bool {
	l.people.mu.Lock()
	defer l.people.mu.Unlock()
	p, ok := l.people.known[id]
	return ok && l.b.o.Now().Sub(p.at) < freshPerson && (!p.member || admin && !p.admin)
}

// idsOf are a user's ids on Slack.
func (l *live) idsOf(u store.User) []string {
	var ids []string
	for _, identity := range u.Identities {
		parts := strings.Split(identity, ":")
		if len(parts) == 3 && parts[0] == "slack" {
			ids = append(ids, parts[2])
		}
	}
	return ids
}

func (l *live) members(ctx context.Context, channel string) ([]string, error) {
	return l.rosters.get("members "+channel, l.b.o.Now(), freshMembers, func() (all []string, err error) {
		cursor := ""
		for range maxMemberPages {
			err := l.wire.Call(ctx, func(ctx context.Context) error {
				page, next, err := l.wire.API.GetUsersInConversationContext(ctx, &slackgo.GetUsersInConversationParameters{ChannelID: channel, Cursor: cursor, Limit: 1000})
				all, cursor = append(all, page...), next
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("asking Slack who is in %s: %w", channel, err)
			}
			if cursor == "" {
				break
			}
		}
		return all, nil
	})
}

func (l *live) workspaceAdmins(ctx context.Context) (ids []string, err error) {
	var all []slackgo.User
	err = l.wire.Call(ctx, func(ctx context.Context) (err error) {
		all, err = l.wire.API.GetUsersContext(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack for the workspace's admins: %w", err)
	}
	for _, u := range all {
		if (u.IsAdmin || u.IsOwner || u.IsPrimaryOwner) && !u.Deleted && !u.IsBot {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

// channelForm is the id of a channel, not of somebody's own conversation.
var channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{1,31}$`)

// CheckChannel implements [bots.ChannelDirectory].
func (b *Bot) CheckChannel(id string) error {
	if channelForm.MatchString(id) {
		return nil
	}
	return errors.New("write it as slack:TEAM/CHANNEL, or its id alone, such as C0123456; Slack shows it at the end of the channel's details")
}

// ChannelName is how people there call a channel. ErrNotFound where nize sees no
// channel of that id, since it is in none or a private one.
func (b *Bot) ChannelName(ctx context.Context, at store.Address) (string, error) {
	l, err := b.at(ctx, at)
	if err != nil {
		return "", err
	}
	names, err := l.rosters.get("name "+at.Channel, b.o.Now(), keepPerson, func() ([]string, error) {
		var c *slackgo.Channel
		err := l.wire.Call(ctx, func(ctx context.Context) (err error) {
			c, err = l.wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: at.Channel})
			return err
		})
		switch {
		case wire.Code(err) == "channel_not_found":
			return nil, fmt.Errorf("channel %s: %w on Slack, or it is a private one without nize: invite it there first", at.Channel, store.ErrNotFound)
		case err != nil:
			return nil, fmt.Errorf("asking Slack for the name of %s: %w", at.Channel, err)
		}
		return []string{c.Name}, nil
	})
	if err != nil {
		return "", err
	}
	return names[0], nil
}

func (l *live) creator(ctx context.Context, channel string) (ids []string, err error) {
	err = l.wire.Call(ctx, func(ctx context.Context) error {
		c, err := l.wire.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
		if err == nil && c.Creator != "" {
			ids = []string{c.Creator}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("asking Slack who made %s: %w", channel, err)
	}
	for _, id := range ids {
		p, err := l.look(ctx, id, keepPerson)
		if err != nil {
			return nil, err
		}
		if !p.member {
			return []string{}, nil
		}
	}
	return ids, nil
}
