package store

import (
	"encoding/json"
	"time"
)

// Ask makes a call one that nize decides and its asker runs: a step of a coding agent
// or a script. Everything in it but Grant is the asker's own claim.
type Ask struct {
	Title      string `json:"title,omitempty"`
	Cwd        string `json:"cwd,omitempty"`
	Host       string `json:"host,omitempty"`
	Session    string `json:"session,omitempty"`
	Repository string `json:"repository,omitempty"`
	// Key is the caller's own name for the ask: with the same one it gets the same ask.
	Key string `json:"key,omitempty"`
	// Grant is the standing answer that allowed it without a card.
	Grant string `json:"standing,omitempty"`
}

// AskRequest is what an asker sends of one step.
type AskRequest struct {
	Source, Tool string
	Args         json.RawMessage
	Why          string
	Expires      time.Duration // how long it waits; 0 is the setting's
	Ask
}

// Bounds of what an asker says of itself, in bytes.
const (
	MaxAskText = 500
	MaxAskKey  = 200
)

// Where is the directory and the machine that the asker says it is at.
func (a *Ask) Where() string {
	switch {
	case a.Host == "":
		return a.Cwd
	case a.Cwd == "":
		return a.Host
	}
	return a.Host + ":" + a.Cwd
}

// Session names the session of the asker that an ask is of, as standing answers for a
// conversation know it; "" for none, and for a call that is no ask.
func (c Call) Session() string {
	if c.Ask == nil {
		return ""
	}
	return c.Step
}
