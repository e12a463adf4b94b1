package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/attachments"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// event works on one event.
func (l *live) event(ctx context.Context, e incoming.Event) error {
	if !l.ours(&e) {
		return nil // of the account before this one
	}
	switch e.Type {
	case "message", "app_mention":
		return l.message(ctx, e)
	}
	return l.stage(ctx, e)
}

// message works on a message of a person's.
func (l *live) message(ctx context.Context, e incoming.Event) error {
	addressed := e.Addresses(l.account.User)
	at := place(l.account.Team, e.Channel, e.Root())
	th, err := l.b.o.Store.FindThread(ctx, at)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if !addressed {
		if answer, err := l.follows(ctx, &e, th, known); err != nil || !answer {
			return err
		}
	}
	p, err := l.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	text := incoming.ReadText(e.Text, l.account.User, l.people.NameFor(ctx))
	if p.User.ID == "" {
		if !addressed {
			return nil
		}
		if done, err := l.claims(ctx, p, place(l.account.Team, e.Channel, e.PrivateThread()), text, ""); done || err != nil {
			return err
		}
		return errors.Join(l.followOn(ctx, th, ""), l.refuse(ctx, p, e.Channel, e.Thread))
	}
	l.welcome(ctx, p, e.Channel, e.PrivateThread())
	if e.Masked {
		l.tellMasked(ctx, p, e.Channel+":"+e.TS, e.Channel, e.PrivateThread())
	}
	if addressed {
		if done, err := l.command(ctx, p, e, th.ID, text); done || err != nil {
			return errors.Join(l.followOn(ctx, th, p.ID), err)
		}
	}
	if text == "" {
		if text = incoming.Wordless(&e.Message); text == "" {
			return l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.WhatToDo))
		}
	}
	return l.hear(ctx, p, e, text)
}

// hear gives what a person said to the conversation of its thread, with what
// came with it.
func (l *live) hear(ctx context.Context, p people.Person, e incoming.Event, text string) error {
	return l.hearAll(ctx, p, e, attachments.Question{Text: text})
}

func (l *live) hearAll(ctx context.Context, p people.Person, e incoming.Event, s attachments.Question) error {
	text := s.Text
	at := place(l.account.Team, e.Channel, e.Root())
	room, err := l.b.o.Store.GetChannel(ctx, at.Place())
	if err != nil {
		return fmt.Errorf("reading how the channel is set up: %w", err)
	}
	agent, model := room.Agent, room.Model
	if l.b.o.Begins != nil {
		agent, model = l.b.o.Begins(ctx, p.Caller(), agent, model)
	}
	th, _, err := l.b.o.Store.ThreadAt(ctx, p.Caller(), store.Thread{
		Agent: agent, Model: model,
		ID: store.NewID(l.b.o.Now()), User: p.User.ID, Address: at, Zone: p.Zone, Locale: p.Locale, Title: incoming.TitleOf(text, incoming.DecodeFiles(e.Files)), Follows: p.ID,
	})
	if err != nil {
		return err
	}
	th.LastMessage = cmp.Or(th.LastMessage, incoming.StampOf(th.Since))
	// What one person reads alone is in their language, also when it changes.
	alone := e.Channel[0] == 'D' && (th.Locale != p.Locale || th.Zone != p.Zone)
	if th.Follows != p.ID || alone {
		_, err := l.b.o.Store.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) {
			th.Follows = p.ID
			if alone {
				th.Locale, th.Zone = p.Locale, p.Zone
			}
		})
		if err != nil {
			return err
		}
	}
	came, err := l.attachments.Fetch(ctx, p, e, s, th)
	if err != nil {
		return err
	}
	in := store.Inbound{Key: e.Channel + ":" + e.TS, Thread: th.ID, By: p.Caller(), Text: text, Files: came.Files, Earlier: came.Earlier}
	fresh, err := l.handler.Message(ctx, in)
	if fresh {
		l.tellUnread(ctx, p, e, in.Files)
	}
	if err == nil {
		err = l.noteHeard(ctx, p, th, came.LastMessage)
	}
	var many *bots.TooManyError
	switch {
	case errors.As(err, &many):
		return l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), many.Words(p.Words()))
	case errors.Is(err, store.ErrInvalid):
		return l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.TooLong))
	case errors.Is(err, store.ErrRefused):
		return l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.CardTold, view.ErrorText(p.Words(), err)))
	}
	return err
}

// noteHeard notes up to which message a thread is known.
func (l *live) noteHeard(ctx context.Context, p people.Person, th store.Thread, ts string) error {
	if ts <= th.LastMessage { // stamps of one length, until the year 2286
		return nil
	}
	_, err := l.b.o.Store.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) { th.LastMessage = max(th.LastMessage, ts) })
	return err
}

// tellUnread tells somebody in one line which files were not read and why.
func (l *live) tellUnread(ctx context.Context, p people.Person, e incoming.Event, files []store.File) {
	if line := bots.UnreadLine(p.Words(), files); line != "" {
		if err := l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), line); err != nil {
			l.log.Warn("telling which files were not read", "user", p.ID, "err", err)
		}
	}
}
