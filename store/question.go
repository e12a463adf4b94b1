package store

import (
	"encoding/json"
	"net/url"
)

// Question makes a call a question that a server asks its requester while another
// call runs. nize never runs it: an answer makes it approved, which is its end, and
// becomes its arguments. Until then its arguments are the form's defaults.
type Question struct {
	Of string `json:"of"` // the id of the call that runs

	// The fields below are the server's own words. They are sealed at rest with the
	// arguments.

	Message string          `json:"message,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"` // of the form; empty if the person is asked to open URL
	URL     string          `json:"url,omitempty"`
}

// Host returns the host of the URL, with its port, or "" if the question is a form.
func (q *Question) Host() string {
	u, err := url.Parse(q.URL)
	if err != nil || q.URL == "" {
		return ""
	}
	return u.Host
}

// Decides reports whether nize only decides on the call and never runs it: it is an
// ask or a question.
func (c Call) Decides() bool { return c.Ask != nil || c.Question != nil }
