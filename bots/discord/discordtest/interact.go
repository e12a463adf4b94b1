package discordtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"nize/bots/chattest"
)

// Types of interactions.
const (
	slashKind  = 2
	pressKind  = 3
	typingKind = 4 // autocompletion
	submitKind = 5
)

// Types of answers.
const (
	answerMessage  = 4
	answerDeferred = 5
	answerLater    = 6 // for a component: nothing changes yet
	answerUpdate   = 7
	answerChoices  = 8
	answerModal    = 9
)

// interaction is a person's press or command.
type interaction struct {
	id, token     string
	kind          int
	user, channel string
	message       string // for a component, or for a modal opened by one
	began         time.Time
	answered      int    // type of the answer
	original      string // the message of the answer
	choices       []Choice
	*chattest.Ask
}

// ErrNoAnswer is what a person sees as "This interaction failed".
var ErrNoAnswer = errors.New("discordtest: the bot did not answer the interaction in time")

type wireInteraction struct {
	ID          string       `json:"id"`
	App         string       `json:"application_id"`
	Type        int          `json:"type"`
	Data        any          `json:"data"`
	GuildID     string       `json:"guild_id,omitempty"`
	ChannelID   string       `json:"channel_id"`
	Channel     wireChannel  `json:"channel"`
	Member      *wireMember  `json:"member,omitempty"`
	User        *User        `json:"user,omitempty"`
	Token       string       `json:"token"`
	Message     *wireMessage `json:"message,omitempty"`
	Permissions string       `json:"app_permissions"`
	Locale      string       `json:"locale"`
}

// ask sends an interaction and waits for its answer. It calls data with s.Mu held.
func (s *Server) ask(ctx context.Context, in *interaction, data func(*Channel) (any, error)) error {
	in.Ask = chattest.NewAsk()
	var err error
	s.Change(func() { err = s.askLocked(in, data) })
	if err != nil {
		return err
	}
	return in.Wait(ctx)
}

func (s *Server) askLocked(in *interaction, data func(*Channel) (any, error)) error {
	c, u := s.world.channel(in.channel), s.world.user(in.user)
	if c == nil || u == nil || !s.world.sees(c, in.user) {
		return fmt.Errorf("discordtest: %s is not in channel %s", in.user, in.channel)
	}
	made, err := data(c)
	if err != nil {
		return err
	}
	if len(s.sessions) == 0 {
		return ErrNoAnswer
	}
	in.id, in.began = s.idLocked(), s.opt.Now()
	in.token = "token-" + in.id
	s.interactions[in.id], s.interactions[in.token] = in, in
	out := wireInteraction{
		ID: in.id, App: App, Type: in.kind, Data: made, GuildID: c.Guild, ChannelID: c.ID, Channel: s.wireChannelLocked(c), Token: in.token,
		Permissions: bits(s.world.permissions(c, Bot)), Locale: u.Locale,
	}
	out.Channel.Permissions = bits(s.world.permissions(c, in.user))
	if g := s.world.guild(c.Guild); g != nil {
		out.Member = s.world.wireMember(g.member(in.user))
		out.Member.Permissions = out.Channel.Permissions
	} else {
		out.User = u
	}
	if m := s.world.message(in.channel, in.message); m != nil {
		out.Message = s.eventMessageLocked(m, true)
	}
	s.eventLocked(0, "INTERACTION_CREATE", same(out))
	s.AfterLocked(s.opt.Patience, func() {
		if !in.SettledLocked() {
			s.Counts.Missed++
			in.SettleLocked(ErrNoAnswer)
			s.TouchLocked()
		}
	})
	return nil
}

// mayAnswer returns the types of answers that a type of interaction accepts.
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
	in := s.interactions[c.PathValue("token")]
	switch {
	case in == nil || in.id != c.PathValue("id"):
		return nil, errUnknownInter
	case in.answered != 0:
		return nil, errAcked
	case in.SettledLocked() || s.opt.Now().Sub(in.began) > s.opt.Patience:
		return nil, errUnknownInter
	}
	var body struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := c.decode(object(fields{"type!": number(in.mayAnswer()...), "data": anything}), &body); err != nil {
		return nil, err
	}
	if err := s.answerLocked(in, body.Type, &call{Request: c.Request, body: body.Data, at: "data", files: c.files}); err != nil {
		return nil, err
	}
	in.answered = body.Type
	in.SettleLocked(nil)
	return nil, nil
}

func (s *Server) answerLocked(in *interaction, kind int, c *call) error {
	switch kind {
	case answerChoices:
		var got struct {
			Choices []Choice `json:"choices"`
		}
		err := c.decode(object(fields{"choices!": list(0, 25, choiceShape)}), &got)
		in.choices = got.Choices
		return err
	case answerModal:
		var got struct {
			CustomID   string      `json:"custom_id"`
			Title      string      `json:"title"`
			Components []Component `json:"components"`
		}
		err := c.decode(modalShape, &got)
		if err == nil {
			s.dialogs[in.user] = &Dialog{ID: in.id, User: in.user, Channel: in.channel, CustomID: got.CustomID, Title: got.Title, Fields: fieldsOf(got.Components), from: in.message}
		}
		return err
	case answerLater:
		in.original = in.message
		return nil
	case answerUpdate:
		m := s.world.message(in.channel, in.message)
		if m == nil {
			return errUnknownMessage
		}
		in.original = in.message
		_, err := s.editLocked(m, c)
		return err
	}
	m, err := s.replyLocked(in, c, kind == answerDeferred)
	if err == nil {
		in.original = m.ID
	}
	return err
}

// replyLocked adds an answer of the bot to the channel; s.Mu must be held.
func (s *Server) replyLocked(in *interaction, c *call, loading bool) (*Message, error) {
	var d draft
	var err error
	if loading {
		err = c.decode(object(fields{"flags": integer(0, 1<<31)}), &d)
	} else {
		d, err = c.draft(true, 0)
	}
	if err != nil {
		return nil, err
	}
	m := &Message{ID: s.idLocked(), Channel: in.channel, Author: Bot, interaction: in, Loading: loading}
	if in.kind == slashKind {
		m.Type = commandType
	}
	if in.message != "" {
		m.Type, m.Reply = replyType, in.message
	}
	if d.Flags != nil && *d.Flags&Ephemeral != 0 {
		m.For, m.Flags = in.user, Ephemeral
	}
	if loading {
		m.Flags |= Loading
	}
	s.applyLocked(m, d, c.files)
	s.addLocked(m)
	return m, nil
}

// ofToken returns the interaction of a webhook's path.
func (s *Server) ofToken(c *call) (*interaction, error) {
	in := s.interactions[c.PathValue("token")]
	switch {
	case in == nil || c.PathValue("app") != App:
		return nil, errUnknownWebhook
	case s.opt.Now().Sub(in.began) > tokenLife:
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
		return s.editLocked(m, c) // the first one completes the deferred answer
	}
	m, err := s.replyLocked(in, c, false)
	if err != nil {
		return nil, err
	}
	return s.wireLocked(m, true), nil
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
