package people

import (
	"context"
	"encoding/json"
	"fmt"

	"nize/store"
)

// Trail is where it is noted who read what belongs to somebody else.
type Trail interface {
	AddEvent(by store.Caller, e store.Event)
	Flush(ctx context.Context) error
}

// NoteReading puts into the audit that an admin reads what belongs to another
// person, and why. It returns once that is on disk: nothing is read before.
func NoteReading(ctx context.Context, t Trail, by store.Caller, kind, subject, reason string) error {
	data, err := json.Marshal(struct {
		Reason string `json:"reason,omitempty"`
	}{reason})
	if err != nil {
		return fmt.Errorf("encoding the reason: %w", err)
	}
	t.AddEvent(by, store.Event{Kind: kind, Subject: subject, Data: data})
	if err := t.Flush(ctx); err != nil {
		return fmt.Errorf("noting who reads %s: %w", subject, err)
	}
	return nil
}
