package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// cmdSettings shows the settings for which people can have values of their own, or changes
// one; default resets it.
func (s *session) cmdSettings(ctx context.Context, arg string) (reply, error) {
	list, err := api.ListSettings.Call(ctx, s.opt.Client, api.ListSettingsRequest{User: s.status.You.User})
	if err != nil {
		return reply{}, err
	}
	own := slices.DeleteFunc(list.Items, func(k api.Setting) bool { return !k.User })
	name, value, _ := strings.Cut(arg, " ")
	value = strings.TrimSpace(value)
	if name == "" {
		var rows [][]string
		for _, k := range own {
			rows = append(rows, []string{k.Name, bots.Brief(cmp.Or(k.Value, "-"), 40), bots.Escape(k.Label.String())})
		}
		return reply{lines: columns(rows)}, nil
	}
	i := slices.IndexFunc(own, func(k api.Setting) bool { return k.Name == name })
	if i < 0 {
		var names []string
		for _, k := range own {
			names = append(names, k.Name)
		}
		return reply{}, store.Unknown("setting", name, names)
	}
	set := own[i]
	switch value {
	case "":
		lines := strings.Split(s.words().Say(phrases.SettingLine, set.Name, bots.Plain(set.Value)), "\n")
		return reply{lines: append(lines, bots.Escape(set.Help.String()))}, nil
	case "default":
		set, err = api.UnsetSetting.Call(ctx, s.opt.Client, api.UnsetSettingRequest{Key: name, User: s.status.You.User})
	default:
		set, err = api.PutSetting.Call(ctx, s.opt.Client, api.PutSettingRequest{Key: name, Value: value, User: s.status.You.User})
	}
	if err != nil {
		return reply{}, err
	}
	return reply{lines: []string{s.words().Say(phrases.SettingSet, set.Name, bots.Brief(cmp.Or(set.Value, "-"), 80))}}, nil
}
