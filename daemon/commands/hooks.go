package commands

import (
	"context"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
)

// The commands for hooks around a person's own calls.

func isHookWords(words string) bool {
	w, err := bots.ReadHookWords(words)
	return err == nil && (w.Verb != "add" || w.KnownType())
}

// sayHooks lists the hooks around a person's calls, or sets, enables, disables or removes
// one of their own. Even an admin's command affects only their own calls.
func (cmd *Commands) sayHooks(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	said, err := bots.ReadHookWords(a.Words)
	if err != nil {
		return bots.Answer{}, err
	}
	one := api.HookRequest{Name: said.Hook.Name, Owner: a.By.User}
	switch said.Verb {
	case "":
		return cmd.listHooks(ctx, a)
	case "remove":
		if _, err := cmd.Hooks.Remove(ctx, a.By, one); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.HookGone, bots.Brief(one.Name, 60))), nil
	}
	var set api.Hook
	if said.Verb == "add" {
		h := said.Hook
		set, err = cmd.Hooks.Add(ctx, a.By, api.AddHookRequest{Owner: a.By.User, Name: h.Name, Type: h.Type, Scope: h.Scope, ScopeID: h.ScopeID, Tool: h.Tool, Config: h.Config})
	} else {
		on := said.Verb == "on"
		set, err = cmd.Hooks.Patch(ctx, a.By, api.PatchHookRequest{HookRequest: one, Enabled: &on})
	}
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.HookAdded, bots.HookLine(w, set.Hook, false))), nil
}

func (cmd *Commands) listHooks(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	all, err := cmd.Hooks.List(ctx, a.By, api.ListHooksRequest{All: true})
	if err != nil {
		return bots.Answer{}, err
	}
	var around, own []string
	for _, h := range all.Items {
		line := "- " + bots.HookLine(w, h.Hook, h.BuiltIn)
		switch {
		case h.Owner == a.By.User:
			own = append(own, line)
		case h.BuiltIn || bots.HookAround(h.Hook, a.By.User):
			around = append(around, line)
		}
	}
	lines := append([]string{shown(w, w.Say(phrases.HooksHead), around)}, own...) // the person's own are never truncated
	return bots.Said(strings.Join(append(lines, bots.HookHelp(w, "/nize ")), "\n")), nil
}
