package hooks

import (
	"context"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
)

// commands returns the commands for hooks around a person's own calls.
func (h *Hooks) commands() []bots.Command {
	return []bots.Command{{Name: "hooks", Args: "[add NAME TYPE [SERVER] [CONFIG]|remove|on|off NAME]", About: phrases.AboutHooks, Group: phrases.HelpYou, Fits: isHookWords, Most: 5, Run: h.say}}
}

func isHookWords(words string) bool {
	w, err := bots.ReadHookWords(words)
	return err == nil && (w.Verb != "add" || w.KnownType())
}

// say lists the hooks around a person's calls, or sets, enables, disables or removes
// one of their own. Even an admin's command affects only their own calls.
func (h *Hooks) say(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	said, err := bots.ReadHookWords(a.Words)
	if err != nil {
		return bots.Answer{}, err
	}
	one := api.HookRequest{Name: said.Hook.Name, Owner: a.By.User}
	switch said.Verb {
	case "":
		return h.listOwn(ctx, a)
	case "remove":
		if _, err := h.Remove(ctx, a.By, one); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.HookGone, bots.Brief(one.Name, 60))), nil
	}
	var set api.Hook
	if said.Verb == "add" {
		one := said.Hook
		set, err = h.Add(ctx, a.By, api.AddHookRequest{Owner: a.By.User, Name: one.Name, Type: one.Type, Scope: one.Scope, ScopeID: one.ScopeID, Tool: one.Tool, Config: one.Config})
	} else {
		on := said.Verb == "on"
		set, err = h.Patch(ctx, a.By, api.PatchHookRequest{HookRequest: one, Enabled: &on})
	}
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.HookAdded, bots.HookLine(w, set.Hook, false))), nil
}

func (h *Hooks) listOwn(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	all, err := h.List(ctx, a.By, api.ListHooksRequest{All: true})
	if err != nil {
		return bots.Answer{}, err
	}
	var around, own []string
	for _, one := range all.Items {
		line := "- " + bots.HookLine(w, one.Hook, one.BuiltIn)
		switch {
		case one.Owner == a.By.User:
			own = append(own, line)
		case one.BuiltIn || bots.HookAround(one.Hook, a.By.User):
			around = append(around, line)
		}
	}
	lines := append([]string{bots.FirstLines(w, w.Say(phrases.HooksHead), around)}, own...) // the person's own are never truncated
	return bots.Said(strings.Join(append(lines, bots.HookHelp(w, "/nize ")), "\n")), nil
}
