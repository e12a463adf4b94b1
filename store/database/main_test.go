package database

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"nize/store/kv/bolt"
)

// TestMain runs the role that a parent test asked for in a child process (see
// crash_test.go), or else the tests.
func TestMain(m *testing.M) {
	bolt.CheckMain()
	if role := os.Getenv("NIZE_TEST_ROLE"); role != "" {
		os.Exit(child(role, os.Getenv("NIZE_TEST_DIR")))
	}
	goleak.VerifyTestMain(m)
}
