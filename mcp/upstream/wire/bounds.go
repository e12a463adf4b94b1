package wire

import "time"

// Limits on the data that an upstream may send: it is treated as hostile.
const (
	MaxMessage = 8 << 20 // bytes of one body, event or line
	maxDepth   = 64      // nesting of a result
	maxNoise   = 1000    // lines on standard output that are not JSON

	ConnectTime   = 10 * time.Second       // to connect and initialize over HTTP
	stallTime     = 10 * time.Second       // for an incomplete answer on standard output to continue
	WriteTime     = 10 * time.Second       // to write one message into a pipe
	stderrSilence = 200 * time.Millisecond // without output on standard error after the exit of its process
	noticeTime    = 5 * time.Second        // for a best-effort notification
	stopTime      = 2 * time.Second        // between closing stdin, SIGTERM and SIGKILL
)
