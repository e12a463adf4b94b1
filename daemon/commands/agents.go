package commands

import (
	"context"
	"errors"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/control"
	"nize/daemon/settings"
	"nize/store"
)

// The commands for the agent and the model: in a conversation they apply to that one,
// elsewhere to the person's new conversations.

// choice is one of several names, of which a conversation uses one.
type choice struct{ name, about string }

// choices lists them and marks the current one.
func choices(w phrases.Catalogue, list []choice, now, command string) string {
	var lines []string
	for _, c := range list {
		line := "- " + c.name
		if c.about != "" {
			line += ": " + bots.Brief(c.about, 100)
		}
		if c.name == now {
			line += " (" + w.Say(phrases.Current) + ")"
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(bots.FirstLines(w, "", append(lines, w.Say(phrases.ChooseIt, command))))
}

// choose changes the conversation of a command; only the person who started it and admins
// may.
func (cmd *Commands) choose(ctx context.Context, a bots.Asked, edit func(*store.Thread)) (told string, err error) {
	w := phrases.For(a.Locale)
	if a.Thread == "" {
		return w.Say(phrases.NothingHere), nil
	}
	err = cmd.Conversations.Change(ctx, a.By, a.Thread, edit)
	if errors.Is(err, control.ErrNotTheirs) {
		return w.Say(phrases.NotYours), nil
	}
	return "", err
}

func (cmd *Commands) sayAgent(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		scope, err := cmd.scopeAt(ctx, a)
		if err != nil {
			return bots.Answer{}, err
		}
		if a.Thread == "" {
			if scope.Agent, _, err = cmd.Settings.Defaults.Of(ctx, a.By, "", ""); err != nil {
				return bots.Answer{}, err
			}
		}
		list, err := cmd.Agents.UsableBy(ctx, a.By)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(list) == 0 {
			return bots.Said(w.Say(phrases.AgentsNone)), nil
		}
		var names []choice
		for _, ag := range list {
			names = append(names, choice{ag.ID, ag.Name})
			if scope.Agent == "" && ag.Default {
				scope.Agent = ag.ID
			}
		}
		return bots.Said(choices(w, names, scope.Agent, "agent")), nil
	}
	name := a.Words
	if name == "default" {
		name = ""
	} else if _, err := cmd.Agents.Find(ctx, a.By, name); err != nil {
		return bots.Answer{}, err
	}
	if a.Thread == "" {
		return cmd.chooseOwn(ctx, a, settings.KeyAgent, name)
	}
	told, err := cmd.choose(ctx, a, func(th *store.Thread) { th.Agent = name })
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if name == "" {
		name = w.Say(phrases.TheDefault)
	}
	return bots.Said(w.Say(phrases.AgentSet, name)), nil
}

// chooseOwn sets the default of a person's new conversations.
func (cmd *Commands) chooseOwn(ctx context.Context, a bots.Asked, key, name string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if _, err := cmd.setOwn(ctx, a.By, key, name); err != nil {
		return bots.Answer{}, err
	}
	if name == "" {
		name = w.Say(phrases.TheDefault)
	}
	said := phrases.OwnAgentSet
	if key == settings.KeyModel {
		said = phrases.OwnModelSet
	}
	return bots.Said(w.Say(said, name)), nil
}

func (cmd *Commands) sayModel(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		list, err := cmd.Models.UsableBy(ctx, a.By)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(list) == 0 {
			return bots.Said(w.Say(phrases.ModelsNone)), nil
		}
		now, err := cmd.modelAt(ctx, a, list)
		if err != nil {
			return bots.Answer{}, err
		}
		var named []choice
		for _, m := range list {
			named = append(named, choice{name: m.Name})
		}
		return bots.Said(choices(w, named, now, "model")), nil
	}
	name := a.Words
	if name == "default" {
		name = ""
	} else if err := cmd.Models.Check(ctx, a.By, name); err != nil {
		return bots.Answer{}, err
	}
	if a.Thread == "" {
		return cmd.chooseOwn(ctx, a, settings.KeyModel, name)
	}
	told, err := cmd.choose(ctx, a, func(th *store.Thread) { th.Model = name })
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if name == "" {
		name = w.Say(phrases.TheDefault)
	}
	return bots.Said(w.Say(phrases.ModelSet, name)), nil
}

// modelAt returns the logical name of the conversation's model.
func (cmd *Commands) modelAt(ctx context.Context, a bots.Asked, list []store.ModelName) (string, error) {
	if a.Thread != "" {
		th, err := cmd.Conversations.Find(ctx, a.Thread)
		if err != nil {
			return "", err
		}
		if th.Model != "" {
			return th.Model, nil
		}
	} else if _, own, err := cmd.Settings.Defaults.Of(ctx, a.By, "", ""); own != "" || err != nil {
		return own, err
	}
	for _, m := range list {
		if m.Default {
			return m.Name, nil
		}
	}
	return "", nil
}
