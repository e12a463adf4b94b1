package commands

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/control"
	"nize/store"
)

// channelForm is the dialog of the channel command, for the channel's admins.
type channelForm struct{ cmd *Commands }

// Form implements bots.Filler.
func (f channelForm) Form(ctx context.Context, a bots.Asked) (*bots.Form, error) {
	cmd, w := f.cmd, phrases.For(a.Locale)
	if !a.At.Shared() || !cmd.Channels.Members.Administers(ctx, a.By, a.At) {
		return nil, nil
	}
	c, err := cmd.Channels.View(ctx, a.At)
	if err != nil {
		return nil, err
	}
	agents, err := cmd.Agents.UsableBy(ctx, a.By)
	if err != nil {
		return nil, err
	}
	models, err := cmd.Models.UsableBy(ctx, a.By)
	if err != nil {
		return nil, err
	}
	servers, err := cmd.Servers.Names(ctx, a.By)
	if err != nil {
		return nil, err
	}
	usual := bots.Option{Value: asDefault, Label: w.Say(phrases.TheDefault)}
	agentNames, modelNames := []bots.Option{usual}, []bots.Option{usual}
	for _, ag := range agents {
		agentNames = append(agentNames, bots.Option{Value: ag.ID, Label: ag.ID})
	}
	for _, m := range models {
		modelNames = append(modelNames, bots.Option{Value: m.Name, Label: m.Name})
	}
	serverNames := []bots.Option{{Value: noServers, Label: w.Say(phrases.ChannelNoServer)}}
	for _, s := range servers {
		serverNames = append(serverNames, bots.Option{Value: s, Label: s})
	}
	chosen := c.Servers
	if c.Servers != nil && len(c.Servers) == 0 {
		chosen = []string{noServers}
	}
	serversHint := w.Say(phrases.ChannelHintServer)
	if unseen := len(slices.DeleteFunc(slices.Clone(c.Servers), func(s string) bool { return slices.Contains(servers, s) })); unseen > 0 {
		serversHint += " (" + w.Say(phrases.ChannelMore, strconv.Itoa(unseen)) + ")"
	}
	hint := w.Say(phrases.ChannelHints)
	if note := cmd.approversNote(w, c.Channel); note != "" {
		hint += ". " + note
	}
	form := &bots.Form{
		Title: w.Say(phrases.ChannelTitle), About: w.Say(phrases.ChannelAbout, placeText(c.Place)),
		Fields: []bots.Field{
			{Name: "agent", Label: "agent", Value: orDefault(c.Agent), Options: agentNames},
			{Name: "model", Label: "model", Value: orDefault(c.Model), Options: modelNames},
			{Name: "mode", Label: "mode", Value: []string{c.EffectiveMode()}, Options: []bots.Option{
				{Value: store.ModeFollow, Label: w.Say(phrases.ChannelFollow)}, {Value: store.ModeMention, Label: w.Say(phrases.ChannelMention)},
				{Value: store.ModeAll, Label: w.Say(phrases.ChannelAll)}}},
			{Name: "language", Label: "language", Value: orDefault(c.Language), Options: languageOptions(w)},
			{Name: "servers", Label: "servers", Hint: serversHint, Value: chosen, Options: serverNames, Many: true},
			{Name: "approvers", Label: "approvers", Hint: hint, Value: some(c.WhoPress)},
		},
	}
	if a.By.IsAdmin() {
		form.Fields = append(form.Fields, bots.Field{Name: "admins", Label: "admins", Hint: w.Say(phrases.ChannelHintAdmins), Value: some(c.WhoAdmins)})
	}
	return form, nil
}

func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func orDefault(value string) []string {
	if value == "" {
		value = asDefault
	}
	return []string{value}
}

func languageOptions(w phrases.Catalogue) []bots.Option {
	out := []bots.Option{{Value: asDefault, Label: w.Say(phrases.ChannelStarter)}}
	for _, l := range control.Languages() {
		out = append(out, bots.Option{Value: l, Label: l})
	}
	return out
}

// changes parses the values of the dialog.
func (f channelForm) changes(values map[string][]string) (set api.SetChannelRequest, err error) {
	for name, given := range values {
		value := strings.Join(given, ",")
		if name == "servers" && len(given) > 1 && slices.Contains(given, noServers) {
			return set, store.Errorf("%w servers: %s, or some of them, not both", store.ErrInvalid, noServers)
		}
		if value == "" {
			value = asDefault
		}
		if err := put(&set, name, value); err != nil {
			return set, err
		}
	}
	return set, nil
}

// Check implements bots.Filler. It checks each field separately, so that each error is
// shown beside its field.
func (f channelForm) Check(ctx context.Context, a bots.Asked, values map[string][]string) map[string]string {
	wrong := map[string]string{}
	for name, given := range values {
		set, err := f.changes(map[string][]string{name: given})
		if err == nil {
			err = f.cmd.Channels.Check(ctx, a.By, set)
		}
		if err != nil && (errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused)) {
			wrong[name] = bots.Plain(phrases.For(a.Locale).Problem(err))
		}
	}
	return wrong
}

// Fill implements bots.Filler.
func (f channelForm) Fill(ctx context.Context, a bots.Asked, values map[string][]string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !a.At.Shared() || !f.cmd.Channels.Members.Administers(ctx, a.By, a.At) {
		return bots.Said(w.Say(phrases.ChannelNotYours)), nil
	}
	set, err := f.changes(values)
	if err != nil {
		return bots.Answer{}, err
	}
	if err := f.cmd.Channels.SetHere(ctx, a.By, a.At, set); err != nil {
		return bots.Answer{}, err
	}
	return f.cmd.showChannel(ctx, a)
}
