package commands

import (
	"cmp"
	"context"
	"slices"

	"nize/bots"
	"nize/daemon/api"
	"nize/daemon/settings"
	"nize/store"
)

// Home provides a person's own data for the places that display it.
type Home struct {
	Commands *Commands
	// Cards is the conversation in which people read cards.
	Cards *bots.Conversation
}

var _ bots.Keeper = (*Home)(nil)

// Home implements bots.Keeper. It returns an error if anything can't be read, since an
// incomplete Home would look as if something had been lost.
func (k *Home) Home(ctx context.Context, a bots.Asked) (h bots.Home, err error) {
	cmd := k.Commands
	who := a.By
	if h.Settings, err = cmd.settingFields(ctx, a); err != nil {
		return bots.Home{}, err
	}
	for _, part := range []func(context.Context, bots.Asked, *bots.Home) error{k.choices, k.servers, k.waiting, k.access, k.recent, k.usage} {
		if err := part(ctx, a, &h); err != nil {
			return bots.Home{}, err
		}
	}
	h.Grants, err = cmd.Grants.GivenBy(ctx, who.User)
	return h, err
}

// choices adds the agents and models that a person may use.
func (k *Home) choices(ctx context.Context, a bots.Asked, h *bots.Home) error {
	agents, err := k.Commands.Agents.UsableBy(ctx, a.By)
	if err != nil {
		return err
	}
	for _, ag := range agents {
		h.Agents = append(h.Agents, bots.Choice{Name: ag.ID, About: ag.Name})
	}
	models, err := k.Commands.Models.UsableBy(ctx, a.By)
	if err != nil {
		return err
	}
	for _, m := range models {
		h.Models = append(h.Models, bots.Choice{Name: m.Name})
	}
	return nil
}

func (k *Home) servers(ctx context.Context, a bots.Asked, h *bots.Home) error {
	cmd := k.Commands
	servers, err := cmd.Servers.List(ctx, a.By, api.Empty{})
	if err != nil {
		return err
	}
	own, err := store.ReadConfig(ctx, cmd.Settings.Config, a.By.User)
	if err != nil {
		return err
	}
	off := store.GetList(own, a.By.User, settings.KeyDenied)
	for _, s := range servers.Items {
		if !s.Server.Disabled {
			h.Servers = append(h.Servers, bots.HomeServer{Name: s.Name, Off: slices.Contains(off, s.Name), Down: s.State != "ready" && s.State != "idle"})
		}
	}
	return nil
}

func (k *Home) waiting(ctx context.Context, a bots.Asked, h *bots.Home) error {
	calls, err := k.Commands.Approvals.WaitingFor(ctx, a.By)
	if err != nil {
		return err
	}
	for _, c := range calls {
		at, err := k.Cards.CardAt(ctx, a.By, c)
		if err != nil {
			return err
		}
		h.Waiting = append(h.Waiting, bots.WaitingCall{Call: c.ID, Tool: c.ToolID(), By: cmp.Or(c.ByName, c.By), Until: c.Expires, At: at})
	}
	return nil
}

// Bring implements bots.Keeper.
func (k *Home) Bring(ctx context.Context, by store.Caller, id string) error {
	c, err := k.Commands.Approvals.FindWaiting(ctx, by, id)
	if err != nil {
		return err
	}
	_, err = k.Cards.Shown(ctx, by, c, store.Address{}) // it delivers the card if it is not displayed
	return err
}

// access adds the person's active tokens and their credentials.
func (k *Home) access(ctx context.Context, a bots.Asked, h *bots.Home) error {
	tokens, err := k.Commands.ownTokens(ctx, a.By)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.State == "active" {
			h.Tokens = append(h.Tokens, t.Token)
		}
	}
	credentials, err := k.Commands.Credentials.ListOwn(ctx, a.By, store.TeamOf(a.By, a.At))
	for _, c := range credentials {
		if c.Name == store.LoginName && !c.Connected {
			continue // it can't be typed in: the command returns a link
		}
		h.Credentials = append(h.Credentials, bots.HomeCredential(c))
	}
	return err
}

// homeDays is how many days of usage a Home shows.
const homeDays = 14

// recentChats is how many conversations the Home lists.
const recentChats = 5

// recent adds the conversations that a person started last, on any surface.
func (k *Home) recent(ctx context.Context, a bots.Asked, h *bots.Home) error {
	list, err := k.Commands.Conversations.List(ctx, a.By, api.Empty{})
	if err != nil {
		return err
	}
	for _, th := range list.Items {
		if th.Title != "" && len(h.Recent) < recentChats {
			h.Recent = append(h.Recent, bots.HomeChat{Title: th.Title, Where: string(th.Address.Surface), At: th.Updated})
		}
	}
	return nil
}

func (k *Home) usage(ctx context.Context, a bots.Asked, h *bots.Home) error {
	u, err := k.Commands.usageOf(ctx, a, homeDays)
	h.Days, h.Usage, h.Picture = homeDays, u.brief, u.picture
	return err
}

// PutSecret implements bots.Keeper.
func (k *Home) PutSecret(ctx context.Context, by store.Caller, f bots.Prompt, secret store.Secret) error {
	return k.Commands.Credentials.PutOwn(ctx, by, f, secret)
}
