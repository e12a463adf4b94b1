package outage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away, other := fmt.Errorf("asking: %w", store.ErrNoDatabase), errors.New("another")
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		begun, n := time.Now(), 0
		err := Await(ctx, func() error {
			if n++; n < 4 {
				return away
			}
			return other
		})
		if took := time.Since(begun); err != other || n != 4 || took != 700*time.Millisecond {
			t.Errorf("it is %v after %d times and %v", err, n, took)
		}
		if err := Await(ctx, func() error { return away }); err != away || ctx.Err() == nil {
			t.Errorf("at the end it is %v", err)
		}
		if !Is(away) || !Is(store.ErrNotOpen) || Is(other) || Is(nil) {
			t.Error("what is an outage is told wrongly")
		}
	})
}
