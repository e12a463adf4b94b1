package commit

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"nize/store"
	"nize/store/kv"
)

// A block is a run of 1,024 events. The transaction that writes its last event also records
// which users, tools, servers, kinds, outcomes and surfaces occur in it, in the bucket
// event_blocks. A query reads these first and skips blocks that cannot contain a result: a
// million events are a thousand blocks.
//
// An index entry for each event would find no more and would cost each call several
// scattered writes; this costs one write in 1,024 events. Correct results never depend on a
// block's record: if it is missing, the events are read. Verification checks that no record
// hides an event.
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

// blockValues returns the values that an event adds to the columns of its block.
func blockValues(p [][]byte) [blockCols][]byte {
	return [blockCols][]byte{p[evPseudonym], p[evTool], eventServer(p), p[evKind], p[evOutcome], p[evSurface]}
}

// eventServer returns the server that an event is about, or nil.
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

// writeBlocks records the blocks that this transaction completed.
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
		if parts, err = t.eventPartsTo(parts, v); err != nil {
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

// loadBlock returns the packed columns of a block, or nil if it has no record.
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

// pruneBlocks deletes the records of blocks whose events were all pruned.
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

// blockCheck verifies that no block record hides an event.
type blockCheck struct {
	n    uint64
	cols []map[string]bool // nil: the block has no record
	read bool
}

// verify checks one event; it is called in their order.
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

// eventMatch is a query's conditions, compared with the stored parts of an event.
type eventMatch struct {
	store.EventQuery
	who   []string // the user's pseudonyms, which also find erased events
	asked [blockCols]bool
	parts [][]byte // of a column, reused
}

// value reports whether one column's value matches the query.
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

// during reports whether the query includes that time.
func (m *eventMatch) during(at time.Time) bool {
	return !(!m.Since.IsZero() && at.Before(m.Since)) && (m.Until.IsZero() || at.Before(m.Until))
}

// block reports whether the block may contain a result. It compares the columns with the
// fewest values first.
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
