package store

import (
	"context"
	"time"
)

// IncidentState is the state of an incident.
type IncidentState string

const (
	IncidentOpen      IncidentState = "open"
	IncidentAcked     IncidentState = "acked" // a person acknowledged it; it continues
	IncidentRecovered IncidentState = "recovered"
)

// Incident is a fault that lasts for a while: operators are notified once when it begins
// and once when it ends. For each kind and subject, at most one is active, which is open or
// acked.
type Incident struct {
	ID        string        `json:"id"`
	Kind      string        `json:"kind"`    // server.down, tool.held, disk …
	Subject   string        `json:"subject"` // a server's, tool's, token's id …
	State     IncidentState `json:"state"`
	Title     Text          `json:"title"` // one line
	Text      Text          `json:"text"`
	Cure      string        `json:"cure"` // the command that fixes it
	Opened    time.Time     `json:"opened"`
	Acked     time.Time     `json:"acked,omitzero"`
	AckedBy   string        `json:"acked_by,omitempty"` // a user's id
	Recovered time.Time     `json:"recovered,omitzero"`
	Users     []string      `json:"users,omitempty"` // ids of the users concerned, in addition to admins
	Delivery  Delivery      `json:"delivery"`
}

// Delivery is the progress of notifying a destination of an incident.
type Delivery struct {
	Sent   IncidentState `json:"sent,omitempty"`   // the last state that the destination accepted
	Handle string        `json:"handle,omitempty"` // the destination's id of the message, to edit it
	Tries  int           `json:"tries,omitempty"`  // failed attempts since then
	Next   time.Time     `json:"next,omitzero"`    // time of the next attempt
	GaveUp bool          `json:"gave_up,omitempty"`
	Error  string        `json:"error,omitempty"` // of the last attempt
}

// Active reports whether the fault continues.
func (i Incident) Active() bool { return i.State != IncidentRecovered }

// Due reports whether the destination has yet to be notified. An incident that was
// acknowledged before it was sent needs no message.
func (i Incident) Due() bool {
	switch {
	case i.Delivery.GaveUp:
		return false
	case i.State == IncidentOpen:
		return i.Delivery.Sent == ""
	case i.State == IncidentRecovered:
		return i.Delivery.Sent != IncidentRecovered
	}
	return false
}

// Concerns reports whether a caller may see the incident.
func (i Incident) Concerns(by Caller) bool {
	if by.IsAdmin() {
		return true
	}
	for _, u := range i.Users {
		if u == by.User {
			return true
		}
	}
	return false
}

// IncidentQuery selects incidents.
type IncidentQuery struct {
	All   bool // include ended incidents; otherwise only active ones
	Due   bool // only incidents with a destination yet to be notified, oldest first
	Limit int  // 0 is 1000
	// Kinds selects active incidents of these kinds, without reading others. It can't be
	// used with All or Due.
	Kinds []string
}

// Incidents stores incidents. Its writes also succeed on a full disk, since that is an
// incident.
type Incidents interface {
	// OpenIncident stores a new open incident. If one of its kind and subject is active, it
	// returns that one and ErrExists.
	OpenIncident(ctx context.Context, by Caller, i Incident) (Incident, error)
	// AckIncident records that the caller acknowledged an open incident. It returns the
	// incident and ErrDecided if it was acknowledged before, or has ended.
	AckIncident(ctx context.Context, by Caller, id string) (Incident, error)
	// RecoverIncident ends an active incident. It returns ErrDecided if it has ended. It
	// clears failed deliveries, since the end is delivered anew.
	RecoverIncident(ctx context.Context, by Caller, id string) (Incident, error)
	// NoteDelivery stores the progress of a delivery.
	NoteDelivery(ctx context.Context, by Caller, id string, d Delivery) error
	// ListIncidents returns incidents, newest first unless q sets another order.
	ListIncidents(ctx context.Context, q IncidentQuery) ([]Incident, error)
	// CountIncidents returns the number of active incidents, and of those whose message is
	// due. It reads no records.
	CountIncidents(ctx context.Context) (active, due int, err error)
}
