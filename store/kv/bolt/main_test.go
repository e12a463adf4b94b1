package bolt

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks a database in a child process, or else runs the tests.
func TestMain(m *testing.M) {
	CheckMain()
	goleak.VerifyTestMain(m)
}
