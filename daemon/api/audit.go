package api

import (
	"context"
	"errors"
	"time"

	"nize/store"
)

// ReadAudit yields events, oldest first: the newest Limit events that match and, with
// Follow, later ones as they are recorded.
var ReadAudit = Stream[AuditRequest, store.Event]{"GET", "/v1/audit", true, "read or follow the audit trail"}

// AuditRequest selects events of the audit trail.
type AuditRequest struct {
	Since   time.Time     `query:"since" json:"-"`
	Until   time.Time     `query:"until" json:"-"` // exclusive
	User    string        `query:"user" json:"-"`
	Tool    string        `query:"tool" json:"-"`   // server:tool, or a pattern such as server:*
	Server  string        `query:"server" json:"-"` // calls of its tools, and changes of the server itself
	Outcome store.State   `query:"outcome" json:"-"`
	Surface store.Surface `query:"surface" json:"-"`
	Kind    string        `query:"kind" json:"-"`   // or the part before the dot
	Before  uint64        `query:"before" json:"-"` // only events with a smaller sequence number
	Limit   int           `query:"limit" json:"-"`  // number of newest events; 0 is 100
	Follow  bool          `query:"follow" json:"-"` // continue with new events
	// Reason is the caller's reason for reading the contents of other people's calls,
	// questions and settings. If it is empty, Data omits those contents. Reading them
	// records an event of its own.
	Reason string `query:"reason" json:"-"`
}

// VerifyAudit recomputes the chain and reports its progress; [CheckAudit] waits for the
// result.
var VerifyAudit = Stream[VerifyAuditRequest, VerifyLine]{"GET", "/v1/audit/verify", true, "verify the audit chain"}

// VerifyAuditRequest selects how much of the chain to verify.
type VerifyAuditRequest struct {
	SinceCheckpoint bool `query:"since_checkpoint" json:"-"` // only events after the newest checkpoint
}

// VerifyLine is one line of a verification: its progress or, in the last line, its Result.
type VerifyLine struct {
	Done   int       `json:"done"`
	All    int       `json:"all"`
	Result *Verified `json:"result,omitempty"`
}

// LateKind is the kind of an unnumbered event that is not part of the trail. It reports
// that the newest records are not in the trail yet, for example because the disk is full;
// its data contains the reason.
const LateKind = "audit.late"

// Verified is the state of the audit chain.
type Verified struct {
	OK          bool         `json:"ok"`
	Events      int          `json:"events"`                 // number of valid events, from the first one verified
	After       uint64       `json:"after,omitempty"`        // checkpoint at which verification began
	Failed      uint64       `json:"failed_event,omitempty"` // first event that fails, if it is a single one
	Error       string       `json:"error,omitempty"`
	Late        string       `json:"late,omitempty"` // why the newest records are not in the trail yet
	Checkpoints []Checkpoint `json:"checkpoints"`    // newest first; only the newest ones
	ExportKey   string       `json:"export_key"`     // key that signs exports; verifiers should keep a copy
}

// Checkpoint is an event from which verification may start.
type Checkpoint struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Why     string    `json:"why"`               // pruning, erasure or daily
	Events  int       `json:"events"`            // number of events pruned, erased or verified
	Subject string    `json:"subject,omitempty"` // person whose events were erased
}

// CheckAudit recomputes the chain and returns the result. It calls progress, if set, from
// time to time.
func CheckAudit(ctx context.Context, c *Client, req VerifyAuditRequest, progress func(done, all int)) (Verified, error) {
	for line, err := range VerifyAudit.Call(ctx, c, req) {
		switch {
		case err != nil:
			return Verified{}, err
		case line.Result != nil:
			return *line.Result, nil
		case progress != nil:
			progress(line.Done, line.All)
		}
	}
	return Verified{}, brokenOff(errors.New("the verification has no result"))
}
