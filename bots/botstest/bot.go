package botstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/store"
)

// What exists on the platform of a [Bot].
const (
	Token   = "memory-token" // the only valid token
	Team    = "M1"
	Channel = "hall"
	Group   = "G1" // its handle is crew
)

// BotStore is the part of the store that a [Bot] uses.
type BotStore interface {
	EnsureUser(ctx context.Context, identity, name string, role store.Role) (store.User, error)
	GetUser(ctx context.Context, id string) (store.User, error)
	ThreadAt(ctx context.Context, by store.Caller, th store.Thread) (store.Thread, bool, error)
	PutSweep(ctx context.Context, by store.Caller, s store.Sweep) error
}

// Bot is [Memory] with an account: a bots.Bot with one channel, one group and all optional
// features, for tests of the layers above platforms. People are the names of its users, who
// are all in the channel and the group.
type Bot struct {
	*Memory
	Store    BotStore
	Commands *bots.Commands
	People   []string // the first one administers the channel
	Now      func() time.Time

	mu      sync.Mutex // guards the fields below
	account *store.Bot
	told    map[string][]string // current announcements, keyed by channel
}

var (
	_ bots.Bot              = (*Bot)(nil)
	_ bots.ChannelDirectory = (*Bot)(nil)
	_ bots.GroupDirectory   = (*Bot)(nil)
	_ bots.Announcer        = (*Bot)(nil)
	_ bots.Sweeper          = (*Bot)(nil)
)

// Title implements bots.Bot.
func (b *Bot) Title() string { return "Memory" }

// Check implements bots.Bot.
func (b *Bot) Check(_ context.Context, c bots.Connection) (bots.Checked, error) {
	if len(c.Tokens) != 1 || c.Tokens[0].Reveal() != Token {
		return bots.Checked{}, fmt.Errorf("%w token: the platform takes %s alone", store.ErrInvalid, Token)
	}
	return bots.Checked{Account: store.Bot{Surface: b.Surface(), Enabled: true, Mode: "memory", Team: Team, TeamName: "Memory", User: "nize", Tokens: map[string]store.Secret{"token": c.Tokens[0]}}}, nil
}

// Use implements bots.Bot.
func (b *Bot) Use(account *store.Bot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account = account
}

// Health implements bots.Bot.
func (b *Bot) Health() bots.Health {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.account == nil {
		return bots.Health{State: bots.Stopped}
	}
	return bots.Health{State: bots.Connected}
}

// CheckChannel returns an error that explains the form of a channel id if id doesn't have
// it.
func CheckChannel(id string) error {
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz") != "" {
		return errors.New("write it in small letters")
	}
	return nil
}

// CheckChannel implements bots.ChannelDirectory.
func (b *Bot) CheckChannel(id string) error { return CheckChannel(id) }

// ChannelName implements bots.ChannelDirectory.
func (b *Bot) ChannelName(_ context.Context, at store.Address) (string, error) {
	if at.Channel != Channel {
		return "", fmt.Errorf("channel %s %w", at.Channel, store.ErrNotFound)
	}
	return "The " + Channel, nil
}

// Member implements bots.ChannelDirectory.
func (b *Bot) Member(ctx context.Context, at store.Address, user string) (bool, error) {
	name, err := b.nameOf(ctx, user)
	return at.Channel == Channel && name != "", err
}

// Admins implements bots.ChannelDirectory.
func (b *Bot) Admins(ctx context.Context, at store.Address) ([]string, error) {
	u, err := b.Store.EnsureUser(ctx, b.identity(b.People[0]), b.People[0], store.Member)
	if at.Channel != Channel || err != nil {
		return nil, err
	}
	return []string{u.ID}, nil
}

// UserGroup implements bots.GroupDirectory.
func (b *Bot) UserGroup(_ context.Context, name string) (source, handle string, err error) {
	if name != Group && name != "crew" {
		return "", "", store.Unknown("user group", name, []string{"crew"})
	}
	return b.identity(Group), "crew", nil
}

// InUserGroup implements bots.GroupDirectory.
func (b *Bot) InUserGroup(context.Context, string) ([]string, error) {
	ids := make([]string, len(b.People))
	for i, name := range b.People {
		ids[i] = b.identity(name)
	}
	return ids, nil
}

// Direct implements bots.Courier.
func (b *Bot) Direct(ctx context.Context, u store.User) (store.Address, error) {
	name, err := b.nameOf(ctx, u.ID)
	if name == "" && err == nil {
		err = fmt.Errorf("%s here: %w", u.Name, store.ErrNotFound)
	}
	return store.Address{Surface: b.Surface(), Team: Team, Channel: "to" + name, Direct: true}, err
}

// Tell implements bots.Announcer.
func (b *Bot) Tell(_ context.Context, a bots.Announcement) (string, error) {
	channel, message, text := a.Channel, a.Message, a.Text
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told == nil {
		b.told = map[string][]string{}
	}
	for i := range b.told[channel] {
		if fmt.Sprint(i) == message {
			b.told[channel][i] = text
			return message, nil
		}
	}
	b.told[channel] = append(b.told[channel], text)
	return fmt.Sprint(len(b.told[channel]) - 1), nil
}

// Told returns nize's announcements in a channel.
func (b *Bot) Told(channel string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.told[channel])
}

// Sweep implements bots.Sweeper. It finds no departed users.
func (b *Bot) Sweep() error {
	now := b.Now()
	return b.Store.PutSweep(context.Background(), store.System, store.Sweep{Surface: b.Surface(), Team: Team, Began: now, Ended: now, Checked: len(b.People)})
}

func (b *Bot) identity(name string) string { return string(b.Surface()) + ":" + Team + ":" + name }

// nameOf returns a user's name on the platform, "" if they are not on it.
func (b *Bot) nameOf(ctx context.Context, user string) (string, error) {
	u, err := b.Store.GetUser(ctx, user)
	for _, identity := range u.Identities {
		if name, ok := strings.CutPrefix(identity, b.identity("")); ok {
			return name, err
		}
	}
	return "", err
}

// by returns a person as a nize user.
func (b *Bot) by(ctx context.Context, name string) (store.Caller, error) {
	u, err := b.Store.EnsureUser(ctx, b.identity(name), name, store.Member)
	return store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: b.Surface(), Identity: b.identity(name)}, err
}

// Command runs a command in the channel and returns its reply.
func (b *Bot) Command(ctx context.Context, name, line string) (string, error) {
	by, err := b.by(ctx, name)
	if err != nil {
		return "", err
	}
	cmd, words, _, ok := b.Commands.Find(by, strings.TrimPrefix(line, "/nize "), false)
	if !ok {
		return "", fmt.Errorf("command %q: %w", line, store.ErrNotFound)
	}
	at := store.Address{Surface: b.Surface(), Team: Team, Channel: Channel}
	answer, err := b.Commands.Run(ctx, cmd, bots.Asked{By: by, At: at, Words: words, Locale: "en"})
	return answer.Text, err
}

// Ask writes a message in the channel, which begins a conversation.
func (b *Bot) Ask(ctx context.Context, name, key, text string) error {
	by, err := b.by(ctx, name)
	if err != nil {
		return err
	}
	h, err := b.running(ctx)
	if err != nil {
		return err
	}
	th, _, err := b.Store.ThreadAt(ctx, by, store.Thread{
		ID: store.NewID(b.Now()), User: by.User, Created: b.Now(), Locale: "en", Title: text,
		Address: store.Address{Surface: b.Surface(), Team: Team, Channel: Channel, Thread: key},
	})
	if err != nil {
		return err
	}
	_, err = h.Message(ctx, store.Inbound{Key: key, Thread: th.ID, By: by, Text: text})
	return err
}

// PressAs decides a call on its card.
func (b *Bot) PressAs(ctx context.Context, name, call string, d store.Decision) error {
	by, err := b.by(ctx, name)
	if err != nil {
		return err
	}
	h, err := b.running(ctx)
	if err != nil {
		return err
	}
	_, err = h.Press(ctx, by, call, d)
	return err
}
