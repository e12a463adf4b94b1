package bolt

import (
	"encoding/json"
	"errors"

	"nize/store"
)

// The texts of a record are stored with their formats and arguments; as JSON of
// its own a record has them in English.

// callHead is [storedCall]'s head on disk.
type callHead struct {
	store.Call
	RunsAs   store.StoredText   `json:"runs_as"`
	Warnings []store.StoredText `json:"warnings,omitempty"`
	Reason   store.StoredText   `json:"reason,omitzero"`
}

func encodeCallHead(c store.Call) ([]byte, error) {
	h := callHead{Call: c, RunsAs: store.StoredText{Text: c.RunsAs}, Reason: store.StoredText{Text: c.Reason}}
	for _, w := range c.Warnings {
		h.Warnings = append(h.Warnings, store.StoredText{Text: w})
	}
	return json.Marshal(h)
}

func decodeCallHead(b []byte) (store.Call, error) {
	h, err := decodeJSON[callHead](b)
	c := h.Call
	c.RunsAs, c.Reason = h.RunsAs.Text, h.Reason.Text
	for _, w := range h.Warnings {
		c.Warnings = append(c.Warnings, w.Text)
	}
	return c, err
}

type turnHead struct {
	store.Turn
	Said  store.StoredText `json:"said,omitzero"`
	Ended store.State      `json:"ended,omitempty"`
}

func encodeTurn(t store.Turn) ([]byte, error) {
	return json.Marshal(turnHead{t, store.StoredText{Text: t.Said}, t.Ended})
}

func decodeTurn(b []byte) (store.Turn, error) {
	h, err := decodeJSON[turnHead](b)
	t := h.Turn
	t.Ended = h.Ended
	if h.Said.Text == (store.Text{}) && t.Role == store.FromNize { // stored before notices kept their formats
		words, _ := json.Marshal(t.Text) // strings always encode
		err = errors.Join(err, h.Said.UnmarshalJSON(words))
	}
	t.Said = h.Said.Text
	return t, err
}

type incidentRecord struct {
	store.Incident
	Title store.StoredText `json:"title"`
	Text  store.StoredText `json:"text"`
}

func (t *tx) readIncident(k []byte) (store.Incident, error) {
	r, err := getJSON[incidentRecord](t, "incidents", k)
	i := r.Incident
	i.Title, i.Text = r.Title.Text, r.Text.Text
	return i, err
}
