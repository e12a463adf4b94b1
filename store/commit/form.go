package commit

import (
	"crypto/sha256"
	"fmt"

	"nize/store/compact"
	"nize/store/record"
)

// Records of calls, events and changes have two forms. The first is packed parts, as
// drawn in the package comment. The second, compact, is about half as long: names and
// JSON are shortened by package compact, and nothing is stored that follows from the
// rest. It begins with a zero byte, which the first form never does, so that a database
// holds both: a record stays in its form until it is written again.
//
// A nized that knows the first form only can't read the second, and refuses a database
// whose schema is CompactSchema. A new database has that schema. One that an earlier
// version made gets it when its records are rewritten ([DB.SetSchema]), so that an upgrade
// alone does not shut out the version before.

// CompactSchema is the first schema whose records are written in the compact form.
const CompactSchema = 2

// CompactForm begins a record in the compact form: a zero byte and the form's number.
const CompactForm = "\x00\x01"

// Compacts reports whether records are written in the compact form.
func (d *DB) Compacts() bool { return d.schema.Load() >= CompactSchema }

// SetSchema tells the database its schema, which it read or raised.
func (d *DB) SetSchema(version uint64) { d.schema.Store(version) }

// IsCompact reports whether a record is in the compact form. It is ErrDamaged if the
// record is in one that is not known.
func IsCompact(v []byte) (bool, error) {
	switch {
	case len(v) == 0 || v[0] != CompactForm[0]:
		return false, nil
	case len(v) < len(CompactForm) || v[1] != CompactForm[1]:
		return false, fmt.Errorf("%w: its form is unknown", ErrDamaged)
	}
	return true, nil
}

// An event in the compact form: CompactForm, flags, time (8), chain (32), and then
// either salt (16), or of an erased one pseudonym (16) and payload hash (32), and then as
// parts: kind, subject, outcome, surface, tool, and those of the payload. Pseudonym and
// hash of an event that was not erased follow from its payload.
const (
	eventErased byte = 1 << iota
)

const (
	saltSize      = 16
	pseudonymSize = 16
	payloadParts  = 6
)

// encodeEvent returns an event as it is stored. p are its parts.
func (d *DB) encodeEvent(p [][]byte) []byte {
	if b, ok := d.encodeCompact(p); ok {
		return b
	}
	return Pack(p...)
}

// RewriteEvent returns an event in the form in which events are written now; nil if it is
// in it, or can't be. Nothing of what the chain holds changes.
func (t *Tx) RewriteEvent(v []byte) ([]byte, error) {
	if short, err := IsCompact(v); short || err != nil {
		return nil, err
	}
	p, err := t.eventParts(v)
	if err != nil {
		return nil, err
	}
	b, _ := t.DB.encodeCompact(p)
	return b, nil
}

// encodeCompact reports false for an event that the compact form can't hold, such as one
// whose payload is not packed as this version does it.
func (d *DB) encodeCompact(p [][]byte) (b []byte, ok bool) {
	if !d.Compacts() || len(p) != evParts || len(p[evTime]) != 8 || len(p[evChain]) != chainSize || len(p[evHash]) != sha256.Size || len(p[evPseudonym]) != pseudonymSize {
		return nil, false
	}
	erased := len(p[evSalt])+len(p[evPayload]) == 0
	var who [][]byte
	if !erased {
		var err error
		if who, err = unpack(p[evPayload]); err != nil || len(who) != payloadParts || len(p[evSalt]) != saltSize || string(Pack(who...)) != string(p[evPayload]) {
			return nil, false
		}
		if hash := payloadHash(p[evSalt], p[evPayload]); string(hash[:]) != string(p[evHash]) || string(d.pseudonym(string(who[0]))) != string(p[evPseudonym]) {
			return nil, false
		}
	}
	b = append(make([]byte, 0, 256), CompactForm...)
	if erased {
		b = append(b, eventErased)
		b = append(append(b, p[evTime]...), p[evChain]...)
		b = append(append(b, p[evPseudonym]...), p[evHash]...)
	} else {
		b = append(b, 0)
		b = append(append(b, p[evTime]...), p[evChain]...)
		b = append(b, p[evSalt]...)
	}
	var short []byte
	for _, part := range p[evKind : evTool+1] {
		short = compact.AppendWords(short[:0], part, "")
		b = appendPart(b, short)
	}
	if erased {
		return b, true
	}
	for _, part := range who[:payloadParts-1] {
		short = compact.AppendWords(short[:0], part, "")
		b = appendPart(b, short)
	}
	if data := who[payloadParts-1]; len(data) > 0 {
		return append(b, compact.Encode(data, "")...), true
	}
	return b, true
}

// decodeCompact is the way back. The parts don't point into v.
func (d *DB) decodeCompact(to [][]byte, v []byte) ([][]byte, error) {
	head := len(CompactForm) + 1
	if len(v) < head+8+chainSize+saltSize || v[head-1]&^eventErased != 0 {
		return nil, ErrDamaged
	}
	p := to[:0]
	for len(p) < evParts {
		p = append(p, nil)
	}
	erased, b := v[head-1]&eventErased != 0, append(make([]byte, 0, 4*len(v)), v[head:]...)
	take := func(n int) []byte {
		part := b[:n:n]
		b = b[n:]
		return part
	}
	p[evTime], p[evChain] = take(8), take(chainSize)
	if erased {
		if len(b) < pseudonymSize+sha256.Size {
			return nil, ErrDamaged
		}
		p[evPseudonym], p[evHash] = take(pseudonymSize), take(sha256.Size)
	} else {
		p[evSalt] = take(saltSize)
	}
	part := func(b []byte) (text, rest []byte, err error) {
		short, rest, err := record.CutPart(b)
		if err != nil {
			return nil, nil, err
		}
		text, err = compact.AppendText(nil, short, "")
		return text, rest, err
	}
	var err error
	for i := evKind; i <= evTool && err == nil; i++ {
		p[i], b, err = part(b)
	}
	if erased || err != nil {
		return p, damaged(err)
	}
	var who [payloadParts][]byte
	for i := 0; i < payloadParts-1 && err == nil; i++ {
		who[i], b, err = part(b)
	}
	if err == nil && len(b) > 0 {
		who[payloadParts-1], err = compact.Decode(b, "")
	}
	if err != nil {
		return nil, damaged(err)
	}
	p[evPayload] = Pack(who[:]...)
	hash := payloadHash(p[evSalt], p[evPayload])
	p[evHash], p[evPseudonym] = hash[:], d.pseudonym(string(who[0]))
	return p, nil
}

// damaged marks an error of a record that can't be read.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func payloadHash(salt, payload []byte) [sha256.Size]byte {
	return sha256.Sum256(append(append(make([]byte, 0, len(salt)+len(payload)), salt...), payload...))
}
