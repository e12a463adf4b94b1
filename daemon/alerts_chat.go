package daemon

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"nize/bots/phrases"
	"nize/bots/slack"
	"nize/daemon/alert"
	"nize/daemon/monitor"
	"nize/store"
)

// Alerts in a chat: in a channel, or to each admin in private. The
// handle names every message that was sent, so that all of them are edited
// when it is over.

// slackChannel is the form of alerts.to that names a channel of Slack's.
var slackChannel = regexp.MustCompile(`^slack:([CG][A-Z0-9]{1,31})$`)

// chatAlerts is an alert.Notifier.
type chatAlerts struct {
	bot    *slack.Bot
	places func(ctx context.Context) ([]string, error) // the channels that are told
	words  func() phrases.Catalogue                    // the system's language
}

// Notify implements alert.Notifier.
func (c chatAlerts) Notify(ctx context.Context, i store.Incident) (string, error) {
	channels, err := c.places(ctx)
	if err != nil {
		return i.Delivery.Handle, err
	}
	stands := map[string]string{}
	for place := range strings.FieldsSeq(i.Delivery.Handle) {
		channel, ts, _ := strings.Cut(place, "/")
		stands[channel] = ts
	}
	var failed error
	var handles []string
	for _, channel := range channels {
		ts, err := c.bot.Tell(ctx, channel, stands[channel], alertText(i, c.words()))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("telling %s: %w", channel, err))
			ts = stands[channel]
		}
		if ts != "" {
			handles = append(handles, channel+"/"+ts)
		}
	}
	if len(handles) > 0 && len(channels) > 1 {
		failed = nil // somebody knows
	}
	return strings.Join(handles, " "), failed
}

// alertText is an incident as admins read it.
func alertText(i store.Incident, words phrases.Catalogue) string {
	title := words.Translate(i.Title)
	head := words.Say(phrases.AlertOpen, title)
	if i.State == store.IncidentRecovered {
		head = words.Say(phrases.AlertOver, title)
	}
	lines := []string{head}
	if i.Text != "" {
		lines = append(lines, words.Translate(i.Text))
	}
	if i.Cure != "" && i.State != store.IncidentRecovered {
		lines = append(lines, words.Say(phrases.AlertCure, i.Cure))
	}
	return strings.Join(lines, "\n")
}

// chatDestination is where alerts go in a chat: the channel that alerts.to
// names, or, where that names nothing, the admins on Slack. Nil for neither.
func (d *Daemon) chatDestination(to string) *monitor.Destination {
	if m := slackChannel.FindStringSubmatch(to); m != nil {
		places := func(context.Context) ([]string, error) { return []string{m[1]}, nil }
		return &monitor.Destination{Notifier: chatAlerts{d.slack, places, d.words}, Name: to}
	}
	if to != "" || d.slack.Health().State == slack.Off {
		return nil
	}
	return &monitor.Destination{Notifier: chatAlerts{d.slack, d.adminsInPrivate, d.words}, Name: "admins on Slack"}
}

// words are nize's own where nobody in particular reads them.
func (d *Daemon) words() phrases.Catalogue { return phrases.For(store.Language(d.config, "", "")) }

// adminsInPrivate are the private conversations of the admins on Slack.
func (d *Daemon) adminsInPrivate(ctx context.Context) ([]string, error) {
	users, err := d.db.ListUsers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	var channels []string
	for _, u := range users {
		if u.Role != store.Admin || u.State != store.Active {
			continue
		}
		at, err := d.slack.Direct(ctx, u)
		switch {
		case err == nil:
			channels = append(channels, at.Channel)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	if len(channels) == 0 {
		return nil, fmt.Errorf("no admin is on Slack: nizectl bots slack claim: %w", alert.ErrPermanent)
	}
	return channels, nil
}
