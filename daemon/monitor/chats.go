package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/alert"
	"nize/store"
)

// Chats sends alerts to a chat: to a channel, or to each admin in private.
type Chats struct {
	Bots  *bots.Registry
	Users interface {
		ListUsers(ctx context.Context) ([]store.User, error)
		GetUser(ctx context.Context, id string) (store.User, error)
	}
	Config store.Config // for the system's language
}

// chatAlerts is an alert.Notifier. Its handle contains every message that was sent, so that
// all of them can be edited when the incident ends.
type chatAlerts struct {
	chats  *Chats
	places func(ctx context.Context) ([]store.Address, error) // the channels to notify
}

// Notify implements alert.Notifier.
func (c chatAlerts) Notify(ctx context.Context, i store.Incident) (string, error) {
	places, err := c.places(ctx)
	if err != nil {
		return i.Delivery.Handle, err
	}
	stands := map[string]string{} // the message in each channel
	for place := range strings.FieldsSeq(i.Delivery.Handle) {
		channel, message, _ := strings.Cut(place, "/")
		stands[channel] = message
	}
	var failed error
	var handles []string
	for _, at := range places {
		message, err := stands[at.Channel], errors.New("alerts can't be sent there")
		if on, ok := bots.On[bots.Announcer](c.chats.Bots, at.Surface); ok {
			message, err = on.Tell(ctx, bots.Announcement{
				Channel: at.Channel, Message: message, ID: i.ID, Since: i.Opened, Text: alertText(i, phrases.For(store.Language(c.chats.Config, "", ""))),
			})
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("notifying %s: %w", at.Channel, err))
			message = stands[at.Channel]
		}
		if message != "" {
			handles = append(handles, at.Channel+"/"+message)
		}
	}
	if len(handles) > 0 && len(places) > 1 {
		failed = nil // at least one delivery succeeded
	}
	return strings.Join(handles, " "), failed
}

// alertText returns the text of an incident for admins.
func alertText(i store.Incident, words phrases.Catalogue) string {
	title := words.Text(i.Title)
	head := words.Say(phrases.AlertOpen, title)
	if i.State == store.IncidentRecovered { // its text is in the present tense, so it is omitted after recovery
		return words.Say(phrases.AlertOver, title) + "\n" + words.Text(alert.Over(i))
	}
	lines := []string{head}
	if i.Text != (store.Text{}) {
		lines = append(lines, words.Text(i.Text))
	}
	if i.Cure != "" {
		lines = append(lines, words.Say(phrases.AlertCure, i.Cure))
	}
	return strings.Join(lines, "\n")
}

// Destination returns the channel that alerts.to names or, if it is empty, the admins on
// the enabled platforms. It returns nil if there is neither.
func (c *Chats) Destination(to string) *Destination {
	name, channel, _ := strings.Cut(to, ":")
	if on, ok := bots.On[bots.ChannelDirectory](c.Bots, store.Surface(name)); ok && on.CheckChannel(channel) == nil {
		places := func(context.Context) ([]store.Address, error) {
			return []store.Address{{Surface: store.Surface(name), Channel: channel}}, nil
		}
		return &Destination{Notifier: chatAlerts{c, places}, Name: to, Chat: true}
	}
	on := slices.DeleteFunc(slices.Clone(c.Bots.All()), func(b bots.Bot) bool {
		_, ok := b.(bots.Announcer)
		return !ok || b.Health().State == bots.Stopped
	})
	if to != "" || len(on) == 0 {
		return nil
	}
	places := func(ctx context.Context) ([]store.Address, error) { return c.admins(ctx, on) }
	return &Destination{Notifier: chatAlerts{c, places}, Name: "admins on " + titles(on), Chat: true, Unclaimed: func(ctx context.Context) (store.Surface, error) { return c.unclaimed(ctx, on) }}
}

// unclaimed returns the first platform if none of the platforms has an admin.
func (c *Chats) unclaimed(ctx context.Context, on []bots.Bot) (store.Surface, error) {
	users, err := c.Users.ListUsers(ctx)
	if err != nil {
		return "", fmt.Errorf("listing users: %w", err)
	}
	for _, u := range users {
		for _, identity := range u.Identities {
			surface, _, _ := strings.Cut(identity, ":")
			if u.CanAdminister() && slices.ContainsFunc(on, func(b bots.Bot) bool { return string(b.Surface()) == surface }) {
				return "", nil
			}
		}
	}
	return on[0].Surface(), nil
}

func titles(list []bots.Bot) string {
	names := make([]string, len(list))
	for i, b := range list {
		names[i] = b.Title()
	}
	return strings.Join(names, ", ")
}

// admins returns the private conversations of the admins on platforms.
func (c *Chats) admins(ctx context.Context, on []bots.Bot) ([]store.Address, error) {
	users, err := c.Users.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	var places []store.Address
	for _, bot := range on {
		courier, _ := bot.(bots.Announcer)
		for _, u := range users {
			if u.Role != store.Admin || u.State != store.Active {
				continue
			}
			at, err := courier.Direct(ctx, u)
			switch {
			case err == nil:
				places = append(places, at)
			case !errors.Is(err, store.ErrNotFound):
				return nil, err
			}
		}
	}
	if len(places) == 0 {
		return nil, fmt.Errorf("no admin is on %s: nizectl bots %s claim: %w", titles(on), on[0].Surface(), alert.ErrPermanent)
	}
	return places, nil
}

// TellPerson sends a private message to a person on a platform, or on the first that they
// use; it returns false if they use none. If the message with this id may already have been
// sent, it is not sent twice.
func (c *Chats) TellPerson(ctx context.Context, user string, at store.Surface, id string, since time.Time, text store.Text) (bool, error) {
	u, err := c.Users.GetUser(ctx, user)
	if errors.Is(err, store.ErrNotFound) || err == nil && u.State != store.Active {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading a user: %w", err)
	}
	on := slices.DeleteFunc(slices.Clone(c.Bots.All()), func(b bots.Bot) bool {
		_, ok := b.(bots.Announcer)
		return !ok || !slices.ContainsFunc(u.Identities, func(i string) bool { return strings.HasPrefix(i, string(b.Surface())+":") })
	})
	slices.SortStableFunc(on, func(a, b bots.Bot) int { return cmp.Compare(rank(a, at), rank(b, at)) })
	words := phrases.For(store.Language(c.Config, user, ""))
	var failed error
	for _, bot := range on {
		way, _ := bot.(bots.Announcer)
		place, err := way.Direct(ctx, u)
		if err == nil {
			_, err = way.Tell(ctx, bots.Announcement{Channel: place.Channel, ID: id, Since: since, Text: words.Text(text)})
		}
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrNotFound) && bot.Health().State != bots.Stopped {
			failed = errors.Join(failed, fmt.Errorf("sending a message on %s: %w", bot.Title(), err))
		}
	}
	return false, failed
}

// TellOwners notifies the people whom an incident concerns in private, except for admins,
// who are notified of every incident.
func (c *Chats) TellOwners(ctx context.Context, i store.Incident) (err error) {
	for _, id := range i.Users {
		u, readErr := c.Users.GetUser(ctx, id)
		if readErr != nil || u.Role == store.Admin && c.Config.Get("", "alerts.to") == "" {
			continue // removed in the meantime, or already notified
		}
		words := phrases.For(store.Language(c.Config, id, ""))
		_, told := c.TellPerson(ctx, id, "", i.ID+"/"+id, i.Opened, store.Plain(alertText(i, words)))
		err = errors.Join(err, told)
	}
	return err
}

// rank returns 0 for the preferred platform.
func rank(b bots.Bot, at store.Surface) int {
	if b.Surface() == at {
		return 0
	}
	return 1
}
