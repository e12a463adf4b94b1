package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/store"
)

// Channels implements the operations on channel settings. nize's admins change them with
// nizectl, and a channel's admins in the chat, with the same checks.
type Channels struct {
	Store interface {
		store.Channels
		ListUsers(ctx context.Context) ([]store.User, error)
		GetBot(ctx context.Context, at store.Surface) (store.Bot, error)
	}
	Bots      *bots.Registry
	Members   *ChannelMembers
	Directory *people.Directory
	Agents    *Agents
	Models    *Models
	Servers   *Servers
	Log       *slog.Logger
}

// Mount registers the operations.
func (c *Channels) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListChannels, c.List)
	mux.Handle(m, api.UnsetChannel, c.Unset)
	mux.Handle(m, api.SetChannel, c.Set)
}

// PlaceOf parses a channel's place: NAME:TEAM/CHANNEL, NAME:TEAM:CHANNEL, or CHANNEL if
// nize is in a single team there.
func (c *Channels) PlaceOf(ctx context.Context, text string) (string, error) {
	at, err := c.at(text)
	if err != nil {
		return "", err
	}
	account, err := c.Store.GetBot(ctx, at.Surface)
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

// at returns the platform of a channel: the one that is named, or the first one whose
// channel ids have that form.
func (c *Channels) at(text string) (at store.Address, err error) {
	for _, bot := range c.Bots.All() {
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

// List returns the channels that have settings.
func (c *Channels) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[api.ChannelView], err error) {
	all, err := c.Store.ListChannels(ctx)
	if err != nil {
		return none, fmt.Errorf("listing channels: %w", err)
	}
	views := make([]api.ChannelView, len(all))
	for i, ch := range all {
		if views[i], err = c.view(ctx, ch); err != nil {
			return none, err
		}
	}
	return api.Items(views), nil
}

// View returns a channel's settings, with people's names; if there are none, the defaults.
// It doesn't look up the channel's name.
func (c *Channels) View(ctx context.Context, at store.Address) (none api.ChannelView, err error) {
	ch, err := c.Store.GetChannel(ctx, at.Place())
	if err != nil {
		return none, fmt.Errorf("reading the channel: %w", err)
	}
	return c.named(ctx, ch)
}

func (c *Channels) named(ctx context.Context, ch store.Channel) (none api.ChannelView, err error) {
	users, err := c.Store.ListUsers(ctx)
	if err != nil {
		return none, fmt.Errorf("listing users: %w", err)
	}
	return api.ChannelView{Channel: ch, WhoPress: byName(users, ch.Approvers), WhoAdmins: strings.Join(namesOf(users, ch.Admins), ", ")}, nil
}

func (c *Channels) view(ctx context.Context, ch store.Channel) (api.ChannelView, error) {
	v, err := c.named(ctx, ch)
	if err != nil {
		return v, err
	}
	if v.Name, err = c.name(ctx, ch.Place); err != nil {
		c.Log.Debug("a channel without a name", "place", ch.Place, "err", err)
	}
	return v, nil
}

// namePatience is the timeout for looking up a channel's name on its platform.
const namePatience = 3 * time.Second

// name returns a channel's display name, "" if its bot is off.
func (c *Channels) name(ctx context.Context, place string) (string, error) {
	at, err := store.ParsePlace(place)
	if err != nil {
		return "", err
	}
	bot, ok := bots.On[bots.Bot](c.Bots, at.Surface)
	on, named := bot.(bots.ChannelDirectory)
	if !ok || !named || bot.Health().State != bots.Connected {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, namePatience)
	defer cancel()
	return on.ChannelName(ctx, at)
}

// namesOf replaces ids with people's names.
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

// byName returns a policy as text, with people's names.
func byName(users []store.User, p store.Policy) string {
	if p == "" {
		return ""
	}
	a := p.Approvers()
	a.Who = namesOf(users, a.Who)
	return string(a.Policy())
}

// Set changes a channel's settings.
func (c *Channels) Set(ctx context.Context, by store.Caller, req api.SetChannelRequest) (none api.ChannelView, err error) {
	place, err := c.PlaceOf(ctx, req.Place)
	if err != nil {
		return none, err
	}
	edit, err := c.edit(ctx, by, req)
	if err != nil {
		return none, err
	}
	// Look the channel up: settings under a mistyped id would have no effect, unnoticed.
	if _, err := c.name(ctx, place); errors.Is(err, store.ErrNotFound) {
		return none, err
	}
	ch, err := c.Store.EditChannel(ctx, by, place, edit)
	if err != nil {
		return none, err
	}
	return c.view(ctx, ch)
}

// SetHere changes the settings of the channel that one of its admins is in; it ignores the
// place in the request.
func (c *Channels) SetHere(ctx context.Context, by store.Caller, at store.Address, req api.SetChannelRequest) error {
	edit, err := c.edit(ctx, by, req)
	if err != nil {
		return err
	}
	_, err = c.Store.EditChannel(ctx, by, at.Place(), edit)
	return err
}

// Check validates a request, except for its place.
func (c *Channels) Check(ctx context.Context, by store.Caller, req api.SetChannelRequest) error {
	_, err := c.edit(ctx, by, req)
	return err
}

// Unset deletes a channel's settings.
func (c *Channels) Unset(ctx context.Context, by store.Caller, req api.UnsetChannelRequest) (none api.Empty, err error) {
	place, err := c.PlaceOf(ctx, req.Place)
	if err != nil {
		return none, err
	}
	all, err := c.Store.ListChannels(ctx)
	if err != nil {
		return none, fmt.Errorf("listing channels: %w", err)
	}
	if !slices.ContainsFunc(all, func(ch store.Channel) bool { return ch.Place == place }) {
		places := make([]string, len(all))
		for i, ch := range all {
			places[i] = ch.Place
		}
		return none, store.Unknown("channel", place, places)
	}
	_, err = c.Store.EditChannel(ctx, by, place, func(ch *store.Channel) { *ch = store.Channel{} })
	return none, err
}

// edit validates a request and returns the change. A caller can set only what they may use
// themselves.
func (c *Channels) edit(ctx context.Context, by store.Caller, set api.SetChannelRequest) (func(*store.Channel), error) {
	if set.Agent != nil && *set.Agent != "" {
		if err := c.Agents.Check(ctx, by, *set.Agent); err != nil {
			return nil, err
		}
	}
	if set.Model != nil && *set.Model != "" {
		if err := c.Models.Check(ctx, by, *set.Model); err != nil {
			return nil, err
		}
	}
	if set.Mode != nil {
		if err := oneOf(store.Textf("mode"), *set.Mode, store.Modes); err != nil {
			return nil, err
		}
	}
	if set.Language != nil {
		if err := oneOf(store.Textf("language"), *set.Language, Languages()); err != nil {
			return nil, err
		}
	}
	servers, err := c.servers(ctx, by, set)
	if err != nil {
		return nil, err
	}
	if set.Approvers != nil {
		p, err := c.approvers(ctx, by, *set.Approvers)
		if err != nil {
			return nil, err
		}
		set.Approvers = &p
	}
	if set.Admins != nil {
		if !by.IsAdmin() {
			return nil, store.Mark(store.Errorf("only nize's admins can set who else administers a channel"), store.ErrRefused)
		}
		if err := (store.Channel{Admins: *set.Admins}).Check(); err != nil {
			return nil, err
		}
		list, err := c.Directory.Audience(ctx, by, *set.Admins)
		if err != nil {
			return nil, err
		}
		set.Admins = &list
	}
	plain := set
	plain.Servers = nil
	edit := func(ch *store.Channel) {
		api.Change(ch, plain)
		servers(ch)
	}
	var alone store.Channel // apply the store's rules before anything is stored
	edit(&alone)
	return edit, alone.Check()
}

// oneOf returns an error if value is not in the list; "" is the default.
func oneOf(what store.Text, value string, of []string) error {
	if value == "" || slices.Contains(of, value) {
		return nil
	}
	all := strings.Join(of, ", ")
	if near := store.Nearest(value, of); near != "" {
		return store.Errorf("%w %s %q: use %s; did you mean %s?", store.ErrInvalid, what, store.Clip(value, 80), all, near)
	}
	return store.Errorf("%w %s %q: use %s", store.ErrInvalid, what, store.Clip(value, 80), all)
}

// Languages returns the languages that nize supports.
func Languages() []string {
	k, err := store.FindKey("language")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.Choices), func(c string) bool { return c == store.Auto })
}

// servers returns the change of the list of servers. Servers that the caller can't see stay
// in the list, since the caller may not remove them.
func (c *Channels) servers(ctx context.Context, by store.Caller, set api.SetChannelRequest) (func(*store.Channel), error) {
	switch {
	case set.AllServers && set.Servers != nil:
		return nil, store.Errorf("%w servers: some of them, or the default, not both", store.ErrInvalid)
	case set.AllServers:
		return func(c *store.Channel) { c.Servers = nil }, nil
	case set.Servers == nil:
		return func(*store.Channel) {}, nil
	}
	seen, err := c.Servers.Names(ctx, by)
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

// approvers validates a policy. The error suggests similar names of people and groups only
// to an admin of nize.
func (c *Channels) approvers(ctx context.Context, by store.Caller, p store.Policy) (store.Policy, error) {
	p, err := c.Directory.Approvers(ctx, p)
	if err != nil && errors.Is(err, store.ErrNotFound) && !by.IsAdmin() {
		return "", store.Errorf("%w approvers: they name a person or a group that does not exist", store.ErrInvalid)
	}
	return p, err
}
