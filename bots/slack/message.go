package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/attachments"
	"nize/bots/slack/home"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

// talk makes of what people say and ask a message of their conversation.
type talk struct {
	store       Threads
	begins      func(ctx context.Context, by store.Caller, agent, model string) (string, string) // see [Options]
	commands    *commander
	access      *access
	people      *people.Directory
	posts       *posting.Poster
	homes       *home.Homes
	attachments *attachments.Fetcher
	handler     bots.Handler
	wire        *wire.Client
	now         func() time.Time
	log         *slog.Logger
	team, self  string // the workspace, and nize's own id there
}

// Threads are the conversations, and the channels that they are in.
type Threads interface {
	FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	ThreadAt(ctx context.Context, by store.Caller, th store.Thread) (store.Thread, bool, error)
	EditThread(ctx context.Context, by store.Caller, id string, edit func(*store.Thread)) (store.Thread, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
}

// handleEvent works on one event.
func (l *talk) handleEvent(ctx context.Context, e incoming.Event) error {
	if !happenedHere(&e, l.team) {
		return nil // of the account before this one
	}
	switch e.Type {
	case "message", "app_mention":
		return l.handleMessage(ctx, e)
	}
	return l.handleOther(ctx, e)
}

// handleMessage works on a message of a person's.
func (l *talk) handleMessage(ctx context.Context, e incoming.Event) error {
	addressed := e.Addresses(l.self)
	at := place(l.team, e.Channel, e.Root())
	th, err := l.store.FindThread(ctx, at)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if !addressed {
		if answer, err := l.answersUnaddressed(ctx, &e, th, known); err != nil || !answer {
			return err
		}
	}
	p, err := l.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	text := incoming.ReadText(e.Text, l.self, l.people.NameFor(ctx))
	if p.User.ID == "" {
		if !addressed {
			return nil
		}
		if done, err := l.commands.runClaim(ctx, p, place(l.team, e.Channel, e.PrivateThread()), text, ""); done || err != nil {
			return err
		}
		return errors.Join(l.setFollowed(ctx, th, ""), l.access.tellNoAccess(ctx, p, e.Channel, e.Thread))
	}
	l.access.welcome(ctx, p, e.Channel, e.PrivateThread())
	if e.Masked {
		l.access.tellMaskedKey(ctx, p, e.Channel+":"+e.TS, e.Channel, e.PrivateThread())
	}
	if addressed {
		if done, err := l.runCommandIn(ctx, p, e, th.ID, text); done || err != nil {
			return errors.Join(l.setFollowed(ctx, th, p.ID), err)
		}
	}
	if text == "" {
		if text = incoming.Wordless(&e.Message); text == "" {
			return l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.WhatToDo))
		}
	}
	return l.say(ctx, p, e, text)
}

// say gives what a person said to the conversation of its thread, with what
// came with it.
func (l *talk) say(ctx context.Context, p people.Person, e incoming.Event, text string) error {
	return l.ask(ctx, p, e, attachments.Question{Text: text})
}

func (l *talk) ask(ctx context.Context, p people.Person, e incoming.Event, s attachments.Question) error {
	text := s.Text
	at := place(l.team, e.Channel, e.Root())
	channel, err := l.store.GetChannel(ctx, at.Place())
	if err != nil {
		return fmt.Errorf("reading how the channel is set up: %w", err)
	}
	agent, model := channel.Agent, channel.Model
	if l.begins != nil {
		agent, model = l.begins(ctx, p.Caller(), agent, model)
	}
	th, _, err := l.store.ThreadAt(ctx, p.Caller(), store.Thread{
		Agent: agent, Model: model,
		ID: store.NewID(l.now()), User: p.User.ID, Address: at, Zone: p.Zone, Locale: p.Locale, Title: incoming.TitleOf(text, incoming.DecodeFiles(e.Files)), Follows: p.ID,
	})
	if err != nil {
		return err
	}
	th.LastMessage = cmp.Or(th.LastMessage, incoming.StampOf(th.Since))
	// What one person reads alone is in their language, also when it changes.
	alone := e.Channel[0] == 'D' && (th.Locale != p.Locale || th.Zone != p.Zone)
	if th.Follows != p.ID || alone {
		_, err := l.store.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) {
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
		l.tellUnreadFiles(ctx, p, e, in.Files)
	}
	if err == nil {
		err = l.recordLastMessage(ctx, p, th, came.LastMessage)
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

// recordLastMessage notes up to which message a thread is known.
func (l *talk) recordLastMessage(ctx context.Context, p people.Person, th store.Thread, ts string) error {
	if ts <= th.LastMessage { // stamps of one length, until the year 2286
		return nil
	}
	_, err := l.store.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) { th.LastMessage = max(th.LastMessage, ts) })
	return err
}

// tellUnreadFiles tells somebody in one line which files were not read and why.
func (l *talk) tellUnreadFiles(ctx context.Context, p people.Person, e incoming.Event, files []store.File) {
	if line := bots.UnreadLine(p.Words(), files); line != "" {
		if err := l.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), line); err != nil {
			l.log.Warn("telling which files were not read", "user", p.ID, "err", err)
		}
	}
}
