package slacktest

import (
	"net/http"
	"nize/bots/chattest"
	"strconv"
	"time"
)

// Fault is a failure injected into calls of a method; see Fail.
type Fault = chattest.Fault

// Revoke makes every token fail from now on: token_revoked, account_inactive, invalid_auth.
// An empty code makes them valid again.
func (s *Server) Revoke(code string) { s.Change(func() { s.dead = code }) }

// RevokeBot does the same for the bot token only.
func (s *Server) RevokeBot(code string) { s.Change(func() { s.deadBot = code }) }

// Uninstall removes the app from the workspace: its bot token no longer works, and the app
// gets an event if it is still connected. The app-level token and its links keep working,
// because they belong to the app and not to the installation.
func (s *Server) Uninstall() {
	s.Change(func() {
		s.deadBot = "account_inactive"
		s.happenedLocked("tokens_revoked", event{Tokens: &revoked{OAuth: []string{}, Bot: []string{Bot}}})
		s.happenedLocked("app_uninstalled", event{})
	})
}

// LimitEvents informs the app that events are paused, as Slack does after more than 30,000
// in an hour, or if most are not acknowledged.
func (s *Server) LimitEvents() {
	s.Change(func() {
		s.sendLocked(&delivery{kind: "events_api", Ask: chattest.NewAsk(), payload: chattest.JSON(limitedEvents{
			Token: "fake-verification", Type: "app_rate_limited", Team: Team, Minute: s.opt.Now().Truncate(time.Minute).Unix(), App: App})})
	})
}

type limitedEvents struct {
	Token  string `json:"token"`
	Type   string `json:"type"`
	Team   string `json:"team_id"`
	Minute int64  `json:"minute_rate_limited"`
	App    string `json:"api_app_id"`
}

// faultForm writes the faults in Slack's own form.
func (s *Server) faultForm(w http.ResponseWriter) func(*Fault) bool {
	return func(f *Fault) bool {
		switch {
		case f.RetryAfter > 0:
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
			http.Error(w, `{"ok":false,"error":"ratelimited"}`, http.StatusTooManyRequests)
		case f.Error != "" && f.Status == 0 && f.Body == "":
			writeAnswer(w, s.opt.Scopes, nil, fail(f.Error))
		default:
			return false
		}
		return true
	}
}

// Refusal is a call that returned an error.
type Refusal = chattest.Refusal

// Stats count the app's actions, mainly mistakes that it doesn't notice.
type Stats struct {
	chattest.Counts
	Acked     int // acknowledged in time
	Late      int // acknowledged too late
	Strange   int // acknowledgements of unknown envelopes
	TooBig    int // responses of 20 kB or more, which Slack drops
	Dropped   int // events given up after all retries
	MaxAck    time.Duration
	totalAck  time.Duration
	Responses int // uses of response URLs
	Downloads int // of files, including failed ones
}

// MeanAck returns the average time until an acknowledgement.
func (st Stats) MeanAck() time.Duration {
	if st.Acked == 0 {
		return 0
	}
	return st.totalAck / time.Duration(st.Acked)
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := s.stats
	out.Counts = s.CountsLocked()
	out.Links = len(s.links)
	return out
}
