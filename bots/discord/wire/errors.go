package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/store"
)

// Discord's codes that something is done about.
const (
	UnknownChannel    = 10003
	UnknownMember     = 10007
	UnknownUser       = 10013
	MissingAccess     = 50001
	MissingPermission = 50013
	Archived          = 50083
	HasThread         = 160004
)

// refusal is what Discord refuses.
type refusal struct {
	status, code int
	said         string
}

func refusalOf(e *discordgo.RESTError) error {
	r := &refusal{status: e.Response.StatusCode}
	if e.Message != nil {
		r.code, r.said = e.Message.Code, store.Clip(e.Message.Message, 200)
	}
	if r.code == 0 {
		r.code = -r.status
	}
	return r
}

func (r *refusal) Error() string {
	return fmt.Sprintf("Discord refuses it: %s (HTTP %d, code %d)", r.said, r.status, r.code)
}

// Unwrap makes what is not there an ErrNotFound.
func (r *refusal) Unwrap() error {
	if r.status == http.StatusNotFound {
		return store.ErrNotFound
	}
	return nil
}

// limited is a limit of Discord's.
type limited struct{ after time.Duration }

func (l *limited) Error() string { return fmt.Sprintf("Discord asks to wait for %s", l.after) }

// unsure is a request of which nobody knows whether it was done.
type unsure struct{ err error }

func (u *unsure) Error() string { return u.err.Error() }
func (u *unsure) Unwrap() error { return u.err }

// Code is why Discord refused, less than 0 for a status without a code, and 0
// where it did not answer.
func Code(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	return 0
}

// Refused says whether Discord answered that it will not, whatever is tried.
func Refused(err error) bool { return Code(err) != 0 }

// Unreachable makes what Discord refuses for good an ErrNotFound: the person has
// no place to read alone.
func Unreachable(err error) error {
	if Refused(err) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return err
}

// TokenGone says whether the token is not valid any more.
func TokenGone(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusUnauthorized
}

// Unsure says whether nobody knows if a request was done.
func Unsure(err error) bool {
	var u *unsure
	return errors.As(err, &u)
}

// LimitOf is how long Discord asks to wait.
func LimitOf(err error) (after time.Duration, ok bool) {
	var l *limited
	if errors.As(err, &l) {
		return l.after, true
	}
	return 0, false
}

// Lasting says whether the same would fail again: Discord refuses it, or nize
// itself does.
func Lasting(err error) bool {
	for _, known := range []error{store.ErrInvalid, store.ErrNotFound, store.ErrRefused, store.ErrExpired, store.ErrDecided} {
		if errors.Is(err, known) {
			return true
		}
	}
	return Refused(err)
}

// Retry runs what works on something that is stored, until it is done, can't be,
// or ctx ends: Discord may be away for a while.
func (c *Client) Retry(ctx context.Context, run func(context.Context) error) error {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := run(ctx)
		if err == nil || ctx.Err() != nil || Lasting(err) {
			return err
		}
		_, waits := LimitOf(err)
		if !waits && !Unsure(err) {
			return err
		}
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
	}
}
