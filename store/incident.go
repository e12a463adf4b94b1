package store

import (
	"context"
	"time"
)

// IncidentState is where an incident stands.
type IncidentState string

const (
	IncidentOpen      IncidentState = "open"
	IncidentAcked     IncidentState = "acked" // somebody has seen it; it goes on
	IncidentRecovered IncidentState = "recovered"
)

// Incident is something that was wrong for a while: an operator is told once
// when it begins and once when it is over. Of one kind and subject at
// most one is active, which is open or acked.
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
	Users     []string      `json:"users,omitempty"` // ids of those whom it concerns, besides admins
	Delivery  Delivery      `json:"delivery"`
}

// Delivery is how far the message about an incident came.
type Delivery struct {
	Sent   IncidentState `json:"sent,omitempty"`   // the last state that the destination took
	Handle string        `json:"handle,omitempty"` // the destination's name of the message, to edit it
	Tries  int           `json:"tries,omitempty"`  // that failed since
	Next   time.Time     `json:"next,omitzero"`    // of the next try
	GaveUp bool          `json:"gave_up,omitempty"`
	Error  string        `json:"error,omitempty"` // of the last try
}

// Active says whether what is wrong still is.
func (i Incident) Active() bool { return i.State != IncidentRecovered }

// Due says whether the destination has yet to be told. An incident that
// somebody saw before it could be sent needs no message any more.
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

// Concerns says whether a caller may know of the incident.
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
	All   bool // those that are over too; without it the active ones
	Due   bool // only those of which the destination has yet to be told, oldest first
	Limit int  // 0 is 1000
}

// Incidents keeps what operators are told of. Its writes get through
// on a full disk too, since that is an incident.
type Incidents interface {
	// OpenIncident stores a new open incident. ErrExists, together with the one
	// that is active, if there is one of its kind and subject.
	OpenIncident(ctx context.Context, by Caller, i Incident) (Incident, error)
	// AckIncident notes who has seen an open incident. ErrDecided, together
	// with the incident, if somebody had, or if it is over.
	AckIncident(ctx context.Context, by Caller, id string) (Incident, error)
	// RecoverIncident ends an active incident. ErrDecided if it is over. What
	// failed of its delivery is forgotten: the end is news.
	RecoverIncident(ctx context.Context, by Caller, id string) (Incident, error)
	// NoteDelivery stores how far the message came.
	NoteDelivery(ctx context.Context, by Caller, id string, d Delivery) error
	// ListIncidents returns the newest first, unless q says otherwise.
	ListIncidents(ctx context.Context, q IncidentQuery) ([]Incident, error)
}
