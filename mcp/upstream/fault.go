package upstream

import (
	"errors"
	"net"
	"net/http"
	"net/url"

	"nize/store"
)

// reach is how far a request that failed can have come.
type reach int

const (
	maybe    reach = iota // it may have run: nobody can tell
	never                 // it cannot have reached the tool
	answered              // the server answered it
)

// fault is why a request failed, and what that says about the tool and about
// the session.
type fault struct {
	reach reach
	drop  bool       // the session is of no more use: make a new one
	code  store.Code // for the caller; "" follows from reach
	err   error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// asFault finds the fault in err; an error without one tells nothing.
func asFault(err error) *fault {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{reach: maybe, drop: true, err: err}
}

// credentialError is an answer that wants another credential.
type credentialError struct{ text string }

func (e *credentialError) Error() string { return e.text }

// loginLost says whether a session failed because the server refused the
// credential (401 or 403).
func loginLost(err error) bool {
	var refused *credentialError
	var status *statusError
	return errors.As(err, &refused) ||
		errors.As(err, &status) && (status.status == http.StatusUnauthorized || status.status == http.StatusForbidden)
}

// netFault judges an error of an HTTP round trip: a dial that failed has sent
// nothing; net/http itself repeats what an idle connection lost unsent.
func netFault(err error) *fault {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return &fault{reach: never, drop: true, err: withoutURL(err)}
	}
	return &fault{reach: maybe, drop: true, err: withoutURL(err)}
}

// withoutURL strips the *url.Error that repeats method and URL: a URL may hold a key.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
