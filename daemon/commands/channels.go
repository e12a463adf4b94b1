package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// channelKeys are the settings of a channel.
var channelKeys = []string{"agent", "model", "mode", "servers", "approvers", "language", "admins"}

const (
	asDefault  = "default" // restores a default
	noServers  = "none"
	showingAll = "show" // instead of the dialog
)

// isChannelWords reports whether the words after a mention are the channel command, as
// opposed to a sentence that begins the same way.
func isChannelWords(words string) bool {
	key, value, _ := strings.Cut(words, " ")
	value = strings.TrimSpace(value)
	switch {
	case words == "" || words == showingAll:
		return true
	case !slices.Contains(channelKeys, key) || value == "":
		return false
	case key == "approvers":
		_, err := store.ParsePolicy(value)
		return err == nil || value == asDefault || strings.Contains(value, ":") || value[0] >= '0' && value[0] <= '9' // meant as a value
	}
	return !slices.ContainsFunc(parts(value), func(w string) bool { return strings.ContainsAny(w, " \n") })
}

// parts splits a comma-separated list of names.
func parts(value string) []string {
	out := []string{}
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// sayChannel shows a channel's settings; the channel's admins can change them.
func (cmd *Commands) sayChannel(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !a.At.Shared() {
		return bots.Said(w.Say(phrases.ChannelNone)), nil
	}
	key, value, _ := strings.Cut(a.Words, " ")
	value = strings.TrimSpace(value)
	if key == "" || a.Words == showingAll {
		return cmd.showChannel(ctx, a)
	}
	if !cmd.Channels.Members.Administers(ctx, a.By, a.At) {
		return bots.Said(w.Say(phrases.ChannelNotYours)), nil
	}
	if value == "" {
		if !slices.Contains(channelKeys, key) {
			return bots.Answer{}, store.Unknown("setting of a channel", key, channelKeys)
		}
		return bots.Said(w.Say(phrases.ChannelUsage)), nil
	}
	var set api.SetChannelRequest
	if err := put(&set, key, value); err != nil {
		return bots.Answer{}, err
	}
	if err := cmd.Channels.SetHere(ctx, a.By, a.At, set); err != nil {
		return bots.Answer{}, err
	}
	if value == asDefault {
		value = w.Say(phrases.TheDefault)
	}
	return bots.Said(w.Say(phrases.ChannelSet, key, bots.Brief(value, 200))), nil
}

// put parses one value into a change.
func put(set *api.SetChannelRequest, key, value string) error {
	if value == asDefault {
		value = ""
	}
	list := parts(value)
	switch key {
	case "agent":
		set.Agent = &value
	case "model":
		set.Model = &value
	case "mode":
		set.Mode = &value
	case "language":
		set.Language = &value
	case "approvers":
		p := store.Policy(value)
		set.Approvers = &p
	case "admins":
		set.Admins = &list
	case "servers":
		set.AllServers = len(list) == 0
		switch {
		case set.AllServers:
			set.Servers = nil
		case value == noServers:
			set.Servers = &[]string{}
		default:
			set.Servers = &list
		}
	default:
		return store.Unknown("setting of a channel", key, channelKeys)
	}
	return nil
}

// showChannel shows the channel's settings. Servers that the reader can't see are counted
// but not named.
func (cmd *Commands) showChannel(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	c, err := cmd.Channels.View(ctx, a.At)
	if err != nil {
		return bots.Answer{}, err
	}
	servers, err := cmd.shownServers(ctx, a, c.Channel)
	if err != nil {
		return bots.Answer{}, err
	}
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	usual := w.Say(phrases.TheDefault)
	var lines []string
	for _, l := range [][2]string{
		{"agent", or(c.Agent, usual)}, {"model", or(c.Model, usual)}, {"mode", c.EffectiveMode()}, {"servers", servers},
		{"approvers", or(c.WhoPress, usual)}, {"language", or(c.Language, w.Say(phrases.ChannelStarter))},
		{"admins", or(c.WhoAdmins, usual)},
	} {
		lines = append(lines, "- "+w.Say(phrases.SettingLine, l[0], bots.Brief(l[1], 300)))
	}
	text := bots.FirstLines(w, w.Say(phrases.ChannelHead), lines)
	if note := cmd.approversNote(w, c.Channel); note != "" {
		text += "\n" + note
	}
	return bots.Said(text + "\n" + w.Say(phrases.ChannelAbout, "`"+placeText(c.Place)+"`")), nil
}

// placeText returns a place in the form that people write.
func placeText(place string) string {
	at, err := store.ParsePlace(place)
	if err != nil {
		return place
	}
	return string(at.Surface) + ":" + at.Team + "/" + at.Channel
}

// approversNote returns a note on how the channel's approvers combine with other approval
// rules, "" if it has none.
func (cmd *Commands) approversNote(w phrases.Catalogue, c store.Channel) string {
	switch {
	case c.Approvers == "":
		return ""
	case cmd.Settings.Config.Get("", "approvals.approvers") != "":
		return w.Say(phrases.ChannelOverAll)
	}
	return w.Say(phrases.ChannelOver)
}

func (cmd *Commands) shownServers(ctx context.Context, a bots.Asked, c store.Channel) (string, error) {
	w := phrases.For(a.Locale)
	if c.Servers == nil {
		return w.Say(phrases.TheDefault), nil
	}
	seen, err := cmd.Servers.Names(ctx, a.By)
	if err != nil {
		return "", err
	}
	names := slices.DeleteFunc(slices.Clone(c.Servers), func(s string) bool { return !slices.Contains(seen, s) })
	if hidden := len(c.Servers) - len(names); hidden > 0 {
		names = append(names, w.Say(phrases.ChannelMore, strconv.Itoa(hidden)))
	}
	if len(names) == 0 {
		return w.Say(phrases.ChannelNoServer), nil
	}
	return strings.Join(names, ", "), nil
}
