package api

import (
	"context"
	"errors"
	"time"

	"nize/store"
)

// ReadAudit yields events, oldest first: the newest Limit ones that match and,
// with Follow, what comes.
var ReadAudit = Stream[AuditRequest, store.Event]{"GET", "/v1/audit", true, "read or follow the audit trail"}

// AuditRequest selects events of the audit trail.
type AuditRequest struct {
	Since   time.Time     `query:"since" json:"-"`
	Until   time.Time     `query:"until" json:"-"` // not at it and later
	User    string        `query:"user" json:"-"`
	Tool    string        `query:"tool" json:"-"`   // server:tool, or a pattern such as server:*
	Server  string        `query:"server" json:"-"` // what its tools did, and changes of the server itself
	Outcome store.State   `query:"outcome" json:"-"`
	Surface store.Surface `query:"surface" json:"-"`
	Kind    string        `query:"kind" json:"-"`   // or its head before the dot
	Before  uint64        `query:"before" json:"-"` // only events with a smaller number
	Limit   int           `query:"limit" json:"-"`  // the newest so many; 0 is 100
	Follow  bool          `query:"follow" json:"-"` // and go on with what comes
	// Reason is why contents of other people's calls, questions and settings are
	// read; without it they are left out of Data. It is an event of its own.
	Reason string `query:"reason" json:"-"`
}

// VerifyAudit recomputes the chain and tells how far it is; [CheckAudit] waits
// for its result.
var VerifyAudit = Stream[VerifyAuditRequest, VerifyLine]{"GET", "/v1/audit/verify", true, "verify the audit chain"}

// VerifyAuditRequest says how much of the chain.
type VerifyAuditRequest struct {
	SinceCheckpoint bool `query:"since_checkpoint" json:"-"` // only what came after the newest checkpoint
}

// VerifyLine is one line of a verification: how far it is, and at last the
// Result.
type VerifyLine struct {
	Done   int       `json:"done"`
	All    int       `json:"all"`
	Result *Verified `json:"result,omitempty"`
}

// LateKind is the kind of an event that is none of the trail, without a number:
// the newest records are not in it yet, as on a full disk, and its data say why.
const LateKind = "audit.late"

// Verified is the state of the audit chain.
type Verified struct {
	OK          bool         `json:"ok"`
	Events      int          `json:"events"`                 // that hold, from the first that was verified
	After       uint64       `json:"after,omitempty"`        // the checkpoint that it began at
	Failed      uint64       `json:"failed_event,omitempty"` // the first that fails, where it is one
	Error       string       `json:"error,omitempty"`
	Late        string       `json:"late,omitempty"` // why the newest records are not in the trail yet
	Checkpoints []Checkpoint `json:"checkpoints"`    // the newest ones, newest first
	ExportKey   string       `json:"export_key"`     // what exports are signed with, to keep with who checks them
}

// Checkpoint is an event from which verifying may start.
type Checkpoint struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Why     string    `json:"why"`               // pruning, erasure or daily
	Events  int       `json:"events"`            // that were pruned, erased or verified
	Subject string    `json:"subject,omitempty"` // whose events were erased
}

// CheckAudit recomputes the chain; progress, if set, is told now and then how
// far that is.
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
