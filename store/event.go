package store

import (
	"encoding/json"
	"strings"
	"time"
)

// Event is one entry of the audit trail: a transition of a call or a change of
// configuration. Events are chained: Chain is a keyed hash of the previous event's Chain,
// this event's metadata, its pseudonym and the salted hash of Data.
type Event struct {
	Seq         uint64          `json:"seq"`
	At          time.Time       `json:"at"`
	Kind        string          `json:"kind"`                   // call.pending, call.done, server.put, token.create …
	Subject     string          `json:"subject"`                // a call's, server's, token's id …
	SubjectName string          `json:"subject_name,omitempty"` // the present name of the user whose id Subject is
	User        string          `json:"user"`                   // the caller; "system" for nize
	UserName    string          `json:"user_name,omitempty"`
	Surface     Surface         `json:"surface,omitempty"`
	Identity    string          `json:"identity,omitempty"`
	Address     string          `json:"address,omitempty"` // of the client on the network
	Token       string          `json:"token,omitempty"`
	Tool        string          `json:"tool,omitempty"`
	Outcome     State           `json:"outcome,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`   // redacted
	Erased      bool            `json:"erased,omitempty"` // personal data was removed because a person was forgotten
	Chain       string          `json:"chain"`
}

// TamperedError reports where the audit trail stops being valid: the database was changed
// by other means, or part of it was lost.
type TamperedError struct {
	Seq uint64 // of the first invalid event; 0 if an end of the chain is missing
	Why string
}

func (e *TamperedError) Error() string { return "audit trail does not hold: " + e.Why }

// EventQuery selects events.
type EventQuery struct {
	Since   time.Time
	Until   time.Time // exclusive
	User    string
	Tool    string // server:tool, or a pattern such as server:*
	Server  string // calls of its tools and changes of the server itself
	Outcome State
	Surface Surface
	Kind    string // or the part before the dot
	Forward bool   // oldest first
	After   uint64 // only events with a larger Seq, oldest first
	Before  uint64 // only events with a smaller Seq
	Limit   int    // 0 is 100
}

// Spend is the cost of one model call.
type Spend struct {
	ID         string        `json:"id"`
	At         time.Time     `json:"at"`
	User       string        `json:"user"`
	Team       string        `json:"team,omitempty"` // [TeamOf] the user at the conversation's address
	Thread     string        `json:"thread,omitempty"`
	Agent      string        `json:"agent,omitempty"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model"`
	Prompt     int64         `json:"prompt"` // tokens
	Completion int64         `json:"completion"`
	Cached     int64         `json:"cached,omitempty"`
	Reasoning  int64         `json:"reasoning,omitempty"`
	Took       time.Duration `json:"took"`
	Estimated  bool          `json:"estimated,omitempty"`
	MicroUSD   int64         `json:"micro_usd,omitempty"` // millionths of a dollar
	Priced     bool          `json:"priced,omitempty"`    // false: the price is unknown, not zero
}

// ModelName returns provider/model.
func (s Spend) ModelName() string {
	if s.Provider == "" || strings.HasPrefix(s.Model, s.Provider+"/") {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

// UsageGroupings are the groupings of a usage report.
var UsageGroupings = []string{"day", "user", "team", "agent", "provider", "model", "conversation", "tool"}

// UsageQuery is a query of the usage rollups.
type UsageQuery struct {
	Since time.Time      // from the beginning of its day
	By    string         // one of [UsageGroupings]; "" is day
	User  string         // only this user's; "" is everyone's
	Zone  *time.Location // the zone of the days, except by tool; nil is UTC
	Top   int            // return only the largest rows, at most this many; 0 is all. Days are never cut
}

// UsageReport is the result of a [UsageQuery].
type UsageReport struct {
	By    string     `json:"by"`
	Since time.Time  `json:"since"` // the start of the report
	Zone  string     `json:"zone"`  // the zone of the days; UTC by tool
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
	More  int        `json:"more,omitempty"` // rows omitted because of Top; Total includes them
	// Unpriced lists the models, as provider/model, whose calls are included although their
	// price is unknown.
	Unpriced []string `json:"unpriced_models,omitempty"`
}

// Plus returns the sum of both rows with the key of r.
func (r UsageRow) Plus(o UsageRow) UsageRow {
	r.Calls += o.Calls
	r.Prompt += o.Prompt
	r.Completion += o.Completion
	r.Cached += o.Cached
	r.Reasoning += o.Reasoning
	r.Estimated += o.Estimated
	r.MicroUSD += o.MicroUSD
	r.Unpriced += o.Unpriced
	r.Failed += o.Failed
	r.TookMS += o.TookMS
	return r
}

// Minus returns r without the amounts of o.
func (r UsageRow) Minus(o UsageRow) UsageRow {
	return r.Plus(UsageRow{
		Calls: -o.Calls, Prompt: -o.Prompt, Completion: -o.Completion, Cached: -o.Cached, Reasoning: -o.Reasoning,
		Estimated: -o.Estimated, MicroUSD: -o.MicroUSD, Unpriced: -o.Unpriced, Failed: -o.Failed, TookMS: -o.TookMS,
	})
}

// UsageRow is one line of a usage report.
type UsageRow struct {
	Key        string `json:"key"`
	Calls      int64  `json:"calls"`
	Prompt     int64  `json:"prompt,omitempty"`
	Completion int64  `json:"completion,omitempty"`
	Cached     int64  `json:"cached,omitempty"`
	Reasoning  int64  `json:"reasoning,omitempty"`
	Estimated  int64  `json:"estimated,omitempty"` // calls whose tokens are an estimate
	MicroUSD   int64  `json:"micro_usd,omitempty"`
	Unpriced   int64  `json:"unpriced,omitempty"` // calls without a known price
	Failed     int64  `json:"failed,omitempty"`   // by tool: calls that did not end as done
	TookMS     int64  `json:"took_ms"`
}
