package botstest

import (
	"testing"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/store"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	Script{
		Open: func(t *testing.T) store.DB { return databasetest.Open(t) },
		New: func(*testing.T) (bots.Platform, User, store.Address) {
			m := NewMemory(store.OnTerminal)
			return m, m, store.Address{Surface: store.OnTerminal, Channel: "here", Thread: "THREAD"}
		},
	}.Run(t)
}
