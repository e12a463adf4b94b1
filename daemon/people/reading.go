package people

import (
	"context"
	"encoding/json"
	"fmt"

	"nize/store"
)

// Trail records who read another person's data.
type Trail interface {
	AddEvent(by store.Caller, e store.Event)
	Flush(ctx context.Context) error
}

// NoteReading records in the audit trail that an admin reads another person's data, and the
// reason. It returns when the event is on disk; nothing may be read before that.
func NoteReading(ctx context.Context, t Trail, by store.Caller, kind, subject, reason string) error {
	data, err := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	if err != nil {
		return fmt.Errorf("encoding the reason: %w", err)
	}
	t.AddEvent(by, store.Event{Kind: kind, Subject: subject, Data: data})
	if err := t.Flush(ctx); err != nil {
		return fmt.Errorf("recording who reads %s: %w", subject, err)
	}
	return nil
}
