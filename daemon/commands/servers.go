package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/control"
	"nize/daemon/settings"
	"nize/store"
)

// Which servers somebody may use, and which of them they want:
// in a conversation for it alone, elsewhere for everything that is done for
// them.

// isServerWords takes one name, or several with commas: other words are a
// sentence.
func isServerWords(words string) bool {
	f := strings.Fields(words)
	switch {
	case len(f) == 0, len(f) == 1 && f[0] == "default":
		return true
	}
	return len(f) == 2 && (f[0] == "allow" || f[0] == "deny") && !slices.ContainsFunc(parts(f[1]), func(s string) bool { return store.CheckSlug(s) != nil })
}

// usableServers lists the enabled servers that somebody may use, by name.
func (d *Daemon) usableServers(ctx context.Context, by store.Caller) ([]store.Server, error) {
	servers, err := d.db.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	return slices.DeleteFunc(servers, func(s store.Server) bool { return !s.SharedWith(by, groups) || s.Disabled }), nil
}

func (d *Daemon) sayServers(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f := strings.Fields(a.Words)
	switch {
	case len(f) == 0:
		return d.listMine(ctx, a)
	case len(f) == 1 && f[0] == "default":
		if a.Thread != "" {
			return d.narrow(ctx, a, func(*store.Thread) []string { return nil })
		}
		if _, err := d.config.Put(ctx, a.By, a.By.User, settings.KeyDenied, ""); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.ServersAll)), nil
	case len(f) != 2 || f[0] != "allow" && f[0] != "deny" || len(parts(f[1])) == 0:
		return bots.Answer{}, fmt.Errorf("%w: write servers, servers allow NAME, servers deny NAME, or servers default", store.ErrInvalid)
	}
	deny, names := f[0] == "deny", parts(f[1])
	if a.Thread != "" {
		return d.narrowBy(ctx, a, names, deny)
	}
	for _, name := range names { // one that is gone may be allowed again
		if deny || !slices.Contains(store.GetList(d.config, a.By.User, settings.KeyDenied), name) {
			if err := d.ops.servers.Check(ctx, a.By, name); err != nil {
				return bots.Answer{}, err
			}
		}
	}
	if err := d.defaults.Deny(ctx, a.By, names, deny); err != nil {
		return bots.Answer{}, err
	}
	said := phrases.ServerOn
	if deny {
		said = phrases.ServerOff
	}
	return bots.Said(w.Say(said, brief(strings.Join(names, ", "), 200))), nil
}

// listMine shows the servers that are there for somebody, and which they
// switched off.
func (d *Daemon) listMine(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	servers, err := d.usableServers(ctx, a.By)
	if err != nil {
		return bots.Answer{}, err
	}
	tallies, err := d.gateway.Catalog.CountTools(ctx)
	if err != nil {
		return bots.Answer{}, fmt.Errorf("counting tools: %w", err)
	}
	scope, err := d.scopeAt(ctx, a)
	if err != nil {
		return bots.Answer{}, err
	}
	room, err := d.db.GetChannel(ctx, a.At.Place())
	if err != nil {
		return bots.Answer{}, fmt.Errorf("reading the channel: %w", err)
	}
	health, off := d.ops.servers.States(), store.GetList(d.config, a.By.User, settings.KeyDenied)
	var lines []string
	for _, s := range servers {
		h := control.HealthOf(s, health, tallies[s.Name])
		state := w.Say(phrases.StateNotConnected)
		if h.State == "ready" || h.State == "idle" {
			state = w.Say(phrases.StateConnected)
		}
		switch {
		case slices.Contains(off, s.Name):
			state = w.Say(phrases.StateOff)
		case !room.AllowsServer(s.Name):
			state = w.Say(phrases.StateOffChannel)
		case len(scope.Servers) > 0 && !slices.Contains(scope.Servers, s.Name):
			state = w.Say(phrases.StateOffHere)
		}
		lines = append(lines, "- "+w.Say(phrases.ServerLine, s.Name, state, strconv.Itoa(h.ToolCount)))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.ServersNone)), nil
	}
	return bots.Said(strings.TrimSpace(shown(w, "", lines)) + "\n" + w.Say(phrases.ServersChoose)), nil
}

// narrowBy takes servers out of a conversation, or back in.
func (d *Daemon) narrowBy(ctx context.Context, a bots.Asked, names []string, deny bool) (bots.Answer, error) {
	servers, err := d.usableServers(ctx, a.By)
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
	th, err := d.db.GetThread(ctx, a.Thread)
	if err != nil {
		return bots.Answer{}, fmt.Errorf("reading the conversation: %w", err)
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
	if deny && len(next(&th)) == 0 { // none would be all
		return bots.Answer{}, fmt.Errorf("%w: one server stays, or nothing could be asked for here", store.ErrInvalid)
	}
	return d.narrow(ctx, a, next)
}

// narrow changes which servers a conversation may use.
func (d *Daemon) narrow(ctx context.Context, a bots.Asked, next func(*store.Thread) []string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	var now []string
	told, err := d.choose(ctx, a, func(th *store.Thread) {
		now = next(th)
		th.Servers = now
	})
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if len(now) == 0 {
		return bots.Said(w.Say(phrases.HereAll)), nil
	}
	return bots.Said(w.Say(phrases.HereOnly, brief(strings.Join(now, ", "), 400))), nil
}
