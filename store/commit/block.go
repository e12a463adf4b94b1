package commit

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
)

// A block is a run of 1,024 events. When its last event is written the same
// transaction notes which users, tools, servers, kinds, outcomes and surfaces
// occur in it, in the bucket event_blocks. A filter looks there first and
// passes over the blocks that cannot hold an answer: a million events are a
// thousand blocks.
//
// An index entry for each event would find no more and would cost each call
// several scattered writes; this costs one write in 1,024 events. What a block
// says is never relied on to be there: a block without is read. Verifying
// checks that it hides nothing.
const blockSize = 1024

// The columns of a block, each a set of values.
const (
	blockUsers = iota // pseudonyms
	blockTools
	blockServers
	blockKinds
	blockOutcomes
	blockSurfaces
	blockCols
)

// blockValues are what an event adds to the columns of its block.
func blockValues(p [][]byte) [blockCols][]byte {
	return [blockCols][]byte{p[evPseudonym], p[evTool], eventServer(p), p[evKind], p[evOutcome], p[evSurface]}
}

// eventServer is the server that an event is about, or empty.
func eventServer(p [][]byte) []byte {
	if server, _, _ := bytes.Cut(p[evTool], []byte(":")); len(p[evTool]) > 0 {
		return server
	}
	switch head, _, _ := bytes.Cut(p[evKind], []byte(".")); string(head) {
	case "server", "tools":
		return p[evSubject]
	}
	return nil
}

// writeBlocks notes the blocks that this transaction completed.
func (t *Tx) writeBlocks() error {
	for n := (t.DB.head.seq + 1) / blockSize; n < (t.head.seq+1)/blockSize; n++ {
		v, err := t.sumBlock(n)
		if err != nil {
			return fmt.Errorf("noting block %d of the audit trail: %w", n, err)
		}
		if err := t.Put("event_blocks", SeqKey(n), v); err != nil {
			return err
		}
	}
	return nil
}

// sumBlock reads the events of a block.
func (t *Tx) sumBlock(n uint64) ([]byte, error) {
	var (
		cols  [blockCols][][]byte
		seen  [blockCols]map[string]bool
		parts [][]byte
		err   error
	)
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	for _, v := range t.Scan("events", kv.Range{From: SeqKey(n * blockSize), Before: SeqKey((n + 1) * blockSize)}) {
		if parts, err = eventPartsTo(parts, v); err != nil {
			return nil, err
		}
		for i, v := range blockValues(parts) {
			if !seen[i][string(v)] {
				seen[i][string(v)] = true
				cols[i] = append(cols[i], v)
			}
		}
	}
	packed := make([][]byte, blockCols)
	for i := range cols {
		packed[i] = Pack(cols[i]...)
	}
	return Pack(packed...), nil
}

// loadBlock returns the columns of a block, packed, or nil if nothing is noted of
// it.
func (t *Tx) loadBlock(n uint64) ([][]byte, error) {
	v := t.Get("event_blocks", SeqKey(n))
	if v == nil {
		return nil, nil
	}
	packed, err := UnpackN(v, blockCols)
	if err != nil {
		return nil, fmt.Errorf("block %d of the audit trail: %w", n, err)
	}
	return packed[:blockCols], nil
}

// pruneBlocks deletes those of which no event is left.
func (t *Tx) pruneBlocks(base uint64, limit int) error {
	for _, k := range t.Keys("event_blocks", nil, limit) {
		if DecodeSeq(k) >= (base+1)/blockSize {
			break
		}
		if err := t.Delete("event_blocks", k); err != nil {
			return err
		}
	}
	return nil
}

// blockCheck verifies that blocks hide no event.
type blockCheck struct {
	n    uint64
	cols []map[string]bool // nil: nothing is noted of it
	read bool
}

// verify checks one event; they come in their order.
func (b *blockCheck) verify(t *Tx, seq uint64, p [][]byte) error {
	if n := seq / blockSize; !b.read || n != b.n {
		cols, err := t.loadBlock(n)
		*b = blockCheck{n: n, read: true}
		for i := 0; i < len(cols) && err == nil; i++ {
			var values [][]byte
			values, err = unpack(cols[i])
			set := make(map[string]bool, len(values))
			for _, v := range values {
				set[string(v)] = true
			}
			b.cols = append(b.cols, set)
		}
		if err != nil {
			return tampered(seq, "event %d: %v", seq, err)
		}
	}
	if b.cols == nil {
		return nil
	}
	for i, v := range blockValues(p) {
		if !b.cols[i][string(v)] {
			return tampered(seq, "what is noted of the events from %d on hides event %d", b.n*blockSize, seq)
		}
	}
	return nil
}

// eventMatch is what a query asks of an event, on the parts as they are stored.
type eventMatch struct {
	store.EventQuery
	who   []string // the user's pseudonyms, which find what was erased too
	asked [blockCols]bool
	parts [][]byte // of a column, used again
}

// value says whether one column's value is what is asked for.
func (m *eventMatch) value(col int, v []byte) bool {
	switch col {
	case blockUsers:
		return slices.Contains(m.who, string(v))
	case blockTools:
		return len(v) > 0 && store.MatchTool(m.Tool, string(v))
	case blockServers:
		return string(v) == m.Server
	case blockKinds:
		return string(v) == m.Kind || len(v) > len(m.Kind) && v[len(m.Kind)] == '.' && string(v[:len(m.Kind)]) == m.Kind
	case blockOutcomes:
		return string(v) == string(m.Outcome)
	}
	return string(v) == string(m.Surface)
}

func (m *eventMatch) event(p [][]byte) bool {
	for i, v := range blockValues(p) {
		if m.asked[i] && !m.value(i, v) {
			return false
		}
	}
	return true
}

// during reports whether an event of that time is asked for.
func (m *eventMatch) during(at time.Time) bool {
	return !(!m.Since.IsZero() && at.Before(m.Since)) && (m.Until.IsZero() || at.Before(m.Until))
}

// block says whether an event of the block may be asked for. The columns with the
// fewest values come first.
func (m *eventMatch) block(t *Tx, n uint64) (may bool, err error) {
	cols, err := t.loadBlock(n)
	for i := len(cols) - 1; i >= 0 && err == nil; i-- {
		if !m.asked[i] {
			continue
		}
		if m.parts, err = unpackTo(m.parts[:0], cols[i]); !slices.ContainsFunc(m.parts, func(v []byte) bool { return m.value(i, v) }) {
			return false, err
		}
	}
	return true, err
}
