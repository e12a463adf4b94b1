package store

import (
	"encoding/json"
	"time"
)

// Ask makes a call one that nize decides and its asker runs: a step of a coding agent or a
// script. All fields except Grant are claims of the asker.
type Ask struct {
	Title      string `json:"title,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	Host       string `json:"host,omitempty"`
	Session    string `json:"session,omitempty"`
	Repository string `json:"repository,omitempty"`
	// Key is the caller's own name for the ask. Repeating it returns the same ask.
	Key string `json:"key,omitempty"`
	// Grant is the standing answer that allowed the ask without a card.
	Grant string `json:"standing,omitempty"`
}

// AskRequest is what an asker sends about one step.
type AskRequest struct {
	Source, Tool string
	Args         json.RawMessage
	Why          string
	Expires      time.Duration // how long it waits; 0 is the configured time
	Ask
}

// Limits of an asker's claims about itself, in bytes.
const (
	MaxAskText = 500
	MaxAskKey  = 200
)

// Where returns the directory and the machine that the asker claims to be in.
func (a *Ask) Where() string {
	switch {
	case a.Host == "":
		return a.Cwd
	case a.Cwd == "":
		return a.Host
	}
	return a.Host + ":" + a.Cwd
}

// Session returns the name of the asker's session, which identifies the conversation for
// standing answers. It is "" for an ask without a session and for a call that is not an
// ask.
func (c Call) Session() string {
	if c.Ask == nil {
		return ""
	}
	return c.Step
}
