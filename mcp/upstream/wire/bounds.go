package wire

import "time"

// Bounds on what an upstream may send: it is hostile until shown otherwise.
const (
	MaxMessage = 8 << 20 // bytes of one body, event or line
	maxDepth   = 64      // of a result
	maxNoise   = 1000    // lines on standard output that are no JSON

	ConnectTime   = 10 * time.Second       // to connect and initialize over HTTP
	stallTime     = 10 * time.Second       // for an answer that has begun on standard output to go on
	WriteTime     = 10 * time.Second       // for one message into a pipe
	stderrSilence = 200 * time.Millisecond // without any, standard error is given up after the end of its process
	noticeTime    = 5 * time.Second        // for a best-effort notification
	stopTime      = 2 * time.Second        // between closing stdin, SIGTERM and SIGKILL
)
