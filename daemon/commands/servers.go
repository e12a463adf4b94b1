package commands

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/settings"
	"nize/store"
)

// The commands for the servers that a person may use and those that they don't want: in a
// conversation they apply to that one, elsewhere to everything done for the person.

// isServerWords accepts one name, or several with commas; other words are a sentence.
func isServerWords(words string) bool {
	f := strings.Fields(words)
	switch {
	case len(f) == 0, len(f) == 1 && f[0] == "default":
		return true
	}
	return len(f) == 2 && (f[0] == "allow" || f[0] == "deny") && !slices.ContainsFunc(parts(f[1]), func(s string) bool { return store.CheckSlug(s) != nil })
}

func (cmd *Commands) sayServers(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f := strings.Fields(a.Words)
	switch {
	case len(f) == 0:
		return cmd.listMine(ctx, a)
	case len(f) == 1 && f[0] == "default":
		if a.Thread != "" {
			return cmd.narrow(ctx, a, func(*store.Thread) []string { return nil })
		}
		if _, err := cmd.setOwn(ctx, a.By, settings.KeyDenied, ""); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.ServersAll)), nil
	case len(f) != 2 || f[0] != "allow" && f[0] != "deny" || len(parts(f[1])) == 0:
		return bots.Answer{}, store.Errorf("%w: write servers, servers allow NAME, servers deny NAME, or servers default", store.ErrInvalid)
	}
	deny, names := f[0] == "deny", parts(f[1])
	if a.Thread != "" {
		return cmd.narrowBy(ctx, a, names, deny)
	}
	own, err := store.ReadConfig(ctx, cmd.Settings.Config, a.By.User)
	if err != nil {
		return bots.Answer{}, err
	}
	for _, name := range names { // a removed server may be taken off the list
		if deny || !slices.Contains(store.GetList(own, a.By.User, settings.KeyDenied), name) {
			if err := cmd.Servers.Check(ctx, a.By, name); err != nil {
				return bots.Answer{}, err
			}
		}
	}
	if err := cmd.Settings.Defaults.Deny(ctx, a.By, names, deny); err != nil {
		return bots.Answer{}, err
	}
	said := phrases.ServerOn
	if deny {
		said = phrases.ServerOff
	}
	return bots.Said(w.Say(said, bots.Brief(strings.Join(names, ", "), 200))), nil
}

// listMine lists the servers that a person may use, and which of them they turned off.
func (cmd *Commands) listMine(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	servers, err := cmd.Servers.List(ctx, a.By, api.Empty{})
	if err != nil {
		return bots.Answer{}, err
	}
	scope, err := cmd.scopeAt(ctx, a)
	if err != nil {
		return bots.Answer{}, err
	}
	channel, err := cmd.Channels.View(ctx, a.At)
	if err != nil {
		return bots.Answer{}, err
	}
	own, err := store.ReadConfig(ctx, cmd.Settings.Config, a.By.User)
	if err != nil {
		return bots.Answer{}, err
	}
	off := store.GetList(own, a.By.User, settings.KeyDenied)
	var lines []string
	for _, s := range servers.Items {
		if s.Server.Disabled {
			continue
		}
		state := w.Say(phrases.StateNotConnected)
		if s.State == "ready" || s.State == "idle" {
			state = w.Say(phrases.StateConnected)
		}
		switch {
		case slices.Contains(off, s.Name):
			state = w.Say(phrases.StateOff)
		case !channel.AllowsServer(s.Name):
			state = w.Say(phrases.StateOffChannel)
		case len(scope.Servers) > 0 && !slices.Contains(scope.Servers, s.Name):
			state = w.Say(phrases.StateOffHere)
		}
		lines = append(lines, "- "+w.Say(phrases.ServerLine, s.Name, state, strconv.Itoa(s.ToolCount)))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.ServersNone)), nil
	}
	return bots.Said(strings.TrimSpace(bots.FirstLines(w, "", lines)) + "\n" + w.Say(phrases.ServersChoose)), nil
}

// narrowBy removes servers from a conversation, or adds them again.
func (cmd *Commands) narrowBy(ctx context.Context, a bots.Asked, names []string, deny bool) (bots.Answer, error) {
	servers, err := cmd.Servers.UsableBy(ctx, a.By)
	if err != nil {
		return bots.Answer{}, err
	}
	var all []string
	for _, s := range servers {
		all = append(all, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return bots.Answer{}, store.Unknown("server", name, all)
		}
	}
	th, err := cmd.Conversations.Find(ctx, a.Thread)
	if err != nil {
		return bots.Answer{}, err
	}
	next := func(th *store.Thread) []string {
		now := slices.Clone(th.Servers)
		switch {
		case deny && len(now) == 0:
			now = slices.Clone(all)
		case !deny && len(now) == 0:
			return nil // all are allowed
		}
		now = slices.DeleteFunc(now, func(s string) bool { return slices.Contains(names, s) })
		if !deny {
			now = append(now, names...)
		}
		slices.Sort(now)
		return now
	}
	if deny && len(next(&th)) == 0 { // an empty list would allow all
		return bots.Answer{}, store.Errorf("%w: one server stays, or nothing could be asked for here", store.ErrInvalid)
	}
	return cmd.narrow(ctx, a, next)
}

// narrow changes which servers a conversation may use.
func (cmd *Commands) narrow(ctx context.Context, a bots.Asked, next func(*store.Thread) []string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	var now []string
	told, err := cmd.choose(ctx, a, func(th *store.Thread) {
		now = next(th)
		th.Servers = now
	})
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if len(now) == 0 {
		return bots.Said(w.Say(phrases.HereAll)), nil
	}
	return bots.Said(w.Say(phrases.HereOnly, bots.Brief(strings.Join(now, ", "), 400))), nil
}
