package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// How nize is set up in channels: with nizectl by nize's admins, in the chat by
// those of the channel. Both ways check the same.

// placeOf reads where a channel is: NAME:TEAM/CHANNEL, NAME:TEAM:CHANNEL, or
// CHANNEL of the one team that nize is in there.
func (d *Daemon) placeOf(ctx context.Context, text string) (string, error) {
	at, err := d.channelAt(text)
	if err != nil {
		return "", err
	}
	account, err := d.db.GetBot(ctx, at.Surface)
	switch {
	case errors.Is(err, store.ErrNotFound) && at.Team == "":
		return "", fmt.Errorf("%w channel %q: there is no bot whose workspace that could be in: nizectl bots %s connect", store.ErrInvalid, at.Channel, at.Surface)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return "", fmt.Errorf("reading the bot on %s: %w", at.Surface, err)
	case err == nil && at.Team != "" && at.Team != account.Team:
		return "", store.Unknown("workspace", at.Team, []string{account.Team})
	case at.Team == "":
		at.Team = account.Team
	}
	return at.Place(), nil
}

// channelAt finds the platform that a channel is on: the one that is named, or
// the first whose channels are written like that.
func (d *Daemon) channelAt(text string) (at store.Address, err error) {
	for _, bot := range d.bots.All() {
		channels, ok := bot.(bots.ChannelDirectory)
		if !ok {
			continue
		}
		at = store.Address{Surface: bot.Surface(), Channel: text}
		rest, named := strings.CutPrefix(text, string(at.Surface)+":")
		if named {
			at.Channel = rest
			if i := strings.IndexAny(rest, ":/"); i >= 0 {
				at.Team, at.Channel = rest[:i], rest[i+1:]
			}
		}
		wrong := channels.CheckChannel(at.Channel)
		if wrong == nil {
			return at, nil
		}
		if wrong = fmt.Errorf("%w channel %q: %w", store.ErrInvalid, store.Clip(text, 80), wrong); named {
			return at, wrong
		}
		if err == nil {
			err = wrong
		}
	}
	if err == nil {
		err = fmt.Errorf("%w channel %q: no platform with channels", store.ErrInvalid, store.Clip(text, 80))
	}
	return at, err
}

func (d *Daemon) listChannels(ctx context.Context, _ store.Caller, _ *http.Request) (any, error) {
	all, err := d.db.ListChannels(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing channels: %w", err)
	}
	views := make([]api.ChannelView, len(all))
	for i, c := range all {
		if views[i], err = d.channelView(ctx, c); err != nil {
			return nil, err
		}
	}
	return items(views), nil
}

func (d *Daemon) channelView(ctx context.Context, c store.Channel) (api.ChannelView, error) {
	users, err := d.db.ListUsers(ctx)
	if err != nil {
		return api.ChannelView{}, fmt.Errorf("listing users: %w", err)
	}
	name, err := d.channelName(ctx, c.Place)
	if err != nil {
		d.log.Debug("a channel without a name", "place", c.Place, "err", err)
	}
	return api.ChannelView{Channel: c, Name: name, WhoPress: byName(users, c.Approvers), WhoAdmins: strings.Join(namesOf(users, c.Admins), ", ")}, nil
}

// namePatience bounds how long a platform is asked how a channel is called.
const namePatience = 3 * time.Second

// channelName is how people call a channel, "" while its platform is off.
func (d *Daemon) channelName(ctx context.Context, place string) (string, error) {
	at, err := store.ParsePlace(place)
	if err != nil {
		return "", err
	}
	if bot, ok := bots.On[bots.Bot](d.bots, at.Surface); !ok || bot.Health().State != bots.Connected {
		return "", nil
	}
	channels, ok := bots.On[bots.ChannelDirectory](d.bots, at.Surface)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, namePatience)
	defer cancel()
	return channels.ChannelName(ctx, at)
}

// namesOf are those listed with people's names in the place of their ids.
func namesOf(users []store.User, who []string) []string {
	out := slices.Clone(who)
	for i, w := range out {
		id, _ := strings.CutPrefix(w, "user:")
		if n := slices.IndexFunc(users, func(u store.User) bool { return u.ID == id }); n >= 0 {
			out[i] = "user:" + users[n].Name
		}
	}
	return out
}

// byName is a policy for people to read.
func byName(users []store.User, p store.Policy) string {
	if p == "" {
		return ""
	}
	a := p.Approvers()
	a.Who = namesOf(users, a.Who)
	return string(a.Policy())
}

func (d *Daemon) setChannel(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	place, err := d.placeOf(ctx, r.PathValue("place"))
	if err != nil {
		return nil, err
	}
	set, err := decode[api.SetChannel](r)
	if err != nil {
		return nil, err
	}
	edit, err := d.roomEdit(ctx, by, set)
	if err != nil {
		return nil, err
	}
	// A slip in the id would set up nothing, and nobody would notice.
	if _, err := d.channelName(ctx, place); errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	c, err := d.db.EditChannel(ctx, by, place, edit)
	if err != nil {
		return nil, err
	}
	return d.channelView(ctx, c)
}

func (d *Daemon) unsetChannel(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	place, err := d.placeOf(ctx, r.PathValue("place"))
	if err != nil {
		return nil, err
	}
	all, err := d.db.ListChannels(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing channels: %w", err)
	}
	if !slices.ContainsFunc(all, func(c store.Channel) bool { return c.Place == place }) {
		places := make([]string, len(all))
		for i, c := range all {
			places[i] = c.Place
		}
		return nil, store.Unknown("channel", place, places)
	}
	_, err = d.db.EditChannel(ctx, by, place, func(c *store.Channel) { *c = store.Channel{} })
	if err != nil {
		return nil, err
	}
	return nil, nil
}

// roomEdit checks what somebody wants of a channel: nothing that they may not
// use themselves.
func (d *Daemon) roomEdit(ctx context.Context, by store.Caller, set api.SetChannel) (func(*store.Channel), error) {
	if set.Agent != nil && *set.Agent != "" {
		if _, err := d.ops.agents.Find(ctx, by, *set.Agent); err != nil {
			return nil, err
		}
	}
	if set.Model != nil && *set.Model != "" {
		if err := d.ops.models.Check(ctx, by, *set.Model); err != nil {
			return nil, err
		}
	}
	if set.Mode != nil {
		if err := oneOf("mode", *set.Mode, store.Modes); err != nil {
			return nil, err
		}
	}
	if set.Language != nil {
		if err := oneOf("language", *set.Language, languages()); err != nil {
			return nil, err
		}
	}
	servers, err := d.roomServers(ctx, by, set)
	if err != nil {
		return nil, err
	}
	if set.Approvers != nil {
		p, err := d.roomApprovers(ctx, by, *set.Approvers)
		if err != nil {
			return nil, err
		}
		set.Approvers = &p
	}
	if set.Admins != nil {
		if !by.IsAdmin() {
			return nil, fmt.Errorf("%w: nize's admins say who else administers a channel", store.ErrRefused)
		}
		if err := (store.Channel{Admins: *set.Admins}).Check(); err != nil {
			return nil, err
		}
		list, err := d.directory.Audience(ctx, by, *set.Admins)
		if err != nil {
			return nil, err
		}
		set.Admins = &list
	}
	edit := func(c *store.Channel) {
		apply(&c.Agent, set.Agent)
		apply(&c.Model, set.Model)
		apply(&c.Mode, set.Mode)
		apply(&c.Approvers, set.Approvers)
		apply(&c.Language, set.Language)
		apply(&c.Admins, set.Admins)
		servers(c)
	}
	var alone store.Channel // the rules of the store, before anything is stored
	edit(&alone)
	return edit, alone.Check()
}

// oneOf refuses a value that is none of those; "" is the default.
func oneOf(what, value string, of []string) error {
	if value == "" || slices.Contains(of, value) {
		return nil
	}
	near := ""
	if n := store.Nearest(value, of); n != "" {
		near = "; did you mean " + n + "?"
	}
	return fmt.Errorf("%w %s %q: use %s%s", store.ErrInvalid, what, store.Clip(value, 80), strings.Join(of, ", "), near)
}

// languages are those that nize speaks.
func languages() []string {
	k, err := store.FindKey("language")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.Choices), func(c string) bool { return c == store.Auto })
}

// roomServers is how the list of servers changes. Servers that the caller
// can't see stay in it: they are not theirs to take out.
func (d *Daemon) roomServers(ctx context.Context, by store.Caller, set api.SetChannel) (func(*store.Channel), error) {
	switch {
	case set.AllServers && set.Servers != nil:
		return nil, fmt.Errorf("%w servers: some of them, or the default, not both", store.ErrInvalid)
	case set.AllServers:
		return func(c *store.Channel) { c.Servers = nil }, nil
	case set.Servers == nil:
		return func(*store.Channel) {}, nil
	}
	seen, err := d.serversFor(ctx, by)
	if err != nil {
		return nil, err
	}
	list := []string{}
	for _, name := range *set.Servers {
		if !slices.Contains(seen, name) {
			return nil, store.Unknown("server", name, seen)
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return func(c *store.Channel) {
		kept := slices.DeleteFunc(slices.Clone(c.Servers), func(s string) bool { return slices.Contains(seen, s) })
		c.Servers = append(kept, list...)
		if by.IsAdmin() || c.Servers == nil {
			c.Servers = list
		}
		slices.Sort(c.Servers)
	}, nil
}

// serversFor names the servers that the caller may know of.
func (d *Daemon) serversFor(ctx context.Context, by store.Caller) ([]string, error) {
	all, err := d.db.ListServers(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing servers: %w", err)
	}
	groups := d.directory.GroupsOf(ctx, by)
	names := []string{}
	for _, s := range all {
		if s.SharedWith(by, groups) {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// roomApprovers checks a policy. Who is no admin of nize's is not told names of
// people and groups that come near.
func (d *Daemon) roomApprovers(ctx context.Context, by store.Caller, p store.Policy) (store.Policy, error) {
	p, err := d.directory.Approvers(ctx, p)
	if err != nil && errors.Is(err, store.ErrNotFound) && !by.IsAdmin() {
		return "", fmt.Errorf("%w approvers: they name somebody, or a group, that is not there", store.ErrInvalid)
	}
	return p, err
}

func apply[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}
