package discord

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/store"
)

// commander runs commands and shows the replies to their authors.
type commander struct{ *live }

// register registers the commands with Discord if they changed: globally or for the guild
// only, as set in discord.commands.
func (l commander) register(ctx context.Context) {
	list, err := json.Marshal(view.Commands(l.b.o.Commands.All()))
	if err != nil {
		l.log.Error("encoding the commands", "err", err)
		return
	}
	own := "applications/" + l.account.App + "/guilds/" + l.guild + "/commands"
	all := "applications/" + l.account.App + "/commands"
	want, none := all, own
	if l.b.o.Config.Get("", "discord.commands") == "guild" {
		want, none = own, all
	}
	l.registering.Lock()
	defer l.registering.Unlock()
	sum := fmt.Sprintf("%s %x", want, sha256.Sum256(list))
	if sum == l.registered {
		return
	}
	put := func(path string, list json.RawMessage) error {
		return l.wire.Retry(ctx, func(ctx context.Context) error {
			return l.wire.Do(ctx, wire.Request{Method: "PUT", Path: path, Body: list})
		})
	}
	if err := put(want, list); err != nil {
		if ctx.Err() == nil {
			l.log.Error("telling Discord the commands", "err", err)
		}
		return
	}
	l.registered = sum
	if err := put(none, json.RawMessage("[]")); err != nil && ctx.Err() == nil {
		l.log.Warn("taking back commands", "err", err)
	}
}

// given is a command with the circumstances in which it was given.
type given struct {
	cmd   bots.Command
	asked bots.Asked
	r     *response // nil after a mention
}

// line returns how to give the command in a way that can open a dialog.
func (g given) line() string {
	return bots.Plain(strings.TrimSpace("/nize " + g.cmd.Name + " " + g.asked.Words))
}

// handleCommand handles a Discord command.
func (l commander) handleCommand(ctx context.Context, p people.Person, at store.Address, i incoming.Interaction, r *response) error {
	if i.OnMessage() {
		return l.openAbout(ctx, p, i, r)
	}
	return l.commands.runLine(ctx, p, at, i, i.Line(), r)
}

// runLine runs a command that was typed, or a button's command.
func (l commander) runLine(ctx context.Context, p people.Person, at store.Address, i incoming.Interaction, line string, r *response) error {
	cmd, words, near, ok := l.b.o.Commands.Find(p.Caller(), line, false)
	if !ok {
		return l.tell(ctx, p, r, account.Unknown(p.Words(), near))
	}
	at.Message = ""
	asked := p.Asked(at, words)
	th, err := l.b.o.Store.Threads.FindThread(ctx, at)
	if err == nil {
		asked.Thread = th.ID
	}
	asked.Say = func(ctx context.Context, words string) error {
		return l.beginThread(ctx, p, at, i.ID, words, question{text: words})
	}
	return l.commands.runCommand(ctx, p, given{cmd, asked, r})
}

// runClaim runs a claim, the only command that runs even if discord.access excludes its
// author: a claim code comes from the operator and makes its user an admin.
func (l commander) runClaim(ctx context.Context, p people.Person, at store.Address, line string, r *response) (done bool, err error) {
	cmd, words, ok := account.FindClaim(l.b.o.Commands, p.Caller(), p.Barred, line)
	if !ok {
		return false, nil
	}
	at.Message = ""
	return true, l.commands.runCommand(ctx, p, given{cmd, p.Asked(at, words), r})
}

// runCommand runs a command and shows the reply to its author.
func (l commander) runCommand(ctx context.Context, p people.Person, g given) error {
	if g.cmd.Decides && g.r == nil { // the author of an interaction was just looked up
		now, err := l.people.Who(ctx, p.ID, people.Fresh)
		if err != nil {
			return err
		}
		now.Act = p.Act
		if now.User.ID == "" {
			return l.tellNoAccess(ctx, now, nil)
		}
		p, g.asked.By = now, now.Caller()
	}
	if g.r == nil && g.cmd.Secret != nil && g.cmd.Secret(g.asked.Words) {
		return l.tell(ctx, p, nil, p.Words().Say(phrases.OnlyDialog, g.line()))
	}
	if l.openForm(ctx, p, g) {
		return nil
	}
	answer, err := l.b.o.Commands.Run(ctx, g.cmd, g.asked)
	if err != nil {
		l.log.Error("running a command", "command", g.cmd.Name, "err", err)
	}
	if answer.Prompt != nil && g.r != nil {
		if d, ok := view.SecretDialog(*answer.Prompt, p.Words()); ok {
			if ok, _ := g.r.openDialog(ctx, d); ok {
				return nil
			}
		}
	}
	if answer.Text == "" {
		return nil
	}
	// The command has run: if its reply can't be sent, only that is retried. Running it
	// again could fail, for instance because a claim code is used up.
	err = l.wire.Retry(ctx, func(ctx context.Context) error {
		return l.tell(ctx, p, g.r, answer.Text, view.AnswerButtons(answer, p.Words())...)
	})
	if err == nil && answer.Picture != nil {
		l.sendPicture(ctx, p, g.r, *answer.Picture)
	}
	return account.Final(err, wire.Lasting)
}

// sendPicture shows a picture to the requester only; the reply's text has the same content.
func (l commander) sendPicture(ctx context.Context, p people.Person, r *response, picture bots.Picture) {
	data, err := picture.Draw()
	if err == nil {
		file := wire.File{Name: picture.Name, Data: data}
		text := p.Words().Say(phrases.PictureHere)
		if r != nil {
			err = r.tell(ctx, view.Text(text), file)
		} else {
			err = l.posts.SendFile(ctx, p, text, file)
		}
	}
	if err != nil && ctx.Err() == nil {
		l.log.Warn("showing a picture", "picture", picture.Name, "err", err)
	}
}

// openForm shows a command's dialog, or a choice of its dialogs if it has several, and
// reports whether it did; if not, the caller runs the command.
func (l commander) openForm(ctx context.Context, p people.Person, g given) bool {
	if g.cmd.Form == nil || g.asked.Words != "" || g.r == nil {
		return false
	}
	form := l.makeForm(ctx, g)
	if form == nil {
		return false
	}
	var err error
	opened := true
	if menu, ok := view.FormMenu(*form, g.cmd.Name, p.Words()); ok {
		err = g.r.tell(ctx, menu)
	} else if d, ok := view.FormDialog(*form, g.cmd.Name, 0); ok {
		opened, err = g.r.openDialog(ctx, d)
	}
	if err != nil {
		l.log.Info("a dialog was not opened", "command", g.cmd.Name, "err", err)
	}
	return opened && err == nil
}

func (l commander) makeForm(ctx context.Context, g given) *bots.Form {
	return account.MakeForm(ctx, g.cmd, g.asked, l.log, l.wg.Go)
}

// formOf returns the command of a dialog, or of the button that opens one.
func (l commander) formOf(p people.Person, at store.Address, rest string, r *response) (g given, page int, err error) {
	name, page, ok := view.ReadForm(rest)
	cmd, _, _, found := l.b.o.Commands.Find(p.Caller(), name, false)
	if !ok || !found || cmd.Form == nil || cmd.Name != name {
		return g, 0, store.Errorf("%w dialog", store.ErrInvalid)
	}
	at.Message = ""
	return given{cmd, p.Asked(at, ""), r}, page, nil
}

// openPage opens one of a command's dialogs.
func (l commander) openPage(ctx context.Context, p people.Person, at store.Address, rest string, r *response) error {
	g, page, err := l.formOf(p, at, rest, r)
	if err != nil {
		return err
	}
	form := l.makeForm(ctx, g)
	if form == nil { // they no longer have the rights; the command says so
		g.cmd.Form = nil
		return l.runCommand(ctx, p, g)
	}
	d, ok := view.FormDialog(*form, g.cmd.Name, page)
	if ok {
		if ok, err = r.openDialog(ctx, d); ok || err != nil && !wire.Refused(err) {
			return err
		}
	}
	return l.tell(ctx, p, r, p.Words().Say(phrases.DialogTooLate))
}

// fillForm applies the changed fields of a command's dialog.
func (l commander) fillForm(ctx context.Context, p people.Person, at store.Address, rest string, i incoming.Interaction, r *response) error {
	g, _, err := l.formOf(p, at, rest, r)
	if err != nil {
		return err
	}
	form, err := g.cmd.Form.Form(ctx, g.asked)
	if err != nil {
		return err
	}
	if form == nil { // they no longer have the rights; the command says so
		g.cmd.Form = nil
		return l.runCommand(ctx, p, g)
	}
	if i.Masked {
		return l.tell(ctx, p, r, p.Words().Say(phrases.KeyRefused))
	}
	values := view.Changed(i.Fields())
	maps.DeleteFunc(values, func(name string, _ []string) bool {
		return !slices.ContainsFunc(form.Fields, func(f bots.Field) bool { return f.Name == name })
	})
	if len(values) == 0 {
		return nil
	}
	if wrong := g.cmd.Form.Check(ctx, g.asked, values); len(wrong) > 0 {
		return l.tell(ctx, p, r, view.Wrong(wrong))
	}
	g.cmd = account.Filled(g.cmd, values)
	return l.runCommand(ctx, p, g)
}

// complete answers autocompletion with the names of existing things.
func (l commander) complete(ctx context.Context, i incoming.Interaction) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var names []string
	command, text := i.Typing()
	p, err := l.people.Who(ctx, i.User.ID, people.Recent)
	if err == nil && p.User.ID != "" && l.b.o.Keeper != nil {
		var home bots.Home
		if home, err = l.b.o.Keeper.Home(ctx, p.Asked(l.place(i.ChannelID, ""), "")); err == nil {
			names = namesFor(command, home)
		}
	}
	if err != nil {
		l.log.Info("completing a word", "command", command, "err", err)
	}
	return l.wire.Do(ctx, wire.Request{Method: "POST", Path: "interactions/" + i.ID + "/" + i.Token + "/callback", Body: view.Complete(names, text), Hook: true})
}

// namesFor returns the possible arguments of a command, with the names of existing things.
func namesFor(command string, h bots.Home) (words []string) {
	switch command {
	case "agent", "model":
		list := h.Agents
		if command == "model" {
			list = h.Models
		}
		for _, c := range list {
			words = append(words, c.Name)
		}
		words = append(words, "default")
	case "servers":
		for _, s := range h.Servers {
			words = append(words, map[bool]string{true: "allow ", false: "deny "}[s.Off]+s.Name)
		}
	case "credentials":
		for _, c := range h.Credentials {
			words = append(words, map[bool]string{true: "disconnect ", false: "connect "}[c.Connected]+c.Server)
		}
	case "tokens":
		for _, t := range h.Tokens {
			words = append(words, "revoke "+t.Name)
		}
	case "approve", "deny":
		for _, c := range h.Waiting {
			words = append(words, c.Call)
		}
	case "settings":
		for _, g := range h.Grants {
			words = append(words, "revoke "+g.ID)
		}
		for _, f := range h.Settings {
			for _, o := range f.Options {
				if !f.Many { // setting one value would replace all of them
					words = append(words, f.Name+" "+o.Value)
				}
			}
			if len(f.Options) == 0 || f.Many {
				words = append(words, f.Name+" default")
			}
		}
	case "streaming":
		words = []string{"on", "off"}
	case "channel":
		words = []string{"mode follow", "mode mention", "mode all", "agent default", "model default", "language default", "servers none", "show"}
		for _, a := range h.Agents {
			words = append(words, "agent "+a.Name)
		}
	}
	return words
}
