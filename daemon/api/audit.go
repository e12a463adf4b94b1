package api

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
	"time"

	"nize/store"
)

// AuditQuery selects events of the audit trail.
type AuditQuery struct {
	Since   time.Time
	Until   time.Time // not at it and later
	User    string
	Tool    string // server:tool, or a pattern such as server:*
	Server  string // what its tools did, and changes of the server itself
	Outcome store.State
	Surface store.Surface
	Kind    string // or its head before the dot
	Before  uint64 // only events with a smaller number
	Limit   int    // the newest so many; 0 is 100
	Follow  bool   // and go on with what comes
}

func (q AuditQuery) values() url.Values {
	v := query("since", stamp(q.Since), "until", stamp(q.Until), "user", q.User, "tool", q.Tool, "server", q.Server,
		"outcome", string(q.Outcome), "surface", string(q.Surface), "kind", q.Kind, "follow", flag(q.Follow))
	if q.Before > 0 {
		v.Set("before", strconv.FormatUint(q.Before, 10))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// VerifyAudit says how to verify the audit chain.
type VerifyAudit struct {
	SinceCheckpoint bool                // only what came after the newest checkpoint
	Progress        func(done, all int) // is told now and then; may be nil
}

// VerifyLine is one line of a verification: how far it is, and at last the
// Result.
type VerifyLine struct {
	Done   int       `json:"done"`
	All    int       `json:"all"`
	Result *Verified `json:"result,omitempty"`
}

// Verified is the state of the audit chain.
type Verified struct {
	OK          bool         `json:"ok"`
	Events      int          `json:"events"`                 // that hold, from the first that was verified
	After       uint64       `json:"after,omitempty"`        // the checkpoint that it began at
	Failed      uint64       `json:"failed_event,omitempty"` // the first that fails, where it is one
	Error       string       `json:"error,omitempty"`
	Checkpoints []Checkpoint `json:"checkpoints"` // the newest ones, newest first
	ExportKey   string       `json:"export_key"`  // what exports are signed with, to keep with who checks them
}

// Checkpoint is an event from which verifying may start.
type Checkpoint struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Why     string    `json:"why"`               // pruning, erasure or daily
	Events  int       `json:"events"`            // that were pruned, erased or verified
	Subject string    `json:"subject,omitempty"` // whose events were erased
}

// Audit yields events, oldest first: the newest Limit ones that match and, with
// Follow, what comes.
func (c *Client) Audit(ctx context.Context, q AuditQuery) iter.Seq2[store.Event, error] {
	return stream[store.Event](ctx, c, request{method: "GET", path: "/v1/audit", query: q.values()})
}

// VerifyAudit recomputes the chain.
func (c *Client) VerifyAudit(ctx context.Context, v VerifyAudit) (Verified, error) {
	r := request{method: "GET", path: "/v1/audit/verify", query: query("since_checkpoint", flag(v.SinceCheckpoint))}
	for line, err := range stream[VerifyLine](ctx, c, r) {
		switch {
		case err != nil:
			return Verified{}, err
		case line.Result != nil:
			return *line.Result, nil
		case v.Progress != nil:
			v.Progress(line.Done, line.All)
		}
	}
	return Verified{}, brokenOff(errors.New("the verification has no result"))
}
