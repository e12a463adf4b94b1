package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"nize/store"
)

// ringSize is how much of a server's standard error is kept, in bytes.
const ringSize = 64 << 10

// StderrLog keeps the end of a server's standard error, across its restarts, without the
// secrets that the server was given. Lines are also logged, at a limited rate, and output
// that arrives faster than that waits in the pipe.
type StderrLog struct {
	Log    *slog.Logger
	limit  *rate.Limiter
	budget *Budget // for the bytes read

	mu      sync.Mutex
	buf     []byte
	total   uint64              // bytes ever written
	more    chan struct{}       // closed and replaced at each write
	mask    func(string) string // nil masks nothing
	dropped int                 // lines that were not logged
}

func NewStderrLog(log *slog.Logger) *StderrLog {
	return &StderrLog{Log: log, limit: rate.NewLimiter(1, 100), budget: newBudget("to standard error", stderrRate), more: make(chan struct{})}
}

// Mask sets the function that masks secrets in each line.
func (r *StderrLog) Mask(mask func(string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mask = mask
}

func (r *StderrLog) hide(s string) string {
	r.mu.Lock()
	mask := r.mask
	r.mu.Unlock()
	if mask == nil {
		return s
	}
	return mask(s)
}

// heldBack is how much of a long line is held back until more of it arrives.
const heldBack = 1 << 10

// readFrom copies lines until the stream ends, done is closed, or the budget is exceeded,
// and returns an error in the last case.
func (r *StderrLog) readFrom(src io.Reader, budget *Budget, done <-chan struct{}) error {
	br := bufio.NewReaderSize(src, 4<<10)
	held := ""
	for {
		line, err := br.ReadSlice('\n')
		text := held + string(line)
		held = ""
		if errors.Is(err, bufio.ErrBufferFull) { // a secret may continue in the next part
			text = r.hide(text)
			head := store.Head(text, len(text)-heldBack)
			text, held = head, text[len(head):]
		}
		if text != "" {
			r.addLine(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil
		}
		if err := budget.Spend(len(line)+lineCost, done); err != nil {
			return err
		}
	}
}

// Reason returns a message about a server that writes too much, or "" if it doesn't.
func (r *StderrLog) Reason() string { return r.budget.Reason() }

// addLine stores one line, or a part of a long one.
func (r *StderrLog) addLine(s string) {
	s = r.hide(s)
	r.mu.Lock()
	s = store.RedactText(strings.ToValidUTF8(s, "\uFFFD"))
	r.buf = append(r.buf, s...)
	if len(r.buf) > 2*ringSize { // move rarely, not for each line
		r.buf = append(r.buf[:0], r.buf[len(r.buf)-ringSize:]...)
	}
	r.total += uint64(len(s))
	close(r.more)
	r.more = make(chan struct{})
	dropped, quiet := 0, !r.limit.Allow()
	if quiet {
		r.dropped++
	} else {
		dropped, r.dropped = r.dropped, 0
	}
	r.mu.Unlock()
	if quiet {
		return
	}
	if dropped > 0 {
		r.Log.Debug("server wrote more than is logged", "lines", dropped)
	}
	r.Log.Debug("server wrote", "line", store.Clip(strings.TrimRight(s, "\r\n"), 500))
}

// written returns the total number of bytes received.
func (r *StderrLog) written() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Bytes returns the stored output.
func (r *StderrLog) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]byte(nil), r.keptLocked()...)
}

func (r *StderrLog) keptLocked() []byte { return r.buf[max(0, len(r.buf)-ringSize):] }

// lastLines returns the last n lines joined into one, for an error.
func (r *StderrLog) lastLines(n int) string {
	lines := strings.Split(strings.TrimSpace(string(r.Bytes())), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		lines[i] = store.Clip(strings.TrimSpace(l), 200)
	}
	return strings.Join(lines, " | ")
}

// Follow yields the stored output and then new output until ctx ends. A slow reader misses
// output that has left the ring.
func (r *StderrLog) Follow(ctx context.Context) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var seen uint64
		for {
			r.mu.Lock()
			kept := r.keptLocked()
			fresh := min(r.total-seen, uint64(len(kept)))
			chunk := append([]byte(nil), kept[uint64(len(kept))-fresh:]...)
			seen = r.total
			more := r.more
			r.mu.Unlock()
			if len(chunk) > 0 && !yield(chunk) {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}
