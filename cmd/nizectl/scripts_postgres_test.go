package main

import (
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/store"
	"nize/store/kv/postgres/postgrestest"
)

type wireKey struct{}

func scriptPostgres(ts *testscript.TestScript, _ bool, args []string) {
	url, drop, err := postgrestest.Make()
	ts.Check(err)
	ts.Defer(func() { ts.Check(drop()) })
	ts.Setenv(args[0], url.Reveal())
}

// scriptWire lays a wire to the database whose address is in VAR, which has the
// address of its near end then; or slows, cuts or mends that of this script.
func scriptWire(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wire lay VAR | slow DURATION | cut yes|no")
	}
	laid := ts.Value(wireKey{}).(*[]*postgrestest.Wire)
	if args[0] == "lay" {
		w, url, err := postgrestest.NewWire(store.NewSecret(ts.Getenv(args[1])))
		ts.Check(err)
		ts.Defer(w.Close)
		*laid = append(*laid, w)
		ts.Setenv(args[1], url.Reveal())
		return
	}
	for _, w := range *laid {
		switch args[0] {
		case "slow":
			by, err := time.ParseDuration(args[1])
			ts.Check(err)
			w.Slow(by)
		case "cut":
			w.Cut(args[1] == "yes")
		}
	}
}
