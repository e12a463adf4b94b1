package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
	"nize/store/backoff"
)

// requestTimeout limits one request that is not a stream; the daemon answers from its own
// disk.
const requestTimeout = 15 * time.Second

// event is a report of the follower of a conversation.
type event struct {
	thread       string
	chat         api.ChatEvent
	disconnected error           // the connection dropped and is being dialed again
	reconnected  *api.ThreadView // connected again, with the current thread
	ended        error           // following has failed
}

// session is one chat with the daemon, over any number of connections and conversations.
// Everything except the follower runs in the front end's goroutine.
type session struct {
	opt    Options
	zone   *time.Location
	events chan event // unbuffered: a busy front end slows the follower, not the daemon

	life       context.Context // of the followers, for the duration of the chat
	end        context.CancelFunc
	wg         sync.WaitGroup
	thread     store.Thread // ID is "" until the first message
	unfollow   context.CancelFunc
	status     api.Status
	busy       bool                    // a turn runs, as far as we know
	responded  bool                    // an event arrived after we sent
	unsent     *api.SendMessageRequest // not acknowledged yet
	transcript transcript
	lastCall   store.Card // the last ended call with a card
	lastResult string     // the id of the last ended call

	mu          sync.Mutex         // guards closeStream, which followers set
	closeStream context.CancelFunc // ends the current connection
}

func newSession(ctx context.Context, o Options) *session {
	s := &session{opt: o, zone: time.Local, events: make(chan event), unfollow: func() {}}
	if loc, err := time.LoadLocation(o.Zone); err == nil && o.Zone != "" {
		s.zone = loc
	}
	s.life, s.end = context.WithCancel(ctx)
	s.transcript.clear()
	return s
}

// close ends the follower and waits for it.
func (s *session) close() {
	s.end()
	s.wg.Wait()
}

// open reads the daemon's status. It returns an error if no daemon runs.
func (s *session) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var err error
	if s.status, err = api.GetStatus.Call(ctx, s.opt.Client, api.Empty{}); err != nil {
		return fmt.Errorf("starting a chat: %w", err)
	}
	return nil
}

// offline returns the line that says what answers if no provider is configured.
func (s *session) offline() string {
	model := s.status.Model
	if s.thread.Model != "" {
		model = s.thread.Model
	} else if s.opt.Model != "" {
		model = s.opt.Model
	}
	if model != "" && model != "offline" && !strings.HasPrefix(model, "offline/") {
		return ""
	}
	return s.words().Say(phrases.TermOffline)
}

// words returns the catalogue in the chat's language.
func (s *session) words() phrases.Catalogue { return phrases.For(s.opt.Locale) }

// problem returns an error as it is printed for the person.
func (s *session) problem(err error) string { return bots.Plain(s.words().Problem(err)) }

// begin starts a conversation and follows it.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	th, err := api.StartConversation.Call(ctx, s.opt.Client, api.StartConversationRequest{
		Agent: s.opt.Agent, Model: s.opt.Model, Servers: s.opt.Servers, Zone: s.opt.Zone, Locale: s.opt.Locale,
	})
	if err != nil {
		return fmt.Errorf("starting a conversation: %w", err)
	}
	s.attach(th)
	return nil
}

// resume continues a stored conversation.
func (s *session) resume(ctx context.Context, id string) (api.ThreadView, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	view, err := api.ShowConversation.Call(ctx, s.opt.Client, api.ShowConversationRequest{ID: id})
	if err != nil {
		return view, fmt.Errorf("resuming conversation %s: %w", id, err)
	}
	s.attach(view.Thread)
	return view, nil
}

// leave stops following the conversation; the next message begins a new one.
func (s *session) leave() {
	s.unfollow()
	s.unfollow = func() {}
	s.thread = store.Thread{}
	s.busy, s.responded, s.unsent = false, false, nil
	s.transcript.clear()
}

// attach follows a conversation instead of the previous one.
func (s *session) attach(th store.Thread) {
	s.leave()
	s.thread = th
	s.opt.Locale = th.Locale // the environment's, unless a setting overrides it
	if loc, err := time.LoadLocation(th.Zone); err == nil && th.Zone != "" {
		s.zone = loc
	}
	ctx, cancel := context.WithCancel(s.life)
	s.unfollow = cancel
	s.wg.Go(func() { s.follow(ctx, th.ID) })
}

// follow reports the events of a conversation and dials again when the connection drops,
// until ctx ends.
func (s *session) follow(ctx context.Context, id string) {
	report := func(e event) bool {
		e.thread = id
		select {
		case s.events <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	pause, tries, dials := backoff.Exponential{First: 50 * time.Millisecond, Most: 2 * time.Second}, 0, 0
	for lost := false; ctx.Err() == nil; {
		err := s.listen(ctx, id, func(chat api.ChatEvent) bool {
			dials++
			tries = 0
			if lost {
				lost = false
				view, err := api.ShowConversation.Call(ctx, s.opt.Client, api.ShowConversationRequest{ID: id})
				if err != nil || !report(event{reconnected: &view}) {
					return false
				}
			}
			return report(event{chat: chat})
		})
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrRefused) || errors.Is(err, api.ErrNoRoute) {
			report(event{ended: err})
			return
		}
		if !lost {
			lost = true
			if err == nil {
				err = errors.New("nized ended the stream")
			}
			report(event{disconnected: err})
		}
		tries++
		select {
		case <-time.After(pause.After(tries)):
		case <-ctx.Done():
		}
	}
}

// reconnect ends the current connection, so that the follower dials again and everything is
// read and sent again.
func (s *session) reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closeStream != nil {
		s.closeStream()
	}
}

// listen reads one connection until it ends or each returns false.
func (s *session) listen(ctx context.Context, id string, each func(api.ChatEvent) bool) error {
	once, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.closeStream = cancel
	s.mu.Unlock()
	for chat, err := range api.FollowConversation.Call(once, s.opt.Client, api.ConversationRequest{ID: id}) {
		if once.Err() != nil {
			return errors.New("nized did not accept a message")
		}
		if err != nil {
			return err
		}
		if !each(chat) {
			return nil
		}
	}
	return nil
}

// say sends a message, in a new conversation if there is none. If the daemon can't be
// reached, the message is kept and sent when it is back.
func (s *session) say(ctx context.Context, text string) error {
	if s.thread.ID == "" {
		if err := s.begin(ctx); err != nil {
			return err
		}
		if err := s.awaitFirst(ctx); err != nil {
			return err
		}
	}
	s.busy, s.responded = true, false
	s.unsent = &api.SendMessageRequest{Conversation: s.thread.ID, Key: store.NewID(s.opt.Now()), Text: text}
	return s.deliver(ctx)
}

// awaitFirst waits for the first event, after which no event is missed.
func (s *session) awaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		select {
		case e := <-s.events:
			switch {
			case e.thread != s.thread.ID:
			case e.ended != nil:
				return e.ended
			case e.disconnected != nil:
				return fmt.Errorf("following the conversation: %w", e.disconnected)
			default:
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("following the conversation: %w", context.Cause(ctx))
		}
	}
}

// deliver sends the unacknowledged message. A broken connection is not an error here: the
// message is sent again, with its key, after reconnecting.
func (s *session) deliver(ctx context.Context) error {
	if s.unsent == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := api.SendMessage.Call(ctx, s.opt.Client, *s.unsent)
	var refused *api.Error
	switch {
	case err == nil:
		s.unsent = nil
	case errors.As(err, &refused) && !errors.Is(err, api.ErrNoDaemon):
		s.unsent, s.busy = nil, false
		return fmt.Errorf("sending the message: %w", err)
	default:
		s.reconnect()
	}
	return nil
}

// handleEvent updates the session with an event. It returns the messages to show, and
// whether the running turn has ended.
func (s *session) handleEvent(ctx context.Context, e event) (show []store.Message, ended bool, err error) {
	if e.thread != s.thread.ID {
		return nil, false, nil // of a conversation that was left
	}
	switch {
	case e.ended != nil:
		s.busy = false
		return nil, true, fmt.Errorf("following the conversation: %w", e.ended)
	case e.disconnected != nil:
		return nil, false, nil
	case e.reconnected != nil:
		missed := missedMessages(*e.reconnected, s.words())
		s.responded = s.responded || s.unsent == nil // our message is stored, so idle means that it was answered
		return missed, false, s.deliver(ctx)
	}
	if e.chat.Message != nil {
		s.responded = true
		s.keepResult(*e.chat.Message)
		show = append(show, *e.chat.Message)
	}
	switch e.chat.State {
	case api.ChatWorking, api.ChatWaiting:
		s.busy, s.responded = true, true
	case api.ChatIdle:
		if s.busy && s.responded {
			s.busy, ended = false, true
		}
	}
	return show, ended, nil
}

// keepResult keeps the last ended call, for /result.
func (s *session) keepResult(m store.Message) {
	switch {
	case m.Card != nil && m.Card.State.Final():
		s.lastResult = m.Card.Call
	case m.Tool != nil && m.Tool.State.Final() && strings.Contains(m.Tool.Name, ":"): // not nize's own functions
		if id, ok := strings.CutPrefix(m.ID, "tool/"); ok {
			s.lastResult = id
		}
	}
}

// missedMessages returns a stored thread as the messages that its platform would have
// shown: the model's turns, nize's notices, and waiting cards.
func missedMessages(view api.ThreadView, words phrases.Catalogue) []store.Message {
	var out []store.Message
	for _, turn := range view.Turns {
		if m, ok := turnMessage(turn, words); ok && turn.Role == store.FromModel {
			out = append(out, m)
		}
	}
	for _, card := range view.Cards {
		out = append(out, store.Message{ID: card.Call, Kind: store.CardMessage, Card: &card})
	}
	return out
}

// turnMessage returns a stored turn as a message; false if it isn't shown.
func turnMessage(turn store.Turn, words phrases.Catalogue) (store.Message, bool) {
	m := store.Message{ID: turn.Thread + "/" + strconv.Itoa(turn.N), Kind: store.TextMessage, Text: turn.Text, Final: true}
	if turn.Role == store.FromNize {
		m.Kind, m.Text = store.NoticeMessage, turn.Text
	} else if m.Remark = words.Text(store.FinishRemark(turn.Finish)); m.Remark != "" {
		m.Finish, m.Text = turn.Finish, store.WithRemark(turn.Text, m.Remark)
	}
	return m, m.Text != "" && turn.Role != store.FromTool && turn.Role != store.FromSummary && turn.Role != store.FromAgent
}

// decide sends a decision on a card; the digest identifies the card that was seen.
func (s *session) decide(ctx context.Context, card store.Card, d api.DecideCallRequest) error {
	_, err := s.decideCall(ctx, card, d)
	return err
}

// decideCall is decide, and returns the resulting call.
func (s *session) decideCall(ctx context.Context, card store.Card, d api.DecideCallRequest) (store.Call, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	d.ID, d.Digest = card.Call, card.Digest
	call, err := api.DecideCall.Call(ctx, s.opt.Client, d)
	if err != nil {
		return call, fmt.Errorf("answering for %s: %w", bots.Escape(card.Tool), err)
	}
	return call, nil
}

// kept returns a description of the standing answer that was created.
func (s *session) kept(ctx context.Context, card store.Card, d api.DecideCallRequest) string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	line, err := keptLine(ctx, s.opt.Client, card, store.Decision{Verb: d.Verb, For: d.For, Exact: d.Exact, Pattern: d.Pattern, Line: d.Line, Here: d.Here, Until: d.Until}, s.reader())
	if err != nil {
		return s.problem(err)
	}
	return line
}

// stop stops the running turn; it works even after ctx has ended.
func (s *session) stop(ctx context.Context) error {
	if s.thread.ID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := api.StopTurn.Call(ctx, s.opt.Client, api.ConversationRequest{ID: s.thread.ID}); err != nil {
		return fmt.Errorf("stopping the turn: %w", err)
	}
	return nil
}

// reader returns the reader of the cards.
func (s *session) reader() bots.Reader {
	return bots.Reader{Locale: s.opt.Locale, Zone: s.zone, Now: s.opt.Now()}
}
