package backoff

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	b := Exponential{First: 250 * time.Millisecond, Most: time.Minute}
	for n, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 5: 4 * time.Second, 8: 32 * time.Second,
		9: time.Minute, 10: time.Minute, 64: time.Minute, 1000: time.Minute,
	} {
		if got := b.After(n); got != want {
			t.Errorf("after %d failures: %s, want %s", n, got, want)
		}
	}
	if got := (Exponential{First: time.Second}).After(4); got != 8*time.Second {
		t.Errorf("without a limit: %s", got)
	}
	if got := (Exponential{First: time.Minute, Most: time.Second}).After(1); got != time.Second {
		t.Errorf("a limit below the first delay: %s", got)
	}
}

func TestJitter(t *testing.T) {
	for range 1000 {
		if d := Jitter(10*time.Second, 2*time.Second); d < 8*time.Second || d > 10*time.Second {
			t.Fatalf("%s is outside of 8 to 10 s", d)
		}
	}
	if d := Jitter(0, 0); d != 0 {
		t.Errorf("no delay became %s", d)
	}
}
