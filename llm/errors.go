package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"nize/store"
	"strings"
	"time"
)

// ErrShutdown is the cause with which a daemon that shuts down cancels the context of
// [Agent.Work]: nothing is stored, the thread stays open, and the turn is repeated after
// the restart. Any other cancellation is a person's stop: the text so far is stored as the
// answer.
var ErrShutdown = errors.New("nize is going down")

// Fault is the kind of a provider's error.
type Fault string

const (
	FaultBusy    Fault = "busy"    // 429: rate limited
	FaultDown    Fault = "down"    // 5xx, refused or broken connections
	FaultTimeout Fault = "timeout" // no response, or it stalled
	FaultCredit  Fault = "credit"  // 402, or a 429 that waiting can't fix: the credit is used up
	FaultAuth    Fault = "auth"    // 401, 403
	FaultRequest Fault = "request" // the request was rejected
	FaultAnswer  Fault = "answer"  // the response was cut off or malformed

	FaultTooLong  Fault = "too_long" // the conversation doesn't fit into the model
	FaultLength   Fault = "length"   // the response reached its maximum length before any text
	FaultWithheld Fault = "withheld" // it refuses to answer because of the content
)

// ProviderError is a model service's error. It contains no key: its creator removes
// anything that looks like one.
type ProviderError struct {
	Provider   string
	Fault      Fault
	Status     int           // HTTP status; 0 if there was no response
	RetryAfter time.Duration // pause requested by the service; 0 for none
	Message    string        // the service's own message, one line of limited length
	Err        error
}

func (e *ProviderError) Error() string {
	s := fmt.Sprintf("provider %s: %s", e.Provider, e.Fault)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d %s)", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *ProviderError) Unwrap() error { return e.Err }

// TargetError is returned if a name has no usable model. It is meant for people.
type TargetError struct {
	Name string // the requested name
	Why  store.Text
	Err  error // a sentinel of store
	// Behind reports that Name and Why are about the provider behind a name, which only
	// admins may see.
	Behind bool
}

func (e *TargetError) Error() string { return e.Text().String() }
func (e *TargetError) Unwrap() error { return e.Err }

// Text returns the message.
func (e *TargetError) Text() store.Text {
	return store.Textf("Model %s cannot be used: %s", e.Name, e.Why)
}

// Temporary reports whether another model may succeed (429, 5xx, timeouts and refused
// connections).
func (e *ProviderError) Temporary() bool {
	return e.Fault == FaultBusy || e.Fault == FaultCredit || e.Fault == FaultDown || e.Fault == FaultTimeout
}

// Sentence returns in one line why there is no answer, for people who aren't admins.
func Sentence(err error) store.Text { return sentence(err, false) }

// sentence returns in one line why there is no answer. It contains only what is known for
// sure; the rest goes to the log. Only admins see which service is behind a model.
func sentence(err error, forAdmin bool) store.Text {
	var pe *ProviderError
	if !errors.As(err, &pe) {
		var te *TargetError
		switch {
		case errors.As(err, &te) && (forAdmin || !te.Behind):
			return store.Textf("Model %s cannot be used: %s.", te.Name, te.Why)
		case te != nil:
			return store.Textf("The model cannot be used right now. An admin finds the cause in nize's log.")
		case errors.Is(err, context.DeadlineExceeded):
			return store.Textf("The model took too long to answer. Please try again.")
		}
		return store.Textf("I could not answer because of an internal error. An admin finds the cause in nize's log.")
	}
	service := store.Textf("The model service")
	if forAdmin {
		service = store.Textf("The model service %s", pe.Provider)
	}
	switch pe.Fault {
	case FaultBusy:
		if pe.RetryAfter > 0 {
			return store.Textf("%s is busy. Please try again in %s.", service, waitText(pe.RetryAfter))
		}
		return store.Textf("%s is busy. Please try again in a moment.", service)
	case FaultCredit:
		return store.Textf("%s says that its credit is used up. An admin must see to it.", service)
	case FaultDown:
		if said := strings.TrimRight(pe.Message, ". "); forAdmin && said != "" && pe.Status != 0 { // the service responded
			return store.Textf("%s failed: %s. Please try again in a moment.", service, said)
		}
		return store.Textf("%s cannot be reached right now. Please try again in a moment.", service)
	case FaultTimeout:
		return store.Textf("%s took too long to answer. Please try again.", service)
	case FaultAuth:
		return store.Textf("%s did not accept nize's key. An admin must set it again.", service)
	case FaultTooLong:
		return store.Textf("This conversation is too long for the model. Please begin a new one, or send less at once.")
	case FaultLength:
		return store.Textf("The model reached the limit of an answer's length before it wrote any of it. Please ask for something shorter.")
	case FaultWithheld:
		return store.Textf("%s withheld its answer to this. Please put it in other words.", service)
	case FaultRequest:
		if forAdmin && pe.Message != "" {
			return store.Textf("%s refused the request: %s", service, pe.Message)
		}
		return store.Textf("%s refused the request. An admin finds the cause in nize's log.", service)
	}
	return store.Textf("%s broke off its answer. Please try again.", service)
}

// waitText returns a duration in words, rounded up: 1 hour, 5 minutes.
func waitText(d time.Duration) store.Text {
	up := func(unit time.Duration) int { return int((d + unit - 1) / unit) }
	switch {
	case d <= time.Second:
		return store.Textf("1 second")
	case d < time.Minute:
		return store.Textf("%d seconds", up(time.Second))
	case d == time.Minute:
		return store.Textf("1 minute")
	case up(time.Minute) < 60:
		return store.Textf("%d minutes", up(time.Minute))
	case up(time.Hour) == 1:
		return store.Textf("1 hour")
	}
	return store.Textf("%d hours", up(time.Hour))
}
