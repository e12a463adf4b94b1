package taskwire

import (
	"encoding/json"
	"fmt"
)

// MethodElicit is the request by which a server asks the person behind a call.
const MethodElicit = "elicitation/create"

// Elicit is what a server asks: for a form with Schema, or to open URL.
type Elicit struct {
	Mode    string          `json:"mode,omitempty"` // "form", also if it is missing, or "url"
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema,omitempty"`
	URL     string          `json:"url,omitempty"`
	ID      string          `json:"elicitationId,omitempty"`
}

// ReadElicit reads the parameters of elicitation/create.
func ReadElicit(params json.RawMessage) (Elicit, error) {
	var e Elicit
	if err := json.Unmarshal(params, &e); err != nil {
		return e, fmt.Errorf("the parameters of %s can't be read: %w", MethodElicit, err)
	}
	switch e.Mode {
	case "":
		e.Mode = "form"
	case "form", "url":
	default:
		return e, fmt.Errorf("%s has the unknown mode %q", MethodElicit, clip(e.Mode))
	}
	if e.Message == "" {
		return e, fmt.Errorf("%s has no message", MethodElicit)
	}
	return e, nil
}

// The actions of an answer.
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel" // they gave no answer
)

// Answer is what the person did.
type Answer struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"` // of a form that was accepted
}

// ReadAnswer reads what a client answered for its person.
func ReadAnswer(raw json.RawMessage) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("the answer to a question can't be read: %w", err)
	}
	switch a.Action {
	case Accept:
	case Decline, Cancel:
		a.Content = nil
	default:
		return a, fmt.Errorf("the answer to a question has the unknown action %q", clip(a.Action))
	}
	return a, nil
}

// JSON is the answer on the wire.
func (a Answer) JSON() json.RawMessage {
	b, err := json.Marshal(a)
	if err != nil {
		return json.RawMessage(`{"action":"cancel"}`) // content is JSON: it was read or made
	}
	return b
}
