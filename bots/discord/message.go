package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/phrases"
	"nize/store"
)

// handleMessage turns a person's message into a message of their conversation, or runs it
// as a command.
func (l *live) handleMessage(ctx context.Context, m incoming.Message, act string) error {
	at, err := l.people.Place(ctx, m.ChannelID)
	if err != nil {
		return err
	}
	if at.Thread == "" {
		at.Thread = m.ID // which it may begin
	}
	threads := l.b.o.Store.Threads
	th, err := threads.FindThread(ctx, at)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	addressed := m.Addresses(l.account.User)
	if !addressed {
		if answer, err := l.talk.Answers(ctx, account.Overheard{At: at, Author: m.Author.ID, All: m.MentionEveryone, Others: m.Others(l.account.User), Known: known}, th); err != nil || !answer {
			return err
		}
	}
	p, err := l.people.Who(ctx, m.Author.ID, people.Recent)
	if err != nil {
		return err
	}
	p.Act = act
	text := m.Words(l.account.User, l.people.NameOf)
	if p.User.ID == "" {
		if !addressed {
			return nil
		}
		if done, err := l.commands.runClaim(ctx, p, at, text, nil); done || err != nil {
			return err
		}
		return errors.Join(l.talk.Follow(ctx, th, ""), l.tellNoAccess(ctx, p, nil))
	}
	l.welcome(ctx, p, nil)
	if m.Masked {
		l.tellMasked(ctx, p, nil, m.ID)
	}
	if addressed {
		if done, err := l.runCommandIn(ctx, p, at, m, th.ID, text); done || err != nil {
			return errors.Join(l.talk.Follow(ctx, th, p.ID), err)
		}
	}
	if text == "" && len(m.Attachments) == 0 && m.ReferencedMessage == nil {
		return l.tell(ctx, p, nil, p.Words().Say(phrases.WhatToDo))
	}
	return l.ask(ctx, p, at, m.ID, questionOf(m, text))
}

// runCommandIn runs a message as a command if it is one. done reports that it was, or that
// its author was asked what they meant.
func (l *live) runCommandIn(ctx context.Context, p people.Person, at store.Address, m incoming.Message, thread, text string) (done bool, err error) {
	cmd, words, near, ok := l.b.o.Commands.Find(p.Caller(), text, true)
	if !ok {
		if near == "" {
			return false, nil
		}
		return true, l.tell(ctx, p, nil, p.Words().Say(phrases.DidYouMean, near))
	}
	asked := p.Asked(at, words)
	asked.Thread, asked.Open = thread, !m.Direct()
	asked.Say = func(ctx context.Context, words string) error { return l.ask(ctx, p, at, m.ID, questionOf(m, words)) }
	return true, l.commands.runCommand(ctx, p, given{cmd, asked, nil})
}

// question is what a person asks nize, with what accompanies it.
type question struct {
	text    string
	files   []*discordgo.MessageAttachment
	about   *incoming.Message // the message that the question is about
	before  string            // the message; earlier ones of its thread are looked up
	mention bool
}

func questionOf(m incoming.Message, text string) question {
	q := question{text: text, files: m.Attachments, about: m.Reply(), before: m.ID, mention: !m.Direct() && len(m.Mentions) > 0}
	if q.text == "" {
		q.text = "?" // only a file, or only a message that it replies to
		if len(m.Attachments) > 0 {
			q.text = "[" + bots.Escape(store.Clip(m.Attachments[0].Filename, 100)) + "]"
		}
	}
	return q
}

// ask gives a person's message to the conversation of its thread, and creates the
// conversation if needed.
func (l *live) ask(ctx context.Context, p people.Person, at store.Address, key string, q question) error {
	threads := l.b.o.Store.Threads
	title := incoming.TitleOf(q.text, q.files)
	if !at.Direct {
		if err := l.openThread(ctx, at, title); err != nil {
			if wire.Refused(err) {
				l.log.Warn("Discord lets nize open no thread", "channel", at.Channel, "err", err)
				return l.tell(ctx, p, nil, p.Words().Say(phrases.NoThread, "<#"+at.Channel+">"))
			}
			return err
		}
	}
	th, err := l.talk.Open(ctx, account.Asker{By: p.Caller(), ID: p.ID, Locale: p.Locale, Zone: p.Zone, Alone: at.Direct}, at, title)
	if text, ok := account.Declined(err, p.Words()); ok {
		return l.tell(ctx, p, nil, text)
	}
	if err != nil {
		return err
	}
	in := store.Inbound{Key: key, Thread: th.ID, By: p.Caller(), Text: q.text}
	if in.Files, err = l.attached.readFiles(ctx, p.Caller(), th.ID, q.files); err != nil {
		return err
	}
	newest := ""
	in.Earlier, newest = l.attached.earlier(ctx, at, th, q)
	fresh, err := l.handler.Message(ctx, in)
	if line := bots.UnreadLine(p.Words(), in.Files); fresh && line != "" {
		if err := l.tell(ctx, p, nil, line); err != nil {
			l.log.Warn("telling which files were not read", "user", p.ID, "err", err)
		}
	}
	if err == nil && incoming.Later(newest, th.LastMessage) {
		_, err = threads.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) {
			if incoming.Later(newest, th.LastMessage) {
				th.LastMessage = newest
			}
		})
	}
	if text, ok := account.Declined(err, p.Words()); ok {
		return l.tell(ctx, p, nil, text)
	}
	return err
}

// archiveAfter is the number of minutes without a message after which Discord archives a
// thread; a message unarchives it.
const archiveAfter = 1440

// openThread opens the thread of a message in a channel; it succeeds if the thread exists
// already.
func (l *live) openThread(ctx context.Context, at store.Address, title string) error {
	if c, ok := l.people.KnownChannel(at.Thread); ok && c.IsThread() {
		return nil
	}
	var made discordgo.Channel
	err := l.wire.Do(ctx, wire.Request{
		Method: "POST", Path: "channels/" + at.Channel + "/messages/" + at.Thread + "/threads",
		Body: discordgo.ThreadStart{Name: cmp.Or(title, "nize"), AutoArchiveDuration: archiveAfter}, Into: &made,
	})
	switch {
	case wire.Code(err) == discordgo.ErrCodeThreadAlreadyCreatedForThisMessage:
		return nil
	case err != nil:
		return fmt.Errorf("opening a thread: %w", err)
	}
	made.ParentID = cmp.Or(made.ParentID, at.Channel)
	l.people.SetChannel(made)
	return nil
}

// beginThread asks the question of a command: since a command leaves no message, nize posts
// the question and answers below it.
func (l *live) beginThread(ctx context.Context, p people.Person, at store.Address, key, shown string, q question) error {
	locale, err := bots.Spoken(ctx, l.b.o.Store.Threads, store.Thread{Address: at, Locale: p.Locale})
	if err != nil {
		return fmt.Errorf("reading the language of the channel: %w", err)
	}
	line := view.Text(view.Escape(phrases.For(locale).Say(phrases.AsksHere, p.Name, shown)))
	to := at
	to.Message = ""
	id, err := l.posts.Put(ctx, to, "ask/"+key, line)
	if wire.Refused(err) { // nize may not post there
		channel, err := l.people.OpenDM(ctx, p.ID)
		if err != nil {
			return err
		}
		to = store.Address{Surface: store.OnDiscord, Team: l.guild, Channel: channel, Thread: channel, Direct: true}
		if _, err := l.posts.Put(ctx, to, "ask/"+key, line); err != nil {
			return fmt.Errorf("writing a question down: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("writing a question down: %w", err)
	}
	if to.Thread == "" {
		to.Thread = id
	}
	return l.ask(ctx, p, to, key, q)
}

// openAbout opens a dialog for a question about a message.
func (l *live) openAbout(ctx context.Context, p people.Person, i incoming.Interaction, r *response) error {
	if i.Target() == "" {
		return fmt.Errorf("%w command: no message", store.ErrInvalid)
	}
	ok, err := r.openDialog(ctx, view.AboutDialog(i.Target(), p.Words()))
	if !ok && (err == nil || wire.Refused(err)) {
		return l.tell(ctx, p, r, p.Words().Say(phrases.DialogTooLate))
	}
	return err
}

// askAbout asks the question from that dialog, in the thread of the message or in a new one
// below the question.
func (l *live) askAbout(ctx context.Context, p people.Person, at store.Address, message string, i incoming.Interaction, r *response) error {
	text := strings.TrimSpace(first(i.Fields()[view.AboutID]))
	if text == "" || !incoming.IDForm.MatchString(message) {
		return fmt.Errorf("%w dialog: no question", store.ErrInvalid)
	}
	sees, err := l.people.Sees(ctx, at.Channel, p)
	if err != nil {
		return err
	}
	var m incoming.Message
	if !at.Direct && !sees {
		return store.ErrNotFound
	}
	if err := l.wire.Do(ctx, wire.Request{Method: "GET", Path: "channels/" + i.ChannelID + "/messages/" + message, Into: &m}); err != nil {
		return err
	}
	m.Mask()
	at.Message = ""
	return l.beginThread(ctx, p, at, i.ID, text, question{text: text, about: &m, files: m.Attachments})
}

func joinLines(lines []string) string { return strings.Join(lines, "\n") }
