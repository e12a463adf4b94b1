package calls

import (
	"encoding/json"
	"strings"
	"time"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/spending"
)

// CallData is the data of the audit event of a transition.
type CallData struct {
	Args       json.RawMessage `json:"args,omitempty"`   // redacted and cut
	Output     json.RawMessage `json:"output,omitempty"` // redacted and cut
	Digest     string          `json:"digest,omitempty"`
	Reason     store.Text      `json:"reason,omitzero"`
	Replaces   string          `json:"replaces,omitempty"`
	ReplacedBy string          `json:"replaced_by,omitempty"`
	RunsAs     store.Text      `json:"runs_as,omitzero"`
	Owner      string          `json:"owner,omitempty"`
	Took       int64           `json:"took_ms,omitempty"`
	TookMicros int64           `json:"took_us,omitempty"`
	Decision   *store.Decision `json:"decision,omitempty"`
	Late       bool            `json:"late,omitempty"` // written after a full disk had room again

	at time.Time // when it happened, if before the transaction
}

// withTimes adds the duration of a call that has ended.
func (d CallData) withTimes(c store.Call) CallData {
	took := spending.Took(c)
	d.Took, d.TookMicros = took.Milliseconds(), took.Microseconds()
	if took > 0 && d.TookMicros == 0 {
		d.TookMicros = 1 // it did run
	}
	if c.State.Final() {
		d.at = c.Finished
	} else if c.State == store.Running {
		d.at = c.Started
	}
	return d
}

// CallEvent appends an event about a call.
func CallEvent(t *commit.Tx, by store.Caller, kind string, c store.Call, data CallData) error {
	data.Reason = store.Plain(store.RedactText(data.Reason.String()))
	if data.Decision != nil {
		data.Decision.Reason = store.Plain(store.RedactText(data.Decision.Reason.String()))
	}
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if c.Decides() {
		kind = decidedKind(kind, c)
	}
	return t.Event(commit.Note{By: by, Kind: kind, Subject: c.ID, Tool: c.ToolID(), Outcome: c.State, Data: json.RawMessage(b), At: data.at})
}

// decidedKind is the kind of an event about an ask or a question, which names its
// state.
func decidedKind(kind string, c store.Call) string {
	verb := strings.TrimPrefix(kind, "call.")
	switch store.Verb(verb) {
	case store.Approve:
		verb = string(store.Approved)
	case store.Deny:
		verb = string(store.Refused)
	case store.Cancel:
		verb = string(store.Cancelled)
	case store.Expire:
		verb = string(store.Expired)
	}
	if c.Question != nil {
		return "question." + verb
	}
	return "ask." + verb
}

// output returns the excerpt of a result for the audit trail. It is empty for a private
// result, since others read the trail, too.
func output(c store.Call, r *store.Result) json.RawMessage {
	switch {
	case r == nil || c.Private:
		return nil
	case r.Error != nil:
		b, err := json.Marshal(r.Error)
		if err != nil {
			return nil
		}
		return commit.Redact(b, commit.MaxOutput)
	}
	return commit.Redact(r.Passed(), commit.MaxOutput)
}
