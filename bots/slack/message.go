package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/phrases"
	"nize/bots/slack/attachments"
	"nize/bots/slack/home"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/bots/slack/wire"
	"nize/store"
)

// talk turns what people write into messages of their conversations.
type talk struct {
	*account.Talk
	store       account.Threads
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
	team, self  string // the workspace, and nize's own id in it
}

// handleEvent handles one event.
func (t *talk) handleEvent(ctx context.Context, e incoming.Event, act string) error {
	if !happenedHere(&e, t.team) {
		return nil // for an earlier account
	}
	switch e.Type {
	case "message", "app_mention":
		return t.handleMessage(ctx, e, act)
	}
	return t.handleOther(ctx, e)
}

// handleMessage handles a person's message.
func (t *talk) handleMessage(ctx context.Context, e incoming.Event, act string) error {
	addressed := e.Addresses(t.self)
	at := place(t.team, e.Channel, e.Root())
	th, err := t.store.FindThread(ctx, at)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if !addressed {
		if answer, err := t.Answers(ctx, account.Overheard{At: at, Author: e.User, All: incoming.Broadcasts(&e.Message), Others: incoming.Others(&e.Message, t.self), Known: known}, th); err != nil || !answer {
			return err
		}
	}
	p, err := t.people.Who(ctx, e.User, people.Recent)
	if err != nil {
		return err
	}
	p.Act = act
	text := incoming.MessageText(&e.Message, t.self, t.people.NameFor(ctx))
	if p.User.ID == "" {
		if !addressed {
			return nil
		}
		if done, err := t.commands.runClaim(ctx, p, place(t.team, e.Channel, e.PrivateThread()), text, ""); done || err != nil {
			return err
		}
		return errors.Join(t.Follow(ctx, th, ""), t.access.tellNoAccess(ctx, p, e.Channel, e.ThreadTimestamp))
	}
	t.access.welcome(ctx, p, e.Channel, e.PrivateThread())
	if e.Masked {
		t.access.tellMaskedKey(ctx, p, e.Channel+":"+e.Timestamp, e.Channel, e.PrivateThread())
	}
	if addressed {
		if done, err := t.runCommandIn(ctx, p, e, th.ID, text); done || err != nil {
			return errors.Join(t.Follow(ctx, th, p.ID), err)
		}
	}
	if text == "" {
		if text = incoming.Wordless(&e.Message); text == "" {
			return t.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), p.Words().Say(phrases.WhatToDo))
		}
	}
	return t.say(ctx, p, e, text)
}

// say gives a person's message, with its attachments, to the conversation of its thread.
func (t *talk) say(ctx context.Context, p people.Person, e incoming.Event, text string) error {
	return t.ask(ctx, p, e, attachments.Question{Text: text})
}

func (t *talk) ask(ctx context.Context, p people.Person, e incoming.Event, s attachments.Question) error {
	text := s.Text
	at := place(t.team, e.Channel, e.Root())
	who := account.Asker{By: p.Caller(), ID: p.ID, Locale: p.Locale, Zone: p.Zone, Alone: e.Channel[0] == 'D'}
	th, err := t.Open(ctx, who, at, incoming.TitleOf(text, incoming.DecodeFiles(e.Files)))
	if text, ok := account.Declined(err, p.Words()); ok {
		return t.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), text)
	}
	if err != nil {
		return err
	}
	th.LastMessage = cmp.Or(th.LastMessage, incoming.StampOf(th.Since))
	came, err := t.attachments.Fetch(ctx, p, e, s, th)
	if err != nil {
		return err
	}
	in := store.Inbound{Key: e.Channel + ":" + e.Timestamp, Thread: th.ID, By: p.Caller(), Text: text, Files: came.Files, Earlier: came.Earlier}
	fresh, err := t.handler.Message(ctx, in)
	if fresh {
		t.tellUnreadFiles(ctx, p, e, in.Files)
	}
	if err == nil {
		err = t.recordLastMessage(ctx, p, th, came.LastMessage)
	}
	if text, ok := account.Declined(err, p.Words()); ok {
		return t.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), text)
	}
	return err
}

// recordLastMessage records the newest message of a thread that nize has read.
func (t *talk) recordLastMessage(ctx context.Context, p people.Person, th store.Thread, ts string) error {
	if ts <= th.LastMessage { // timestamps have the same length until the year 2286
		return nil
	}
	_, err := t.store.EditThread(ctx, p.Caller(), th.ID, func(th *store.Thread) { th.LastMessage = max(th.LastMessage, ts) })
	return err
}

// tellUnreadFiles tells a person in one line which files were not read, and why.
func (t *talk) tellUnreadFiles(ctx context.Context, p people.Person, e incoming.Event, files []store.File) {
	if line := bots.UnreadLine(p.Words(), files); line != "" {
		if err := t.posts.Tell(ctx, p, e.Channel, e.PrivateThread(), line); err != nil {
			t.log.Warn("telling which files were not read", "user", p.ID, "err", err)
		}
	}
}
