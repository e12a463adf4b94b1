package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/store"
	"nize/store/backoff"
)

// refusal is an error response of Discord.
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

// Unwrap returns ErrNotFound if the object doesn't exist.
func (r *refusal) Unwrap() error {
	if r.status == http.StatusNotFound {
		return store.ErrNotFound
	}
	return nil
}

// limited is a rate limit.
type limited struct{ after time.Duration }

func (l *limited) Error() string { return fmt.Sprintf("Discord asks to wait for %s", l.after) }

// unsure is a request whose outcome is unknown.
type unsure struct{ err error }

func (u *unsure) Error() string { return u.err.Error() }
func (u *unsure) Unwrap() error { return u.err }

// Code returns Discord's error code: negative for a status without a code, 0 if there was
// no response.
func Code(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.code
	}
	return 0
}

// Refused reports whether Discord refused the request for good.
func Refused(err error) bool { return Code(err) != 0 }

// Unreachable turns Discord's lasting refusals into ErrNotFound: the person has no private
// place.
func Unreachable(err error) error {
	if Refused(err) && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return err
}

// TokenGone reports whether the token is no longer valid.
func TokenGone(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusUnauthorized
}

// Unsure reports whether it is unknown if a request was carried out.
func Unsure(err error) bool {
	var u *unsure
	return errors.As(err, &u)
}

// LimitOf returns how long Discord asks to wait.
func LimitOf(err error) (after time.Duration, ok bool) {
	var l *limited
	if errors.As(err, &l) {
		return l.after, true
	}
	return 0, false
}

// Lasting reports whether the same request would fail again, because Discord or nize itself
// refuses it.
func Lasting(err error) bool {
	for _, known := range []error{store.ErrInvalid, store.ErrNotFound, store.ErrRefused, store.ErrExpired, store.ErrDecided} {
		if errors.Is(err, known) {
			return true
		}
	}
	return Refused(err)
}

// Retry runs the work for a stored item until it succeeds, can't succeed, or ctx ends:
// Discord may be unavailable for a while.
func (c *Client) Retry(ctx context.Context, run func(context.Context) error) error {
	pause := backoff.Exponential{First: time.Second, Most: time.Minute}
	for try := 1; ; try++ {
		err := run(ctx)
		if err == nil || ctx.Err() != nil || Lasting(err) {
			return err
		}
		_, waits := LimitOf(err)
		if !waits && !Unsure(err) {
			return err
		}
		if err := c.wait(ctx, pause.After(try)); err != nil {
			return err
		}
	}
}
