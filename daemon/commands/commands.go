package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/settings"
	"nize/mcp/index"
	"nize/store"
)

// What people say to nize in a chat, where the answer is the roof's
// to give: it shows state of several rooms. Everybody is shown what is theirs,
// by the same rules as over the control socket.

// maxShown bounds how many lines of a kind one answer has.
const maxShown = 12

// chatWords are the commands of the roof.
func (d *Daemon) chatWords() []bots.Command {
	one := func(words string) bool { return !strings.ContainsAny(words, " \n") }
	any := func(string) bool { return true }
	return []bots.Command{
		{Name: "tools", Args: "QUERY", About: phrases.AboutTools, Fits: any, Run: d.sayTools},
		{Name: "servers", Args: "[allow|deny NAME]", About: phrases.AboutServers, Fits: isServerWords, Most: 2, Run: d.sayServers},
		{Name: "agent", Args: "[NAME]", About: phrases.AboutAgent, Fits: one, Most: 1, Run: d.sayAgent},
		{Name: "model", Args: "[NAME]", About: phrases.AboutModel, Fits: one, Most: 1, Run: d.sayModel},
		{Name: "streaming", Args: "[on|off]", About: phrases.AboutStreaming, Fits: isStreaming, Most: 1, Run: d.sayStreaming},
		{Name: "usage", Args: "[DAYS]", About: phrases.AboutUsage, Fits: isDays, Most: 1, Run: d.sayUsage},
		{Name: "approvals", About: phrases.AboutApprovals, Run: d.sayApprovals},
		{Name: "settings", Args: "[NAME VALUE|revoke ID]", About: phrases.AboutSettings, Fits: isSetting, Most: 2, Run: d.saySettings},
		{Name: "channel", Args: "[NAME VALUE]", About: phrases.AboutChannel, Fits: isChannelWords, Form: channelForm{d}, Most: 2, Here: func(a bots.Asked) bool { return a.At.Shared() }, Run: d.sayChannel},
		{Name: "credentials", Args: "[connect|disconnect SERVER]", About: phrases.AboutCredentials, Fits: maybeCredential, Most: 3, Run: d.sayCredentials},
		{Name: "connect", About: phrases.AboutConnect, Run: d.sayConnect},
		{Name: "tokens", Args: "[revoke NAME]", About: phrases.AboutTokens, Fits: isTokenWords, Secret: makesToken, Most: 2, Run: d.sayTokens},
		{Name: "link", Args: "[CODE]", About: phrases.AboutLink, Fits: maybeLink, Most: 2, Run: d.sayLink},
		{Name: "privacy", About: phrases.AboutPrivacy, Run: d.sayPrivacy},
		{Name: "forget", About: phrases.AboutForget, Fits: isForget, Most: 1, Here: bots.InThread, Run: d.sayForget},
	}
}

// brief is outside text in one harmless line.
func brief(text string, limit int) string {
	line := []rune(bots.Escape(strings.Join(strings.Fields(text), " ")))
	if len(line) > limit {
		return string(line[:limit-1]) + "…"
	}
	return string(line)
}

// shown puts the first lines under a head and counts the rest.
func shown(w phrases.Catalogue, head string, lines []string) string {
	rest := len(lines) - maxShown
	if rest > 0 {
		lines = append(lines[:maxShown:maxShown], w.Say(phrases.AndMore, strconv.Itoa(rest)))
	}
	return head + "\n" + strings.Join(lines, "\n")
}

// scopeAt is what narrows the tools in the conversation of a command, or in
// its channel.
func (d *Daemon) scopeAt(ctx context.Context, a bots.Asked) (store.Scope, error) {
	if a.Thread == "" {
		return store.Scope{Place: a.At.Place()}, nil
	}
	th, err := d.db.GetThread(ctx, a.Thread)
	if err != nil {
		return store.Scope{}, fmt.Errorf("reading the conversation: %w", err)
	}
	return store.Scope{Agent: th.Agent, Servers: th.Servers, Thread: th.ID}, nil
}

func (d *Daemon) sayTools(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		return bots.Said(w.Say(phrases.ToolsWhat)), nil
	}
	scope, err := d.scopeAt(ctx, a)
	if err != nil {
		return bots.Answer{}, err
	}
	q := index.Query{Text: a.Words, TopK: 8, MinScore: store.GetFloat(d.config, "", "index.min_similarity")}
	found, err := d.gateway.Discovery.Search(ctx, a.By, scope, q)
	if err != nil {
		return bots.Answer{}, fmt.Errorf("searching tools: %w", err)
	}
	if len(found.Hits) == 0 {
		return bots.Said(w.Say(phrases.ToolsNone, brief(a.Words, 100))), nil
	}
	var lines []string
	for _, h := range found.Hits {
		lines = append(lines, "- "+brief(h.Tool.ID(), 120)+": "+brief(h.Tool.Description, 160))
	}
	return bots.Said(strings.Join(lines, "\n")), nil
}

// choice is one of several names, of which a conversation uses one.
type choice struct{ name, about string }

// choices lists them and marks the one in use.
func choices(w phrases.Catalogue, list []choice, now, command string) string {
	var lines []string
	for _, c := range list {
		line := "- " + c.name
		if c.about != "" {
			line += ": " + brief(c.about, 100)
		}
		if c.name == now {
			line += " (" + w.Say(phrases.Current) + ")"
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(shown(w, "", append(lines, w.Say(phrases.ChooseIt, command))))
}

// choose changes the conversation of a command; its beginner and admins may.
func (d *Daemon) choose(ctx context.Context, a bots.Asked, edit func(*store.Thread)) (told string, err error) {
	w := phrases.For(a.Locale)
	if a.Thread == "" {
		return w.Say(phrases.NothingHere), nil
	}
	th, err := d.db.GetThread(ctx, a.Thread)
	if err != nil {
		return "", fmt.Errorf("reading the conversation: %w", err)
	}
	if th.User != a.By.User && !a.By.IsAdmin() {
		return w.Say(phrases.NotYours), nil
	}
	if _, err := d.db.EditThread(ctx, a.By, th.ID, edit); err != nil {
		return "", fmt.Errorf("changing the conversation: %w", err)
	}
	return "", nil
}

func (d *Daemon) sayAgent(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		scope, err := d.scopeAt(ctx, a)
		if err != nil {
			return bots.Answer{}, err
		}
		if a.Thread == "" {
			scope.Agent, _ = d.defaults.Of(ctx, a.By, "", "")
		}
		list, err := d.ops.agents.UsableBy(ctx, a.By)
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
	} else if _, err := d.ops.agents.Find(ctx, a.By, name); err != nil {
		return bots.Answer{}, err
	}
	if a.Thread == "" {
		return d.chooseOwn(ctx, a, settings.KeyAgent, name)
	}
	told, err := d.choose(ctx, a, func(th *store.Thread) { th.Agent = name })
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if name == "" {
		name = w.Say(phrases.TheDefault)
	}
	return bots.Said(w.Say(phrases.AgentSet, name)), nil
}

// chooseOwn sets what the conversations begin with that a person starts.
func (d *Daemon) chooseOwn(ctx context.Context, a bots.Asked, key, name string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if _, err := d.config.Put(ctx, a.By, a.By.User, key, name); err != nil {
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

func (d *Daemon) sayModel(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		list, err := d.ops.models.UsableBy(ctx, a.By)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(list) == 0 {
			return bots.Said(w.Say(phrases.ModelsNone)), nil
		}
		now, err := d.modelAt(ctx, a, list)
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
	} else if err := d.ops.models.Check(ctx, a.By, name); err != nil {
		return bots.Answer{}, err
	}
	if a.Thread == "" {
		return d.chooseOwn(ctx, a, settings.KeyModel, name)
	}
	told, err := d.choose(ctx, a, func(th *store.Thread) { th.Model = name })
	if told != "" || err != nil {
		return bots.Said(told), err
	}
	if name == "" {
		name = w.Say(phrases.TheDefault)
	}
	return bots.Said(w.Say(phrases.ModelSet, name)), nil
}

// modelAt is the model of the conversation, by its logical name.
func (d *Daemon) modelAt(ctx context.Context, a bots.Asked, list []store.ModelName) (string, error) {
	if a.Thread != "" {
		th, err := d.db.GetThread(ctx, a.Thread)
		if err != nil {
			return "", fmt.Errorf("reading the conversation: %w", err)
		}
		if th.Model != "" {
			return th.Model, nil
		}
	} else if _, own := d.defaults.Of(ctx, a.By, "", ""); own != "" {
		return own, nil
	}
	for _, m := range list {
		if m.Default {
			return m.Name, nil
		}
	}
	return "", nil
}

func (d *Daemon) sayApprovals(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	calls, err := d.waitingFor(ctx, a.By)
	if err != nil {
		return bots.Answer{}, err
	}
	var lines []string
	for _, c := range calls {
		lines = append(lines, "- "+w.Say(phrases.ApprovalLine, c.ID, brief(c.Server+":"+c.Tool, 120), brief(c.ByName, 60)))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.ApprovalsNone)), nil
	}
	return bots.Said(shown(w, w.Say(phrases.ApprovalsHead), lines)), nil
}

// revokes begins the words that take a standing answer back.
const revokes = "revoke "

// grantsOf are the standing answers that a person gave.
func (d *Daemon) grantsOf(ctx context.Context, user string) ([]store.Grant, error) {
	all, err := d.db.ListGrants(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing grants: %w", err)
	}
	return slices.DeleteFunc(all, func(g store.Grant) bool {
		return g.User != user || !g.Expires.IsZero() && !d.now().Before(g.Expires)
	}), nil
}

func (d *Daemon) grantLines(ctx context.Context, a bots.Asked) (lines []string, err error) {
	w := phrases.For(a.Locale)
	grants, err := d.grantsOf(ctx, a.By.User)
	for _, g := range grants {
		key := phrases.GrantAllow
		if g.Deny {
			key = phrases.GrantDeny
		}
		lines = append(lines, "- "+w.Say(key, g.ID, grantText(a, g)))
	}
	return lines, err
}

// revokeGrant takes back a standing answer that the person gave; another's is
// an unknown one.
func (d *Daemon) revokeGrant(ctx context.Context, a bots.Asked, id string) (bots.Answer, error) {
	grants, err := d.grantsOf(ctx, a.By.User)
	if err != nil {
		return bots.Answer{}, err
	}
	i := slices.IndexFunc(grants, func(g store.Grant) bool { return g.ID == id })
	if i < 0 {
		return bots.Answer{}, fmt.Errorf("grant %q %w", id, store.ErrNotFound)
	}
	if err := d.db.DeleteGrant(ctx, a.By, id); err != nil {
		return bots.Answer{}, fmt.Errorf("grant %q: %w", id, err)
	}
	return bots.Said(phrases.For(a.Locale).Say(phrases.GrantRevoked, brief(grants[i].Tool, 120))), nil
}

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

func (d *Daemon) saySettings(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	name, value, _ := strings.Cut(a.Words, " ")
	if name == "" {
		var lines []string
		for _, k := range store.Keys {
			if k.User {
				lines = append(lines, "- "+w.Say(phrases.SettingLine, k.Name, d.valueText(w, k, a.By.User)))
			}
		}
		text := shown(w, w.Say(phrases.SettingsHead), lines)
		grants, err := d.grantLines(ctx, a)
		if err != nil {
			return bots.Answer{}, err
		}
		if len(grants) > 0 {
			text += "\n\n" + shown(w, w.Say(phrases.GrantsHead), grants)
		}
		return bots.Said(text), nil
	}
	if id, ok := strings.CutPrefix(a.Words, revokes); ok {
		return d.revokeGrant(ctx, a, strings.ToUpper(id))
	}
	if value = strings.TrimSpace(value); value == "" {
		k, err := store.FindKey(name)
		if err != nil {
			return bots.Answer{}, err
		}
		if k.Private || !k.User {
			return bots.Answer{}, fmt.Errorf("%w: the setting %s is the system's, not yours", store.ErrRefused, k.Name)
		}
		whole := bots.Plain(d.config.Get(a.By.User, k.Name))
		if whole == "" {
			whole = d.valueText(w, k, a.By.User)
		}
		return bots.Said(w.Say(phrases.SettingLine, k.Name, whole)), nil
	}
	if value == "default" {
		value = ""
	}
	if err := d.defaults.Check(ctx, a.By.User, name, value); err != nil {
		return bots.Answer{}, err
	}
	set, err := d.config.Put(ctx, a.By, a.By.User, name, value)
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.SettingSet, set.Name, d.valueText(w, set.Key, a.By.User))), nil
}

// valueText is the value that a setting has for somebody, in one line.
func (d *Daemon) valueText(w phrases.Catalogue, k store.Key, user string) string {
	value := d.config.Get(user, k.Name)
	switch {
	case value == "" && k.Kind == store.KindList:
		return w.Say(phrases.ValueNone)
	case value == "":
		return w.Say(phrases.TheDefault)
	}
	return brief(value, 80)
}

func (d *Daemon) sayPrivacy(_ context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	kept := func(what string) string { return w.Span(d.config.Get("", "retention."+what)) }
	return bots.Said(w.Say(phrases.PrivacyText, kept("conversations"), kept("output"), kept("audit"), kept("usage"))), nil
}

// zoneOf is a person's time zone, UTC where it is not known.
func zoneOf(a bots.Asked) *time.Location {
	if at, err := time.LoadLocation(a.Zone); err == nil {
		return at
	}
	return time.UTC
}
