package slacktest

import (
	"io"
	"maps"
	"net/http"
	"nize/bots/chattest"
	"slices"
	"strconv"
	"time"
)

// Fault is what goes wrong with calls of a method; see Fail.
type Fault = chattest.Fault

// Revoke makes every token fail from now on: token_revoked, account_inactive,
// invalid_auth. An empty code makes them good again.
func (s *Server) Revoke(code string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.dead = code
}

// RevokeBot makes the bot token alone fail, as Revoke does.
func (s *Server) RevokeBot(code string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.deadBot = code
}

// Uninstall takes the app out of the workspace: its bot token is dead, and it
// is told so where it still listens. The app-level token and its links go on,
// as they belong to the app and not to the installation.
func (s *Server) Uninstall() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.deadBot = "account_inactive"
	s.eventLocked("tokens_revoked", revokedTokens{Type: "tokens_revoked", Tokens: tokenOwners{OAuth: []string{}, Bot: []string{Bot}}})
	s.eventLocked("app_uninstalled", bareEvent{Type: "app_uninstalled"})
	s.TouchLocked()
}

// LimitEvents tells the app that it gets no events for a while, as Slack does
// over 30,000 in an hour, or where most are not acknowledged.
func (s *Server) LimitEvents() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.sendLocked(&delivery{kind: "events_api", done: make(chan struct{}), payload: mustJSON(limitedEvents{
		Token: "fake-verification", Type: "app_rate_limited", Team: Team, Minute: s.opt.Now().Truncate(time.Minute).Unix(), App: App})})
	s.TouchLocked()
}

type limitedEvents struct {
	Token  string `json:"token"`
	Type   string `json:"type"`
	Team   string `json:"team_id"`
	Minute int64  `json:"minute_rate_limited"`
	App    string `json:"api_app_id"`
}

type revokedTokens struct {
	Type   string      `json:"type"`
	Tokens tokenOwners `json:"tokens"`
}

type tokenOwners struct {
	OAuth []string `json:"oauth"`
	Bot   []string `json:"bot"`
}

type bareEvent struct {
	Type string `json:"type"`
}

// writeFault answers in the method's stead; false means that the fault was a
// delay only.
func (s *Server) writeFault(w http.ResponseWriter, name string, f *Fault) bool {
	switch {
	case f.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
		http.Error(w, `{"ok":false,"error":"ratelimited"}`, http.StatusTooManyRequests)
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, f.Body) // the client is gone
	case f.Error != "":
		writeAnswer(w, s.opt.Scopes, nil, fail(f.Error))
	default:
		return false
	}
	if !f.After {
		s.Mu.Lock()
		s.stats.Calls[name]++
		s.TouchLocked()
		s.Mu.Unlock()
	}
	return true
}

// Refusal is a call that was answered with an error.
type Refusal struct{ Method, Error string }

// Stats count what the app did, above all what it did wrong without noticing.
type Stats struct {
	Calls     map[string]int // by method, failed ones too
	Refused   []Refusal      // by the fake's rules, not by faults
	Unknown   []string       // methods that Slack, or this fake, does not have
	Links     int            // open now
	Opened    int            // links ever
	Sent      int            // envelopes and requests, repeated ones too
	Acked     int            // in time
	Missed    int            // not acknowledged within the time
	Late      int            // acknowledged after it
	Strange   int            // acknowledgements of nothing that was sent
	TooBig    int            // answers of 20 kB and over, which Slack drops
	Dropped   int            // events given up after all retries
	MaxAck    time.Duration
	totalAck  time.Duration
	Responses int // uses of response URLs
	Downloads int // of files, failed ones too
}

// MeanAck is how long an acknowledgement took on average.
func (st Stats) MeanAck() time.Duration {
	if st.Acked == 0 {
		return 0
	}
	return st.totalAck / time.Duration(st.Acked)
}

// Stats are the counts up to now.
func (s *Server) Stats() Stats {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := s.stats
	out.Calls = maps.Clone(out.Calls)
	out.Refused = slices.Clone(out.Refused)
	out.Unknown = slices.Clone(out.Unknown)
	out.Links = len(s.links)
	return out
}
