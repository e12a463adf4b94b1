package discordtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Kinds of interactions.
const (
	slashKind  = 2
	pressKind  = 3
	typingKind = 4 // autocompletion
	submitKind = 5
)

// Kinds of answers.
const (
	answerMessage  = 4
	answerDeferred = 5
	answerLater    = 6 // of a component: nothing changes yet
	answerUpdate   = 7
	answerChoices  = 8
	answerModal    = 9
)

// interaction is one thing that a person pressed or typed.
type interaction struct {
	id, token     string
	kind          int
	user, channel string
	message       string // of a component, or of a modal that came from one
	began         time.Time
	answered      int // kind of the answer
	deferred      bool
	original      string // the message of the answer
	choices       []Choice
	settled       bool
	err           error
	done          chan struct{} // closed when settled
}

// ErrNoAnswer is what a person sees as "This interaction failed".
var ErrNoAnswer = errors.New("discordtest: the bot did not answer the interaction in time")

// settleLocked ends the wait of who pressed; s.Mu must be held.
func (in *interaction) settleLocked(err error) {
	if !in.settled {
		in.settled, in.err = true, err
		close(in.done)
	}
}

type wireInteraction struct {
	ID           string            `json:"id"`
	App          string            `json:"application_id"`
	Type         int               `json:"type"`
	Data         any               `json:"data"`
	GuildID      string            `json:"guild_id,omitempty"`
	ChannelID    string            `json:"channel_id"`
	Channel      wireChannel       `json:"channel"`
	Member       *wireMember       `json:"member,omitempty"`
	User         *wireUser         `json:"user,omitempty"`
	Token        string            `json:"token"`
	Version      int               `json:"version"`
	Message      *wireMessage      `json:"message,omitempty"`
	Permissions  string            `json:"app_permissions"`
	Locale       string            `json:"locale"`
	GuildLocale  string            `json:"guild_locale,omitempty"`
	Entitlements []struct{}        `json:"entitlements"`
	Owners       map[string]string `json:"authorizing_integration_owners"`
	Context      int               `json:"context"`
	SizeLimit    int               `json:"attachment_size_limit"`
}

// ask sends an interaction and waits for its answer.
func (s *Server) ask(ctx context.Context, in *interaction, data any) error {
	s.Mu.Lock()
	err := s.askLocked(in, data)
	s.TouchLocked()
	s.Mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-in.done:
		return in.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) askLocked(in *interaction, data any) error {
	c, u := s.world.channel(in.channel), s.world.user(in.user)
	if c == nil || u == nil || !s.world.sees(c, in.user) {
		return fmt.Errorf("discordtest: %s is not in channel %s", in.user, in.channel)
	}
	if len(s.sessions) == 0 {
		return ErrNoAnswer
	}
	in.id, in.began, in.done = s.idLocked(), s.opt.Now(), make(chan struct{})
	in.token = "token-" + in.id
	s.interactions[in.id], s.tokens[in.token] = in, in
	out := wireInteraction{
		ID: in.id, App: App, Type: in.kind, Data: data, GuildID: c.Guild, ChannelID: c.ID, Channel: s.wireChannelLocked(c), Token: in.token, Version: 1,
		Permissions: strconv.FormatInt(s.world.permissions(c, Bot), 10), Locale: u.Locale, Entitlements: []struct{}{}, SizeLimit: maxFile,
		Owners: map[string]string{"0": c.Guild},
	}
	theirs := strconv.FormatInt(s.world.permissions(c, in.user), 10)
	out.Channel.Permissions = theirs
	user := u.wire()
	if g := s.world.guild(c.Guild); g != nil {
		out.Member = s.world.wireMember(g.member(in.user), true)
		out.Member.Permissions, out.GuildLocale = theirs, g.locale
	} else {
		out.User, out.Context = &user, 1
	}
	if m := s.world.message(in.channel, in.message); m != nil && in.kind != slashKind {
		w := s.eventMessageLocked(m, true)
		out.Message = &w
	}
	s.eventLocked(0, "INTERACTION_CREATE", same(out))
	s.AfterLocked(s.opt.Patience, func() {
		if !in.settled {
			s.stats.Missed++
			in.settleLocked(ErrNoAnswer)
			s.TouchLocked()
		}
	})
	return nil
}

type callbackBody struct {
	Type int             `json:"type"`
	Data json.RawMessage `json:"data"`
}

// mayAnswer are the kinds of answers that a kind of interaction takes.
func (in *interaction) mayAnswer() []int {
	switch {
	case in.kind == slashKind:
		return []int{answerMessage, answerDeferred, answerModal}
	case in.kind == pressKind:
		return []int{answerMessage, answerDeferred, answerLater, answerUpdate, answerModal}
	case in.kind == typingKind:
		return []int{answerChoices}
	case in.message != "":
		return []int{answerMessage, answerDeferred, answerLater, answerUpdate}
	}
	return []int{answerMessage, answerDeferred}
}

func (s *Server) callback(c *call) (any, error) {
	in := s.interactions[c.PathValue("id")]
	switch {
	case in == nil || in.token != c.PathValue("token"):
		return nil, errUnknownInter
	case in.answered != 0:
		return nil, errAcked
	case in.settled || s.opt.Now().Sub(in.began) > s.opt.Patience:
		return nil, errUnknownInter
	}
	var body callbackBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if allowed := in.mayAnswer(); !slices.Contains(allowed, body.Type) {
		ck := &checker{}
		ck.wrong("type", "BASE_TYPE_CHOICES", fmt.Sprintf("Value must be one of %v.", allowed))
		return nil, ck.err()
	}
	if err := s.answerLocked(in, body, c); err != nil {
		return nil, err
	}
	in.answered = body.Type
	s.stats.MaxAnswer = max(s.stats.MaxAnswer, s.opt.Now().Sub(in.began))
	in.settleLocked(nil)
	return nil, nil
}

type choicesBody struct {
	Choices []Choice `json:"choices"`
}

func (s *Server) answerLocked(in *interaction, body callbackBody, c *call) error {
	part := &call{Request: c.Request, body: body.Data, files: c.files}
	switch body.Type {
	case answerChoices:
		var got choicesBody
		if err := part.decode(&got); err != nil {
			return err
		}
		ck := &checker{}
		ck.count("data.choices", len(got.Choices), 0, 25)
		for i, choice := range got.Choices {
			choice.check(ck, "data.choices."+strconv.Itoa(i))
		}
		in.choices = got.Choices
		return ck.err()
	case answerModal:
		var got modalDraft
		if err := part.decode(&got); err != nil {
			return err
		}
		if err := checkModal(got); err != nil {
			return err
		}
		s.dialogs[in.user] = &Dialog{ID: in.id, User: in.user, Channel: in.channel, CustomID: got.CustomID, Title: got.Title, Fields: fieldsOf(got.Components), from: in.message}
		return nil
	case answerLater:
		in.original = in.message
		return nil
	}
	var d draft
	if err := part.decode(&d); err != nil {
		return err
	}
	if body.Type == answerUpdate {
		m := s.world.message(in.channel, in.message)
		if m == nil {
			return errUnknownMessage
		}
		in.original = in.message
		_, err := s.editLocked(m, part)
		return err
	}
	in.deferred = body.Type == answerDeferred
	if !in.deferred {
		if err := checkDraft(d, part.files, true); err != nil {
			return err
		}
	}
	m := s.replyLocked(in, d, part.files, in.deferred)
	in.original = m.ID
	return nil
}

// replyLocked puts an answer of the bot's into the channel.
func (s *Server) replyLocked(in *interaction, d draft, files map[string]File, loading bool) *Message {
	m := &Message{ID: s.idLocked(), Channel: in.channel, Author: Bot, interaction: in, Loading: loading}
	m.Type = map[int]int{slashKind: commandType}[in.kind]
	if in.message != "" {
		m.Type, m.Reply = replyType, in.message
	}
	if d.Flags != nil && *d.Flags&Ephemeral != 0 {
		m.For, m.Flags = in.user, Ephemeral
	}
	if loading {
		m.Flags |= Loading
	}
	s.applyLocked(m, d, files)
	s.addLocked(m)
	return m
}

// ofToken is the interaction of a webhook's path.
func (s *Server) ofToken(c *call) (*interaction, error) {
	in := s.tokens[c.PathValue("token")]
	switch {
	case in == nil || c.PathValue("app") != App:
		return nil, errUnknownWebhook
	case s.opt.Now().Sub(in.began) > s.opt.TokenLife:
		return nil, errWebhookToken
	case in.answered == 0 || in.answered == answerChoices || in.answered == answerModal:
		return nil, errUnknownWebhook
	}
	return in, nil
}

func (s *Server) followUp(c *call) (any, error) {
	in, err := s.ofToken(c)
	if err != nil {
		return nil, err
	}
	if m := s.world.message(in.channel, in.original); m != nil && m.Loading {
		return s.editLocked(m, c) // the first one fills what was deferred
	}
	var d draft
	if err := c.decode(&d); err != nil {
		return nil, err
	}
	if err := checkDraft(d, c.files, true); err != nil {
		return nil, err
	}
	return s.wireLocked(s.replyLocked(in, d, c.files, false), true), nil
}

func (s *Server) ofFollowUp(c *call) (*Message, error) {
	in, err := s.ofToken(c)
	if err != nil {
		return nil, err
	}
	id := c.PathValue("message")
	if id == "@original" {
		id = in.original
	}
	m := s.world.message(in.channel, id)
	if m == nil || m.interaction != in && id != in.original {
		return nil, errUnknownMessage
	}
	return m, nil
}

func (s *Server) editFollowUp(c *call) (any, error) {
	m, err := s.ofFollowUp(c)
	if err != nil {
		return nil, err
	}
	return s.editLocked(m, c)
}

func (s *Server) deleteFollowUp(c *call) (any, error) {
	m, err := s.ofFollowUp(c)
	if err != nil {
		return nil, err
	}
	s.deleteLocked(m)
	return nil, nil
}
