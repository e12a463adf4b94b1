package record

import (
	"strings"

	"nize/store"
)

// Call is the stored form of a [store.Call].
type Call struct {
	store.Call
	RunsAs   store.StoredText   `json:"runs_as"`
	Warnings []store.StoredText `json:"warnings,omitempty"`
	Reason   store.StoredText   `json:"reason,omitzero"`
}

// OfCall returns the stored form of a call.
func OfCall(c store.Call) Call {
	r := Call{Call: c, RunsAs: store.StoredText{Text: c.RunsAs}, Reason: store.StoredText{Text: c.Reason}}
	for _, w := range c.Warnings {
		r.Warnings = append(r.Warnings, store.StoredText{Text: w})
	}
	return r
}

// Value returns the call.
func (r Call) Value() store.Call {
	c := r.Call
	c.RunsAs, c.Reason, c.Warnings = r.RunsAs.Text, r.Reason.Text, nil
	for _, w := range r.Warnings {
		c.Warnings = append(c.Warnings, w.Text)
	}
	return c
}

// Turn is the stored form of a [store.Turn].
type Turn struct {
	store.Turn
	Said  store.StoredText `json:"said,omitzero"`
	Ended store.State      `json:"ended,omitempty"`
}

// OfTurn returns the stored form of a turn.
func OfTurn(t store.Turn) Turn { return Turn{t, store.StoredText{Text: t.Said}, t.Ended} }

// Value returns the turn. A notice that was stored before notices kept their formats
// becomes a text without arguments. In older records a model's text ends with nize's
// remark.
func (r Turn) Value() store.Turn {
	t := r.Turn
	t.Said, t.Ended = r.Said.Text, r.Ended
	if t.Said == (store.Text{}) && t.Role == store.FromNize {
		t.Said = store.Keyed(t.Text)
	}
	if t.Role == store.FromModel && t.Said != (store.Text{}) {
		if text, ok := strings.CutSuffix(t.Text, t.Said.String()); ok {
			t.Text = strings.TrimSuffix(text, "\n\n")
		}
	}
	return t
}

// Incident is the stored form of a [store.Incident].
type Incident struct {
	store.Incident
	Title store.StoredText `json:"title"`
	Text  store.StoredText `json:"text"`
}

// OfIncident returns the stored form of an incident.
func OfIncident(i store.Incident) Incident {
	return Incident{i, store.StoredText{Text: i.Title}, store.StoredText{Text: i.Text}}
}

// Value returns the incident.
func (r Incident) Value() store.Incident {
	i := r.Incident
	i.Title, i.Text = r.Title.Text, r.Text.Text
	return i
}
