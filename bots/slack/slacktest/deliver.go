package slacktest

import (
	"encoding/json"
	"errors"
	"nize/bots/chattest"
	"slices"
	"time"
)

// delivery is an event, interaction or command sent to the app, until it is acknowledged or
// given up.
type delivery struct {
	kind    string // events_api, interactive, slash_commands
	payload json.RawMessage
	event   string // event_id, for events
	attempt int    // 0 for the first
	reason  string // reason of the redelivery
	env     string // this attempt's envelope id
	link    *link
	sent    time.Time
	timer   *time.Timer
	reply   json.RawMessage // payload of the acknowledgement
	*chattest.Ask
}

// ErrNotAcked is what a person sees as "operation failed": the app did not acknowledge in
// time, or was not connected.
var ErrNotAcked = errors.New("slacktest: the app did not acknowledge")

// outer is the envelope of an event.
type outer struct {
	Token          string          `json:"token"`
	TeamID         string          `json:"team_id"`
	ContextTeamID  string          `json:"context_team_id"`
	APIAppID       string          `json:"api_app_id"`
	Event          json.RawMessage `json:"event"`
	Type           string          `json:"type"`
	EventID        string          `json:"event_id"`
	EventTime      int64           `json:"event_time"`
	Authorizations []authorization `json:"authorizations"`
	External       bool            `json:"is_ext_shared_channel"`
	EventContext   string          `json:"event_context"`
}

type authorization struct {
	EnterpriseID *string `json:"enterprise_id"`
	TeamID       string  `json:"team_id"`
	UserID       string  `json:"user_id"`
	IsBot        bool    `json:"is_bot"`
	IsEnterprise bool    `json:"is_enterprise_install"`
}

// eventLocked sends an event if the app subscribed to it; name is that of the
// subscription, e.g. message.channels. s.Mu must be held.
func (s *Server) eventLocked(name string, event any) {
	if !slices.Contains(s.opt.Events, name) || s.ClosedLocked() {
		return
	}
	id := s.idLocked("Ev")
	body := chattest.JSON(outer{
		Token: "fake-verification", TeamID: Team, ContextTeamID: Team, APIAppID: App, Event: chattest.JSON(event), Type: "event_callback", EventID: id,
		EventTime: s.opt.Now().Unix(), EventContext: "4-" + id,
		Authorizations: []authorization{{TeamID: Team, UserID: Bot, IsBot: true}},
	})
	s.world.events = append(s.world.events, Event{ID: id, Name: name, Payload: body})
	s.sendLocked(&delivery{kind: "events_api", payload: body, event: id, Ask: chattest.NewAsk()})
}

// Event is an event that was sent.
type Event struct {
	ID, Name string
	Payload  json.RawMessage
}

// Events returns all events that were sent, in order, without repetitions.
func (s *Server) Events() []Event {
	return chattest.Get(&s.Base, func() []Event { return slices.Clone(s.world.events) })
}

// Repeat sends events again, in random order: those with the given ids, or all. Each has
// its original event_id, as if its acknowledgement had been lost.
func (s *Server) Repeat(ids ...string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	events := slices.DeleteFunc(slices.Clone(s.world.events), func(e Event) bool { return len(ids) > 0 && !slices.Contains(ids, e.ID) })
	s.rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, e := range events {
		s.sendLocked(&delivery{kind: "events_api", payload: e.Payload, event: e.ID, attempt: 1, reason: s.lostReason(), Ask: chattest.NewAsk()})
	}
}

// lostReason returns the reason of a redelivered event.
func (s *Server) lostReason() string {
	if s.opt.Endpoint != "" {
		return "http_timeout"
	}
	return "timeout"
}

// sendLocked sends d. Events wait for a link; anything that a person waits for doesn't.
// s.Mu must be held.
func (s *Server) sendLocked(d *delivery) {
	if s.ClosedLocked() {
		d.SettleLocked(chattest.ErrClosed)
		return
	}
	d.sent = s.opt.Now()
	if s.opt.Endpoint != "" {
		s.Counts.Sent++
		s.Go(func() { s.request(d) })
		return
	}
	open := slices.DeleteFunc(slices.Clone(s.links), func(l *link) bool { return l.leaving })
	if len(open) == 0 {
		if d.kind == "events_api" {
			s.waiting = append(s.waiting, d)
		} else {
			d.SettleLocked(ErrNotAcked)
		}
		return
	}
	s.Counts.Sent++
	d.env = s.idLocked("env")
	d.link = open[s.rand.IntN(len(open))]
	s.pending[d.env] = d
	d.timer = s.AfterLocked(s.opt.Patience, func() { s.missedLocked(d) })
	d.link.Send(envelope{
		ID: d.env, Type: d.kind, AcceptsResponse: d.kind != "events_api", Payload: d.payload,
		RetryAttempt: d.attempt, RetryReason: d.reason,
	})
}

// missedLocked handles a delivery that was not acknowledged in time; s.Mu must be held.
func (s *Server) missedLocked(d *delivery) {
	if d.SettledLocked() {
		return
	}
	delete(s.pending, d.env)
	s.late[d.env] = true
	s.Counts.Missed++
	s.againLocked(d, s.lostReason())
	s.TouchLocked()
}

// againLocked schedules a redelivery of an event, or reports the failure to the person;
// s.Mu must be held.
func (s *Server) againLocked(d *delivery, reason string) {
	if d.kind != "events_api" {
		d.SettleLocked(ErrNotAcked)
		return
	}
	if d.attempt >= len(s.opt.RetryAfter) {
		s.stats.Dropped++
		d.SettleLocked(ErrNotAcked)
		return
	}
	after := s.opt.RetryAfter[d.attempt]
	d.attempt++
	d.reason = reason
	if after == 0 {
		s.sendLocked(d)
		return
	}
	s.AfterLocked(after, func() { s.sendLocked(d) })
}

// ackLocked handles an acknowledgement; s.Mu must be held.
func (s *Server) ackLocked(env string, reply json.RawMessage, size int) {
	d := s.pending[env]
	switch {
	case d == nil && s.late[env]:
		s.stats.Late++
		return
	case d == nil:
		s.stats.Strange++
		return
	case size >= maxAck:
		s.stats.TooBig++ // dropped: the timer continues
		return
	}
	delete(s.pending, env)
	s.StopLocked(d.timer)
	s.tookLocked(s.opt.Now().Sub(d.sent))
	d.reply = reply
	d.SettleLocked(nil)
}

// tookLocked counts an acknowledgement; s.Mu must be held.
func (s *Server) tookLocked(took time.Duration) {
	s.stats.Acked++
	s.stats.totalAck += took
	s.stats.MaxAck = max(s.stats.MaxAck, took)
}

const maxAck = 20_480 // bytes; Slack drops larger ones
