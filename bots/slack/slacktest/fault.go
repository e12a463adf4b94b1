package slacktest

import (
	"net/http"
	"nize/bots/chattest"
	"strconv"
	"time"
)

// Fault is what goes wrong with calls of a method; see Fail.
type Fault = chattest.Fault

// Revoke makes every token fail from now on: token_revoked, account_inactive,
// invalid_auth. An empty code makes them good again.
func (s *Server) Revoke(code string) { s.Change(func() { s.dead = code }) }

// RevokeBot makes the bot token alone fail, as Revoke does.
func (s *Server) RevokeBot(code string) { s.Change(func() { s.deadBot = code }) }

// Uninstall takes the app out of the workspace: its bot token is dead, and it
// is told so where it still listens. The app-level token and its links go on,
// as they belong to the app and not to the installation.
func (s *Server) Uninstall() {
	s.Change(func() {
		s.deadBot = "account_inactive"
		s.happenedLocked("tokens_revoked", event{Tokens: &revoked{OAuth: []string{}, Bot: []string{Bot}}})
		s.happenedLocked("app_uninstalled", event{})
	})
}

// LimitEvents tells the app that it gets no events for a while, as Slack does
// over 30,000 in an hour, or where most are not acknowledged.
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

// faultForm writes the faults that have a form of Slack's own.
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

// Refusal is a call that was answered with an error.
type Refusal = chattest.Refusal

// Stats count what the app did, above all what it did wrong without noticing.
type Stats struct {
	chattest.Counts
	Acked     int // in time
	Late      int // acknowledged after it
	Strange   int // acknowledgements of nothing that was sent
	TooBig    int // answers of 20 kB and over, which Slack drops
	Dropped   int // events given up after all retries
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
	out.Counts = s.CountsLocked()
	out.Links = len(s.links)
	return out
}
