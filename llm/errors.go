package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"nize/store"
	"time"
)

// ErrShutdown is the cause with which a daemon that goes down cancels the
// context of [Agent.Work]: nothing is kept, the thread stays open and the turn
// is done again after the restart. Every other cancellation is a person's
// stop: what was said so far is kept as the answer.
var ErrShutdown = errors.New("nize is going down")

// Fault is the kind of a provider's error.
type Fault string

const (
	FaultBusy    Fault = "busy"    // 429: too much asked of it
	FaultDown    Fault = "down"    // 5xx, refused or broken connections
	FaultTimeout Fault = "timeout" // it did not answer, or stopped to
	FaultCredit  Fault = "credit"  // 402, or a 429 that waiting does not cure: what was paid for is used up
	FaultAuth    Fault = "auth"    // 401, 403
	FaultRequest Fault = "request" // it did not accept what was asked
	FaultAnswer  Fault = "answer"  // its answer broke off or made no sense
)

// ProviderError is what a model service gave instead of a reply. It holds no
// key: whoever makes it removes what looks like one.
type ProviderError struct {
	Provider   string
	Fault      Fault
	Status     int           // of HTTP; 0 if there was no answer
	RetryAfter time.Duration // what the service asked to wait; 0 if it didn't
	Message    string        // the service's own words, one bounded line
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

// Temporary says whether another model may do better (429, 5xx,
// timeouts and refused connections).
func (e *ProviderError) Temporary() bool {
	return e.Fault == FaultBusy || e.Fault == FaultCredit || e.Fault == FaultDown || e.Fault == FaultTimeout
}

// sentence tells a person in one line why there is no answer. Only what we
// know is said; the rest is for the log.
func sentence(err error) store.Text {
	var pe *ProviderError
	if !errors.As(err, &pe) {
		var te *TargetError
		if errors.As(err, &te) {
			return store.Textf("Model %s cannot be used: %s.", te.Name, te.Why)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return store.Textf("The model took too long to answer. Please try again.")
		}
		return store.Textf("I could not answer because of an internal error. An admin finds the cause in nize's log.")
	}
	switch pe.Fault {
	case FaultBusy:
		if pe.RetryAfter > 0 {
			return store.Textf("The model service %s is busy and asks to wait %s. Please try again then.", pe.Provider, pe.RetryAfter.Round(time.Second))
		}
		return store.Textf("The model service %s is busy. Please try again in a moment.", pe.Provider)
	case FaultCredit:
		return store.Textf("The model service %s says that its credit is used up. An admin must see to it.", pe.Provider)
	case FaultDown:
		return store.Textf("The model service %s cannot be reached right now. Please try again in a moment.", pe.Provider)
	case FaultTimeout:
		return store.Textf("The model service %s took too long to answer. Please try again.", pe.Provider)
	case FaultAuth:
		return store.Textf("The model service %s did not accept nize's key. An admin must set it again.", pe.Provider)
	case FaultRequest:
		return store.Textf("The model service %s refused the request: %s", pe.Provider, pe.Message)
	}
	return store.Textf("The answer of the model service %s broke off. Please try again.", pe.Provider)
}
