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

// ringSize is how much of a server's standard error is kept.
const ringSize = 64 << 10

// StderrLog keeps the last of what a server wrote to standard error, across its
// restarts, without the secrets that it was given. Lines go into the log too,
// at a bounded rate, and what comes faster than it can be dealt with waits in
// the pipe.
type StderrLog struct {
	Log    *slog.Logger
	limit  *rate.Limiter
	budget *Budget // of what is read

	mu      sync.Mutex
	buf     []byte
	total   uint64              // bytes ever written
	more    chan struct{}       // closed and replaced at each write
	mask    func(string) string // nil hides nothing
	dropped int                 // lines that the log did not get
}

func NewStderrLog(log *slog.Logger) *StderrLog {
	return &StderrLog{Log: log, limit: rate.NewLimiter(1, 100), budget: newBudget("to standard error", stderrRate), more: make(chan struct{})}
}

// Mask has all that comes go through a function that takes secrets out of a line.
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

// heldBack is how much of a long line waits for what follows.
const heldBack = 1 << 10

// readFrom copies lines until the stream ends, or done is closed, or they are
// too many: the error is that.
func (r *StderrLog) readFrom(src io.Reader, budget *Budget, done <-chan struct{}) error {
	br := bufio.NewReaderSize(src, 4<<10)
	held := ""
	for {
		line, err := br.ReadSlice('\n')
		text := held + string(line)
		held = ""
		if errors.Is(err, bufio.ErrBufferFull) { // a secret may go on in the next part
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

// Reason says in words what is wrong with a server that writes too much; "" if
// it does not.
func (r *StderrLog) Reason() string { return r.budget.Reason() }

// addLine stores one line, or the part of a long one.
func (r *StderrLog) addLine(s string) {
	s = r.hide(s)
	r.mu.Lock()
	s = store.RedactText(strings.ToValidUTF8(s, "\uFFFD"))
	r.buf = append(r.buf, s...)
	if len(r.buf) > 2*ringSize { // moved seldom, not for each line
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

// written is how many bytes ever came.
func (r *StderrLog) written() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// Bytes is what is kept.
func (r *StderrLog) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]byte(nil), r.keptLocked()...)
}

func (r *StderrLog) keptLocked() []byte { return r.buf[max(0, len(r.buf)-ringSize):] }

// lastLines is the last n lines in one, for an error.
func (r *StderrLog) lastLines(n int) string {
	lines := strings.Split(strings.TrimSpace(string(r.Bytes())), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		lines[i] = store.Clip(strings.TrimSpace(l), 200)
	}
	return strings.Join(lines, " | ")
}

// Follow yields what is kept and then what comes, until ctx ends. A reader
// that is too slow misses what has left the ring.
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
