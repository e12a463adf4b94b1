package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// channelKeys are what can be set of a channel.
var channelKeys = []string{"agent", "model", "mode"}

func isChannelWords(words string) bool {
	f := strings.Fields(words)
	return len(f) == 0 || len(f) == 2 && slices.Contains(channelKeys, f[0])
}

// sayChannel shows how nize is set up in a channel; its admins change it, for
// conversations that begin afterwards.
func (d *Daemon) sayChannel(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	place := a.At.Place()
	if place == "" {
		return bots.Said(w.Say(phrases.ChannelNone)), nil
	}
	f := strings.Fields(a.Words)
	if len(f) == 0 {
		c, err := d.db.GetChannel(ctx, place)
		if err != nil {
			return bots.Answer{}, fmt.Errorf("reading the channel: %w", err)
		}
		named := func(value string) string {
			if value == "" {
				return w.Say(phrases.TheDefault)
			}
			return value
		}
		mode := c.Mode
		if mode == "" {
			mode = store.ModeFollow
		}
		lines := []string{
			"- " + w.Say(phrases.SettingLine, "agent", named(c.Agent)), "- " + w.Say(phrases.SettingLine, "model", named(c.Model)),
			"- " + w.Say(phrases.SettingLine, "mode", mode),
		}
		return bots.Said(shown(w, w.Say(phrases.ChannelHead), lines)), nil
	}
	if !d.administers(ctx, a) {
		return bots.Said(w.Say(phrases.ChannelNotYours)), nil
	}
	if len(f) != 2 {
		return bots.Answer{}, fmt.Errorf("%w: write channel agent|model|mode VALUE", store.ErrInvalid)
	}
	edit, err := d.channelEdit(ctx, a, f[0], f[1])
	if err != nil {
		return bots.Answer{}, err
	}
	if _, err := d.db.EditChannel(ctx, a.By, place, edit); err != nil {
		return bots.Answer{}, fmt.Errorf("changing the channel: %w", err)
	}
	return bots.Said(w.Say(phrases.ChannelSet, f[0], f[1])), nil
}

// administers says whether a person may set the channel up: nize's admins and
// the channel's. What can't be looked up is a no.
func (d *Daemon) administers(ctx context.Context, a bots.Asked) bool {
	if a.By.IsAdmin() {
		return true
	}
	admins, err := channels{d}.Admins(ctx, a.At)
	if err != nil {
		d.log.Warn("reading who administers a channel; nobody does", "channel", a.At.Channel, "err", err)
		return false
	}
	return slices.Contains(admins, a.By.User)
}

// channelEdit checks a value: only what the person may use themselves.
func (d *Daemon) channelEdit(ctx context.Context, a bots.Asked, key, value string) (func(*store.Channel), error) {
	set := value
	if set == "default" {
		set = ""
	}
	switch key {
	case "agent":
		if set != "" {
			if _, err := d.agent(ctx, a.By, set); err != nil {
				return nil, err
			}
		}
		return func(c *store.Channel) { c.Agent = set }, nil
	case "model":
		if set != "" {
			names, err := d.modelsFor(ctx, a.By)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(names, func(m store.ModelName) bool { return m.Name == set }) {
				return nil, fmt.Errorf("model %q %w", set, store.ErrNotFound)
			}
		}
		return func(c *store.Channel) { c.Model = set }, nil
	case "mode":
		if set != "" && !slices.Contains(store.Modes, set) {
			return nil, fmt.Errorf("%w mode %q: use %s", store.ErrInvalid, value, strings.Join(store.Modes, ", "))
		}
		return func(c *store.Channel) { c.Mode = set }, nil
	}
	return nil, store.Unknown("setting of a channel", key, channelKeys)
}
