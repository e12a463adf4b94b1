package store

import (
	"encoding/json"
	"strings"
	"time"
)

// Event is one entry of the audit trail: a transition of a call or a
// change of configuration. Events are chained: Chain is a keyed hash over the
// one before, this one's metadata, its pseudonym and the salted hash of Data.
type Event struct {
	Seq      uint64          `json:"seq"`
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind"`    // call.pending, call.done, server.put, token.create …
	Subject  string          `json:"subject"` // a call's, server's, token's id …
	User     string          `json:"user"`    // who did it; "system" for nize
	UserName string          `json:"user_name,omitempty"`
	Surface  Surface         `json:"surface,omitempty"`
	Identity string          `json:"identity,omitempty"`
	Address  string          `json:"address,omitempty"` // of the client on the network
	Token    string          `json:"token,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	Outcome  State           `json:"outcome,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`   // redacted
	Erased   bool            `json:"erased,omitempty"` // who and what was taken out: a person was forgotten
	Chain    string          `json:"chain"`
}

// TamperedError says where the audit trail stops to hold: somebody changed the
// database, or a part of it was lost.
type TamperedError struct {
	Seq uint64 // of the first event that fails; 0 where it is an end of the chain
	Why string
}

func (e *TamperedError) Error() string { return "audit trail does not hold: " + e.Why }

// EventQuery selects events.
type EventQuery struct {
	Since   time.Time
	Until   time.Time // not at it and later
	User    string
	Tool    string // server:tool, or a pattern such as server:*
	Server  string // what its tools did, and changes of the server itself
	Outcome State
	Surface Surface
	Kind    string // or its head before the dot
	Forward bool   // oldest first
	After   uint64 // only events with a larger Seq, oldest first
	Before  uint64 // only events with a smaller Seq
	Limit   int    // 0 is 100
}

// Spend is what one model call cost.
type Spend struct {
	ID         string        `json:"id"`
	At         time.Time     `json:"at"`
	User       string        `json:"user"`
	Team       string        `json:"team,omitempty"` // [TeamOf] the person, there
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

// ModelName is provider/model.
func (s Spend) ModelName() string {
	if s.Provider == "" || strings.HasPrefix(s.Model, s.Provider+"/") {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

// UsageGroupings are what usage can be summed up by.
var UsageGroupings = []string{"day", "user", "team", "agent", "provider", "model", "conversation", "tool"}

// UsageQuery asks the rollups.
type UsageQuery struct {
	Since time.Time      // counted from the day that it falls into
	By    string         // one of [UsageGroupings]; "" is day
	User  string         // only what this person spent; "" is everybody
	Zone  *time.Location // whose days are meant, but by tool; nil is UTC
	Top   int            // at most so many rows, the largest; 0 is all. Days are never cut
}

// UsageReport is the answer.
type UsageReport struct {
	By    string     `json:"by"`
	Since time.Time  `json:"since"` // the first moment that is counted
	Zone  string     `json:"zone"`  // whose days were counted: the reader's, by tool UTC
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
	More  int        `json:"more,omitempty"` // rows that Top cut off; Total has them
	// Unpriced are the models, as provider/model, of which calls are in here
	// whose price nobody knew.
	Unpriced []string `json:"unpriced_models,omitempty"`
}

// Plus is both rows under the key of the first.
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

// Minus is what is left of the row without what o counts.
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
