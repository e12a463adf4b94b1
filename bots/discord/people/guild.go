package people

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/wire"
	"nize/store"
)

// The guild's roles and channels, who sees a channel and who administers it, as Discord has
// them now: approvals ask at every press.

// Guild returns the guild's data, not older than age.
func (d *Directory) Guild(ctx context.Context, age time.Duration) (discordgo.Guild, error) {
	return d.guild.Get("", age, func() (g discordgo.Guild, err error) {
		var raw json.RawMessage
		if err = d.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "guilds/" + d.o.Guild, Into: &raw}); err == nil {
			g, err = incoming.DecodeGuild(raw)
		}
		if err != nil {
			err = fmt.Errorf("asking Discord for the guild: %w", err)
		}
		return g, err
	})
}

// SetGuild updates the guild's data from an event.
func (d *Directory) SetGuild(g discordgo.Guild) {
	for _, c := range slices.Concat(g.Channels, g.Threads) {
		d.SetChannel(*c)
	}
	d.ForgetGuild()
}

// ForgetGuild makes the next lookup of the guild a fresh one.
func (d *Directory) ForgetGuild() { d.guild.Forget("") }

// SetChannel updates a channel or a thread from an event.
func (d *Directory) SetChannel(c discordgo.Channel) {
	c.GuildID = d.o.Guild
	d.channels.Put(c.ID, c)
}

// ForgetChannel makes the next lookup of a channel a fresh one.
func (d *Directory) ForgetChannel(id string) { d.channels.Forget(id) }

// KnownChannel returns a channel from the cache.
func (d *Directory) KnownChannel(id string) (discordgo.Channel, bool) {
	return d.channels.Known(id, account.Ever)
}

// Channel returns a channel of the guild, a thread of one, or a direct channel, or
// ErrNotFound if nize can't see a channel with that id.
func (d *Directory) Channel(ctx context.Context, id string) (discordgo.Channel, error) {
	if c, ok := d.KnownChannel(id); ok {
		return c, nil
	}
	var c discordgo.Channel
	var raw json.RawMessage
	err := d.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: "channels/" + id, Into: &raw})
	if err == nil {
		c, err = incoming.DecodeChannel(raw)
	}
	switch code := wire.Code(err); {
	case code == discordgo.ErrCodeMissingAccess || code == discordgo.ErrCodeUnknownChannel:
		return c, fmt.Errorf("channel %s: %w on Discord, or it is a private one without nize: let nize see it first", id, store.ErrNotFound)
	case err != nil:
		return c, fmt.Errorf("asking Discord for the channel %s: %w", id, err)
	case c.ID != id || c.GuildID != d.o.Guild && !incoming.Direct(c):
		return c, fmt.Errorf("channel %s: %w in this guild", id, store.ErrNotFound)
	}
	if incoming.Direct(c) && len(c.Recipients) > 0 {
		d.noteDM(c.ID, c.Recipients[0].ID)
		return c, nil
	}
	d.SetChannel(c)
	return c, nil
}

// Place returns the address for a channel id: a thread belongs to its parent channel.
func (d *Directory) Place(ctx context.Context, channel string) (store.Address, error) {
	c, err := d.Channel(ctx, channel)
	if err != nil {
		return store.Address{}, err
	}
	at := store.Address{Surface: store.OnDiscord, Team: d.o.Guild, Channel: c.ID}
	switch {
	case incoming.Direct(c):
		at.Direct, at.Thread = true, c.ID
	case c.IsThread() && c.ParentID != "":
		at.Channel, at.Thread = c.ParentID, c.ID
	}
	return at, nil
}

// NameOf returns a channel's name, or its id if the name isn't cached.
func (d *Directory) NameOf(id string) string {
	if c, ok := d.KnownChannel(id); ok && c.Name != "" {
		return c.Name
	}
	return id
}

// ReaderOf returns the person whose direct channel it is, "" for any other channel.
func (d *Directory) ReaderOf(ctx context.Context, channel string) (string, error) {
	c, err := d.Channel(ctx, channel)
	if err != nil || !incoming.Direct(c) || len(c.Recipients) == 0 {
		return "", err
	}
	return c.Recipients[0].ID, nil
}

// ChannelName returns a channel's name.
func (d *Directory) ChannelName(ctx context.Context, channel string) (string, error) {
	c, err := d.Channel(ctx, channel)
	if err == nil && (incoming.Direct(c) || c.IsThread()) {
		err = fmt.Errorf("channel %s: %w; it is a thread or somebody's own", channel, store.ErrNotFound)
	}
	return c.Name, err
}

// Sees reports whether a person can see a channel.
func (d *Directory) Sees(ctx context.Context, channel string, p Person) (bool, error) {
	may, err := d.permissions(ctx, channel, p, Fresh)
	return may&discordgo.PermissionViewChannel != 0, err
}

// permissions returns a person's permissions in a channel: those of their roles in the
// guild, changed by the channel's overwrites for everybody, for roles, and for them.
func (d *Directory) permissions(ctx context.Context, channel string, p Person, age time.Duration) (int64, error) {
	if !p.Member {
		return 0, nil
	}
	g, err := d.Guild(ctx, age)
	if err != nil {
		return 0, err
	}
	may := inGuild(g, p)
	if p.ID == g.OwnerID || may&discordgo.PermissionAdministrator != 0 {
		return ^0, nil
	}
	c, err := d.Channel(ctx, channel)
	if err == nil && c.IsThread() {
		c, err = d.Channel(ctx, c.ParentID)
	}
	if err != nil {
		return 0, err
	}
	var allow, deny int64
	for _, o := range c.PermissionOverwrites {
		switch {
		case o.Type == discordgo.PermissionOverwriteTypeRole && o.ID == g.ID:
			may = may&^o.Deny | o.Allow
		case o.Type == discordgo.PermissionOverwriteTypeRole && slices.Contains(p.roles, o.ID):
			allow, deny = allow|o.Allow, deny|o.Deny
		}
	}
	may = may&^deny | allow
	for _, o := range c.PermissionOverwrites {
		if o.Type == discordgo.PermissionOverwriteTypeMember && o.ID == p.ID {
			may = may&^o.Deny | o.Allow
		}
	}
	return may, nil
}

// Member reports whether a nize user can see the channel.
func (d *Directory) Member(ctx context.Context, channel, user string) (bool, error) {
	u, err := d.o.Store.GetUser(ctx, user)
	if err != nil {
		return false, err
	}
	for _, id := range IDs(u) {
		p, err := d.LookUp(ctx, id, Fresh)
		if err != nil {
			return false, err
		}
		if sees, err := d.Sees(ctx, channel, p); err != nil || sees {
			return sees, err
		}
	}
	return false, nil
}

// Admins returns the nize users who may manage the channel.
func (d *Directory) Admins(ctx context.Context, channel string) ([]string, error) {
	var found []string
	err := d.eachMember(ctx, func(u store.User, p Person) error {
		may, err := d.permissions(ctx, channel, p, Fresh)
		if may&discordgo.PermissionManageChannels != 0 && !slices.Contains(found, u.ID) {
			found = append(found, u.ID)
		}
		return err
	})
	return found, err
}

// TeamAdmins returns the nize users who manage the guild.
func (d *Directory) TeamAdmins(ctx context.Context) (found []string, err error) {
	g, err := d.Guild(ctx, Fresh)
	if err != nil {
		return nil, err
	}
	err = d.eachMember(ctx, func(u store.User, p Person) error {
		if manages(g, p) {
			found = append(found, u.ID)
		}
		return nil
	})
	return found, err
}

// eachMember calls do for each active user who is in the guild.
func (d *Directory) eachMember(ctx context.Context, do func(store.User, Person) error) error {
	users, err := d.o.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.State != store.Active {
			continue
		}
		for _, id := range IDs(u) {
			p, err := d.LookUp(ctx, id, Recent)
			if err == nil && p.Member {
				err = do(u, p)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// UserGroup finds a role of the guild by its id or name, and returns the source under which
// it is stored. If there is none, the error suggests the nearest name.
func (d *Directory) UserGroup(ctx context.Context, name string) (source, handle string, err error) {
	g, err := d.Guild(ctx, Fresh)
	if err != nil {
		return "", "", err
	}
	name = strings.TrimPrefix(name, "@")
	var found []*discordgo.Role
	var names []string
	for _, r := range g.Roles {
		if r.ID == name {
			found = []*discordgo.Role{r}
			break
		}
		if r.ID != g.ID && strings.EqualFold(r.Name, name) {
			found = append(found, r)
		}
		names = append(names, r.Name)
	}
	switch len(found) {
	case 0:
		return "", "", store.Unknown("role", name, names)
	case 1:
		return string(store.OnDiscord) + ":" + d.o.Guild + ":" + found[0].ID, found[0].Name, nil
	}
	return "", "", fmt.Errorf("%w role %q: %d have that name; give its id", store.ErrInvalid, name, len(found))
}

// InUserGroup lists the identities of nize's users who have a role now; a new user is
// included in the next check. Discord lists all members only for bots with a privileged
// intent, and nize only needs its own users. If the role no longer exists, it returns an
// error, so the group fails closed.
func (d *Directory) InUserGroup(ctx context.Context, role string) ([]string, error) {
	g, err := d.Guild(ctx, Fresh)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(g.Roles, func(r *discordgo.Role) bool { return r.ID == role }) {
		return nil, fmt.Errorf("role %s: %w", role, store.ErrNotFound)
	}
	in := []string{}
	err = d.eachMember(ctx, func(_ store.User, p Person) error {
		if slices.Contains(p.roles, role) || role == g.ID {
			in = append(in, p.Identity())
		}
		return nil
	})
	return in, err
}
