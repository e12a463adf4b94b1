package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nize/store"
	"nize/store/kv"
)

// Fault is a fault injected into a transaction that is about to be committed.
type Fault struct {
	Do func(t *testing.T, e kv.Engine, b kv.Transaction)
	// Want is the expected result of Commit: one of the engine's errors, nil if the
	// transaction must succeed in spite of the fault, or ErrUnknown.
	Want error
}

// ErrUnknown stands for any error that leaves the outcome of a transaction open.
var ErrUnknown = errors.New("nobody knows")

// named are the temporary errors after which nothing was committed.
var named = []error{kv.ErrRetry, store.ErrNoDatabase, store.ErrDiskFull}

func isNamed(err error) bool {
	return slices.ContainsFunc(named, func(n error) bool { return errors.Is(err, n) })
}

// Faults runs the contract of an engine under faults: a transaction is committed completely
// or not at all, Commit reports which or that it is unknown, readers see no part of it, and
// the next transaction works. open and reopen are as in [Run], for the engine alone.
func Faults(t *testing.T, open func(t *testing.T) (e kv.Engine, reopen func() kv.Engine), faults map[string]Fault) {
	for name, f := range faults {
		for _, began := range []bool{false, true} { // a remote engine has begun by then
			t.Run(fmt.Sprintf("%s/%t", name, began), func(t *testing.T) {
				e, reopen := open(t)
				if err := write(e, "1", nil); err != nil {
					t.Fatal(err)
				}
				old, made := "1 1: row/1", "2 2: row/1 row/2"
				err := write(e, "2", func(b kv.Transaction) error {
					if began {
						if err := b.Range("b", kv.Range{}, func(_, _ []byte) bool { return true }); err != nil {
							return err
						}
					}
					f.Do(t, e, b)
					return nil
				})
				if seen, err := state(e); err == nil && seen != old && seen != made {
					t.Errorf("a reader sees %q", seen)
				}
				want := []string{old, made}
				switch unknown := err != nil && !isNamed(err); {
				case f.Want == ErrUnknown && !unknown, f.Want != ErrUnknown && !errors.Is(err, f.Want):
					t.Errorf("it said %v, want %v", err, f.Want)
				case err == nil:
					want = want[1:]
				case !unknown:
					want = want[:1]
				default:
					e = reopen()
				}
				var seen string
				patiently(t, func() error { seen, err = state(e); return err })
				if !slices.Contains(want, seen) {
					t.Errorf("there is %q, want one of %q", seen, want)
				}
				patiently(t, func() error { return write(e, "3", nil) })
				e = reopen()
				if after, err := state(e); err != nil || after != "3 3:"+seen[strings.Index(seen, ":")+1:]+" row/3" {
					t.Errorf("after the next one there is %q, before it %q, %v", after, seen, err)
				}
			})
		}
	}
}

// patiently retries an operation that fails because of lost connections.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	err := do()
	for range 50 {
		if err == nil || !isNamed(err) {
			break
		}
		err = do()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write runs a transaction that puts several keys; last is called before its commit.
func write(e kv.Engine, value string, last func(kv.Transaction) error) error {
	b, err := e.Begin(context.Background(), true)
	if err != nil {
		return err
	}
	defer b.Rollback()
	if last == nil { // otherwise it exists
		err = b.Make("b")
	}
	err = errors.Join(err, b.Put("b", []byte("x"), []byte(value)), b.Put("b", []byte("row/"+value), nil), b.Put("b", []byte("y"), []byte(value)))
	if err == nil && last != nil {
		err = last(b)
	}
	if err != nil {
		return err
	}
	return b.Commit()
}

// state returns the whole content: the values, and then the rows.
func state(e kv.Engine) (string, error) {
	b, err := e.Begin(context.Background(), false)
	if err != nil {
		return "", err
	}
	defer b.Rollback()
	x, errX := b.Get("b", []byte("x"))
	rows := ""
	err = b.Range("b", kv.Range{Prefix: []byte("row/")}, func(k, _ []byte) bool { rows += " " + string(k); return true })
	y, errY := b.Get("b", []byte("y"))
	return fmt.Sprintf("%s %s:%s", x, y, rows), errors.Join(errX, err, errY)
}
