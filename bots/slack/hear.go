package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
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
	addressed := l.addressed(&e)
	at := l.place(e.Channel, e.Root())
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
	p, err := l.who(ctx, e.User, keepPerson)
	if err != nil {
		return err
	}
	text := incoming.ReadText(e.Text, l.account.User, l.nameFor(ctx))
	if p.user.ID == "" {
		if !addressed {
			return nil
		}
		if done, err := l.claims(ctx, p, l.place(e.Channel, e.PrivateThread()), text, ""); done || err != nil {
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
			return errors.Join(l.followOn(ctx, th, p.id), err)
		}
	}
	if text == "" {
		if text = incoming.Wordless(&e.Message); text == "" {
			return l.tell(ctx, p, e.Channel, e.PrivateThread(), p.words().Say(phrases.WhatToDo))
		}
	}
	return l.hear(ctx, p, e, text)
}

// hear gives what a person said to the conversation of its thread, with what
// came with it.
func (l *live) hear(ctx context.Context, p person, e incoming.Event, text string) error {
	return l.hearAll(ctx, p, e, speech{text: text})
}

func (l *live) hearAll(ctx context.Context, p person, e incoming.Event, s speech) error {
	text := s.text
	at := l.place(e.Channel, e.Root())
	room, err := l.b.o.Store.GetChannel(ctx, at.Place())
	if err != nil {
		return fmt.Errorf("reading how the channel is set up: %w", err)
	}
	agent, model := room.Agent, room.Model
	if l.b.o.Begins != nil {
		agent, model = l.b.o.Begins(ctx, p.by(), agent, model)
	}
	th, _, err := l.b.o.Store.ThreadAt(ctx, p.by(), store.Thread{
		Agent: agent, Model: model,
		ID: store.NewID(l.b.o.Now()), User: p.user.ID, Address: at, Zone: p.zone, Locale: p.locale, Title: incoming.TitleOf(text, incoming.DecodeFiles(e.Files)), Follows: p.id,
	})
	if err != nil {
		return err
	}
	th.LastMessage = cmp.Or(th.LastMessage, incoming.StampOf(th.Since))
	// What one person reads alone is in their language, also when it changes.
	alone := e.Channel[0] == 'D' && (th.Locale != p.locale || th.Zone != p.zone)
	if th.Follows != p.id || alone {
		_, err := l.b.o.Store.EditThread(ctx, p.by(), th.ID, func(th *store.Thread) {
			th.Follows = p.id
			if alone {
				th.Locale, th.Zone = p.locale, p.zone
			}
		})
		if err != nil {
			return err
		}
	}
	came, err := l.companyOf(ctx, p, e, s, th)
	if err != nil {
		return err
	}
	in := store.Inbound{Key: e.Channel + ":" + e.TS, Thread: th.ID, By: p.by(), Text: text, Files: came.files, Earlier: came.earlier}
	fresh, err := l.handler.Message(ctx, in)
	if fresh {
		l.tellUnread(ctx, p, e, in.Files)
	}
	if err == nil {
		err = l.noteHeard(ctx, p, th, came.heard)
	}
	var many *bots.TooManyError
	switch {
	case errors.As(err, &many):
		return l.tell(ctx, p, e.Channel, e.PrivateThread(), many.Words(p.words()))
	case errors.Is(err, store.ErrInvalid):
		return l.tell(ctx, p, e.Channel, e.PrivateThread(), p.words().Say(phrases.TooLong))
	case errors.Is(err, store.ErrRefused):
		return l.tell(ctx, p, e.Channel, e.PrivateThread(), p.words().Say(phrases.CardTold, view.ErrorText(p.words(), err)))
	}
	return err
}
