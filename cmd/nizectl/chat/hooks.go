package chat

import (
	"context"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
)

// cmdHooks lists the hooks around the person's calls, or sets, switches or removes one of
// their own; `nizectl hooks` manages those of admins.
func (s *session) cmdHooks(ctx context.Context, arg string) (reply, error) {
	said, err := bots.ReadHookWords(arg)
	if err != nil {
		return reply{}, err
	}
	w, own := s.words(), s.status.You.User
	one := api.HookRequest{Name: said.Hook.Name, Owner: own}
	var set api.Hook
	switch said.Verb {
	case "":
		all, err := api.ListHooks.Call(ctx, s.opt.Client, api.ListHooksRequest{All: true})
		if err != nil {
			return reply{}, err
		}
		lines := []string{w.Say(phrases.HooksHead)}
		for _, h := range all.Items {
			if h.BuiltIn || bots.HookAround(h.Hook, own) {
				lines = append(lines, "  "+bots.HookLine(w, h.Hook, h.BuiltIn))
			}
		}
		return reply{lines: append(lines, bots.HookHelp(w, "/"))}, nil
	case "remove":
		if _, err := api.RemoveHook.Call(ctx, s.opt.Client, one); err != nil {
			return reply{}, err
		}
		return reply{lines: []string{w.Say(phrases.HookGone, bots.Brief(one.Name, 60))}}, nil
	case "add":
		h := said.Hook
		set, err = api.AddHook.Call(ctx, s.opt.Client, api.AddHookRequest{Owner: own, Name: h.Name, Type: h.Type, Scope: h.Scope, ScopeID: h.ScopeID, Tool: h.Tool, Config: h.Config})
	default:
		on := said.Verb == "on"
		set, err = api.PatchHook.Call(ctx, s.opt.Client, api.PatchHookRequest{HookRequest: one, Enabled: &on})
	}
	if err != nil {
		return reply{}, err
	}
	return reply{lines: []string{w.Say(phrases.HookAdded, bots.HookLine(w, set.Hook, false))}}, nil
}
