package company

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"nize/store"
)

// TestSCIMErrors checks that a directory retries after an outage and not after a refusal.
func TestSCIMErrors(t *testing.T) {
	c := &Company{Options: Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	for err, want := range map[error]int{
		fmt.Errorf("reading a user: %w", store.ErrNoDatabase): http.StatusServiceUnavailable,
		fmt.Errorf("reading a user: %w", store.ErrNotOpen):    http.StatusServiceUnavailable,
		store.ErrNotFound:                         http.StatusNotFound,
		store.ErrExists:                           http.StatusConflict,
		store.ErrInvalid:                          http.StatusBadRequest,
		badSCIM("invalidFilter", "no"):            http.StatusBadRequest,
		errors.New("a secret of the inner parts"): http.StatusInternalServerError,
	} {
		w := httptest.NewRecorder()
		c.failSCIM(w, err)
		if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%v: %d, Retry-After %q, want %d", err, w.Code, w.Header().Get("Retry-After"), want)
		}
	}
}
