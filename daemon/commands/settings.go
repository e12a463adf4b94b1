package commands

import (
	"context"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

func isSetting(words string) bool {
	if words == "" {
		return true
	}
	name, _, _ := strings.Cut(words, " ")
	if id, ok := strings.CutPrefix(words, revokes); ok {
		return store.ValidID(strings.ToUpper(id))
	}
	_, err := store.FindKey(name)
	return err == nil && !strings.ContainsAny(strings.TrimSpace(words[len(name):]), " \n") || name == "agent.tools.systemPrompt"
}

func (cmd *Commands) saySettings(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	name, value, _ := strings.Cut(a.Words, " ")
	if name == "" {
		var lines []string
		for _, k := range store.Keys {
			if k.User {
				lines = append(lines, "- "+w.Say(phrases.SettingLine, k.Name, cmd.valueText(w, k, a.By.User)))
			}
		}
		text := shown(w, w.Say(phrases.SettingsHead), lines)
		grants, err := cmd.grantLines(ctx, a)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(grants) > 0 {
			text += "\n\n" + shown(w, w.Say(phrases.GrantsHead), grants)
		}
		return bots.Said(text), nil
	}
	if id, ok := strings.CutPrefix(a.Words, revokes); ok {
		return cmd.revokeGrant(ctx, a, strings.ToUpper(id))
	}
	if value = strings.TrimSpace(value); value == "" {
		k, err := store.FindKey(name)
		if err != nil {
			return bots.Answer{}, err
		}
		if k.Private || !k.User {
			return bots.Answer{}, store.Mark(store.Errorf("the setting %s is the system's, not yours", k.Name), store.ErrRefused)
		}
		whole := bots.Plain(cmd.Settings.Config.Get(a.By.User, k.Name))
		if whole == "" {
			whole = cmd.valueText(w, k, a.By.User)
		}
		return bots.Said(w.Say(phrases.SettingLine, k.Name, whole)), nil
	}
	if value == "default" {
		value = ""
	}
	set, err := cmd.setOwn(ctx, a.By, name, value)
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.SettingSet, set.Name, cmd.valueText(w, set.Key, a.By.User))), nil
}

// valueText is the value that a setting has for somebody, in one line.
func (cmd *Commands) valueText(w phrases.Catalogue, k store.Key, user string) string {
	value := cmd.Settings.Config.Get(user, k.Name)
	switch {
	case value == "" && k.Kind == store.KindList:
		return w.Say(phrases.ValueNone)
	case value == "":
		return w.Say(phrases.TheDefault)
	}
	return bots.Brief(value, 80)
}

// setOwn sets a setting of the caller's own; "" takes it back.
func (cmd *Commands) setOwn(ctx context.Context, by store.Caller, key, value string) (api.Setting, error) {
	if value == "" {
		return cmd.Settings.Unset(ctx, by, api.UnsetSettingRequest{Key: key, User: by.User})
	}
	return cmd.Settings.Put(ctx, by, api.PutSettingRequest{Key: key, User: by.User, Value: value})
}
