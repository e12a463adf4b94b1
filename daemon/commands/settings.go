package commands

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/settings"
	"nize/store"
)

func (cmd *Commands) isSetting(words string) bool {
	if words == "" || words == "show" {
		return true
	}
	name, _, _ := strings.Cut(words, " ")
	if id, ok := strings.CutPrefix(words, revokes); ok {
		return store.ValidID(strings.ToUpper(id))
	}
	k, err := store.FindKeyIn(cmd.Keys, name)
	return err == nil && (k.Long || !strings.ContainsAny(strings.TrimSpace(words[len(name):]), " \n"))
}

func (cmd *Commands) saySettings(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	name, value, _ := strings.Cut(a.Words, " ")
	if name == "" || a.Words == "show" {
		var lines []string
		for _, s := range cmd.Settings.Own(a.By) {
			lines = append(lines, "- "+w.Say(phrases.SettingLine, s.Name, cmd.valueText(w, s.Key, a.By.User))+" ("+w.Text(s.Label)+")")
		}
		text := bots.FirstLines(w, w.Say(phrases.SettingsHead), lines)
		grants, err := cmd.grantLines(ctx, a)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(grants) > 0 {
			text += "\n\n" + bots.FirstLines(w, w.Say(phrases.GrantsHead), grants)
		}
		return bots.Said(text), nil
	}
	if id, ok := strings.CutPrefix(a.Words, revokes); ok {
		return cmd.revokeGrant(ctx, a, strings.ToUpper(id))
	}
	if value = strings.TrimSpace(value); value == "" {
		k, err := store.FindKeyIn(cmd.Keys, name)
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

// valueText returns a person's value of a setting, in one line.
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

// setOwn sets the caller's own value of a setting; "" removes it.
func (cmd *Commands) setOwn(ctx context.Context, by store.Caller, key, value string) (api.Setting, error) {
	if value == "" {
		return cmd.Settings.Unset(ctx, by, api.UnsetSettingRequest{Key: key, User: by.User})
	}
	return cmd.Settings.Put(ctx, by, api.PutSettingRequest{Key: key, User: by.User, Value: value})
}

// maxEdited is the maximum length of a value in a dialog, in characters; Slack's limit is
// the lowest.
const maxEdited = 2900

// settingFields returns a person's own settings as fields of a dialog and of the Home. They
// are generated from the definitions, so that a new setting appears everywhere.
func (cmd *Commands) settingFields(ctx context.Context, a bots.Asked) (list []bots.Field, err error) {
	w := phrases.For(a.Locale)
	for _, s := range cmd.Settings.Own(a.By) {
		f := bots.Field{Name: s.Name, Label: w.Text(s.Label), Hint: w.Text(s.Help), Long: s.Display == store.ShowLongText}
		if s.Max != "" {
			f.Hint += " (" + s.Min + "–" + s.Max + ")"
		}
		switch {
		case s.Kind == store.KindBool && s.System == "false":
			f.Fixed, f.Hint = true, w.Say(phrases.SettingFixed)
		case utf8.RuneCountInString(s.Value) > maxEdited:
			f.Fixed, f.Hint = true, w.Say(phrases.SettingTooLong, "nizectl config set "+s.Name)
		}
		if f.Options, err = cmd.settingOptions(ctx, a, s); err != nil {
			return nil, err
		}
		switch {
		case s.Kind == store.KindList:
			f.Many = len(f.Options) > 0
			f.Value = strings.FieldsFunc(s.Value, func(r rune) bool { return r == ',' })
		case len(f.Options) > 0:
			f.Value = []string{asDefault}
			if s.Own != nil {
				f.Value = some(*s.Own)
			}
		default:
			f.Value = some(s.Value)
		}
		list = append(list, f)
	}
	return list, nil
}

// settingOptions returns the choices for a setting; nil for free text.
func (cmd *Commands) settingOptions(ctx context.Context, a bots.Asked, s api.OwnSetting) (list []bots.Option, err error) {
	w := phrases.For(a.Locale)
	add := func(value, label string) { list = append(list, bots.Option{Value: value, Label: label}) }
	switch {
	case s.Name == settings.KeyDenied:
		names, err := cmd.Servers.Names(ctx, a.By)
		for _, name := range names {
			add(name, name)
		}
		return list, err
	case s.Name == settings.KeyAgent:
		agents, err := cmd.Agents.UsableBy(ctx, a.By)
		if err != nil {
			return nil, err
		}
		for _, ag := range agents {
			label := ag.ID
			if ag.Name != "" && ag.Name != ag.ID {
				label += " (" + ag.Name + ")"
			}
			add(ag.ID, label)
		}
	case s.Name == settings.KeyModel:
		models, err := cmd.Models.UsableBy(ctx, a.By)
		if err != nil {
			return nil, err
		}
		for _, m := range models {
			add(m.Name, m.Name)
		}
	case s.Display == store.ShowToggle:
		add("true", w.Say(phrases.SettingOn))
		add("false", w.Say(phrases.SettingOff))
	case s.Display == store.ShowSelect:
		for _, c := range s.Choices {
			add(c, cmp.Or(languageNames[c], c))
		}
	default:
		return nil, nil
	}
	label := w.Say(phrases.TheDefault)
	if i := slices.IndexFunc(list, func(o bots.Option) bool { return o.Value == s.System }); i >= 0 {
		label = w.Say(phrases.SettingDefault, list[i].Label)
	}
	list = slices.DeleteFunc(list, func(o bots.Option) bool { return o.Value == asDefault || o.Value == "" })
	return append([]bots.Option{{Value: asDefault, Label: label}}, list...), nil
}

// languageNames are languages' names for themselves.
var languageNames = map[string]string{"en": "English", "zh": "中文", "zh-Hans": "简体中文", "zh-Hant": "繁體中文"}

// settingsForm is the dialog of the settings command.
type settingsForm struct{ cmd *Commands }

// Form implements bots.Filler.
func (f settingsForm) Form(ctx context.Context, a bots.Asked) (*bots.Form, error) {
	w := phrases.For(a.Locale)
	fields, err := f.cmd.settingFields(ctx, a)
	if err != nil {
		return nil, err
	}
	fields = slices.DeleteFunc(fields, func(f bots.Field) bool { return f.Fixed })
	return &bots.Form{Title: w.Say(phrases.SettingsTitle), About: w.Say(phrases.SettingsAbout), Fields: fields}, nil
}

// value returns a field's value; "" restores the default.
func (settingsForm) value(given []string) string {
	value := strings.TrimSpace(strings.Join(given, ","))
	if value == asDefault {
		return ""
	}
	return value
}

// Check implements bots.Filler.
func (f settingsForm) Check(ctx context.Context, a bots.Asked, values map[string][]string) map[string]string {
	wrong := map[string]string{}
	for name, given := range values {
		err := f.cmd.Settings.CheckOwn(ctx, a.By, name, f.value(given))
		if errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) {
			wrong[name] = bots.Plain(phrases.For(a.Locale).Problem(err))
		}
	}
	return wrong
}

// Fill implements bots.Filler.
func (f settingsForm) Fill(ctx context.Context, a bots.Asked, values map[string][]string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set, err := f.cmd.setOwn(ctx, a.By, name, f.value(values[name]))
		if err != nil {
			return bots.Answer{}, err
		}
		lines = append(lines, w.Say(phrases.SettingSet, set.Name, f.cmd.valueText(w, set.Key, a.By.User)))
	}
	return bots.Said(strings.Join(lines, "\n")), nil
}
