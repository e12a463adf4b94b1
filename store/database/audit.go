package database

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"nize/store"
)

// The audit trail is a chain:
//
//	chain(n) = HMAC(audit key, chain(n-1) | seq | time | kind | subject | outcome | surface | tool | pseudonym | payload hash)
//	pseudonym    = HMAC(audit key, user id), 16 bytes
//	payload hash = SHA-256(salt | payload), payload = user id, user name, identity, token, address, data
//
// The parts of each are packed, so that none can flow into its neighbour.
// Payload and salt can be erased and the chain stays valid, since it holds the
// payload's hash only; without the salt the hash tells nothing.
//
// meta/audit_head names the newest event and how many there are, and
// meta/audit_base the newest one that was pruned. Both carry an HMAC, so that
// neither end of the chain can be cut off by who has the file but not the key.

// The parts of a stored event.
const (
	evTime = iota
	evKind
	evSubject
	evOutcome
	evSurface
	evTool
	evPseudonym
	evHash
	evChain
	evSalt
	evPayload
	evParts
)

const (
	chainSize = sha256.Size
	// The call keeps its arguments whole; an event has the beginning of them.
	maxArgs   = 2 << 10
	maxOutput = 1 << 10
)

// tampered says that the audit trail does not hold from an event on.
func tampered(seq uint64, format string, args ...any) error {
	return &store.TamperedError{Seq: seq, Why: fmt.Sprintf(format, args...)}
}

func newAuditKey() []byte {
	k := make([]byte, sha256.Size)
	rand.Read(k) // never fails since Go 1.24
	return k
}

// auditHead is one end of the chain: an event's number and chain, and how many
// events were there up to it since the first of all.
type auditHead struct {
	seq   uint64
	chain [chainSize]byte
}

func (h auditHead) encode(k []byte) []byte {
	b := append(seqKey(h.seq), h.chain[:]...)
	return append(b, sum(k, []byte("audit head"), b)...)
}

func decodeHead(k, b []byte) (auditHead, error) {
	var h auditHead
	const n = 8 + chainSize
	if len(b) != n+sha256.Size || !hmac.Equal(b[n:], sum(k, []byte("audit head"), b[:n])) {
		return h, tampered(0, "its head was changed")
	}
	h.seq = decodeSeq(b[:8])
	copy(h.chain[:], b[8:n])
	return h, nil
}

func loadHead(t *tx, k []byte) (auditHead, error) {
	return decodeHead(k, t.get("meta", []byte("audit_head")))
}

// loadBase returns the zero head where nothing was pruned yet.
func loadBase(t *tx, k []byte) (auditHead, error) {
	b := t.get("meta", []byte("audit_base"))
	if b == nil {
		return auditHead{}, nil
	}
	return decodeHead(k, b)
}

// sum is the keyed hash of the parts.
func sum(k []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(pack(parts...))
	return h.Sum(nil)
}

func (d *DB) pseudonym(user string) []byte { return sum(d.auditKey, []byte("user"), []byte(user))[:16] }

// auditNote is what an event says, before it has a number.
type auditNote struct {
	by      store.Caller
	kind    string
	subject string
	tool    string
	outcome store.State
	data    any // JSON of it is redacted and cut, unless it is a json.RawMessage, which was
}

// event appends to the audit trail.
func (t *tx) event(n auditNote) error {
	if n.by.User == "" {
		return fmt.Errorf("%w caller: nobody is named for %s", store.ErrInvalid, n.kind)
	}
	data, ok := n.data.(json.RawMessage)
	if !ok && n.data != nil {
		b, err := json.Marshal(n.data)
		if err != nil {
			return err
		}
		data = cut(b, maxArgs)
	}
	salt := make([]byte, 16)
	rand.Read(salt) // never fails since Go 1.24
	payload := pack([]byte(n.by.User), []byte(n.by.Name), []byte(n.by.Identity), []byte(n.by.Token), []byte(n.by.Address), data)
	hash := sha256.Sum256(append(append(make([]byte, 0, len(salt)+len(payload)), salt...), payload...))
	p := make([][]byte, evParts)
	p[evTime], p[evKind], p[evSubject] = timeKey(t.now), []byte(n.kind), []byte(n.subject)
	p[evOutcome], p[evSurface], p[evTool] = []byte(n.outcome), []byte(n.by.Surface), []byte(n.tool)
	p[evPseudonym], p[evHash], p[evSalt], p[evPayload] = t.db.pseudonym(n.by.User), hash[:], salt, payload

	seq := t.head.seq + 1
	p[evChain] = link(t.db.auditKey, t.head.chain, seq, p)
	if err := t.put("events", seqKey(seq), pack(p...)); err != nil {
		return err
	}
	t.head.seq = seq
	copy(t.head.chain[:], p[evChain])
	return nil
}

// AddEvent implements [store.Ledger]. Data is redacted and cut like that of
// any event; what could not be written shows in the next Flush.
func (d *DB) AddEvent(by store.Caller, e store.Event) {
	data := cloneBytes(e.Data)
	ok := d.writeLater(lazyOp{size: 512 + len(data)}, func(t *tx) error {
		if e.Kind == "" {
			return fmt.Errorf("adding an event: %w: it has no kind", store.ErrInvalid)
		}
		return t.event(auditNote{by: by, kind: e.Kind, subject: e.Subject, tool: e.Tool, outcome: e.Outcome, data: cut(data, maxArgs)})
	})
	if !ok {
		d.logLost("adding event " + e.Kind)
	}
}

// link computes the chain value of an event from its parts.
func link(k []byte, before [chainSize]byte, seq uint64, p [][]byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(appendLink(nil, before, seq, p))
	return h.Sum(nil)
}

// appendLink appends what the chain value of an event is the keyed hash of.
func appendLink(b []byte, before [chainSize]byte, seq uint64, p [][]byte) []byte {
	b = appendPart(b, before[:])
	b = binary.BigEndian.AppendUint64(append(b, 8), seq)
	for _, part := range p[evTime:evChain] {
		b = appendPart(b, part)
	}
	return b
}

// decodeEvent makes a record of what is stored; the strings are copies.
func (t *tx) decodeEvent(k, v []byte, known *names) (store.Event, error) {
	p, err := eventParts(v)
	if err != nil {
		return store.Event{}, fmt.Errorf("event %d: %w", decodeSeq(k), err)
	}
	e := store.Event{
		Seq: decodeSeq(k), At: timeOf(p[evTime]), Kind: string(p[evKind]), Subject: string(p[evSubject]),
		Surface: store.Surface(p[evSurface]), Tool: string(p[evTool]), Outcome: store.State(p[evOutcome]),
		Chain: hex.EncodeToString(p[evChain]),
	}
	if len(p[evPayload]) == 0 {
		e.Erased = true
		return e, known.fill(t, &e, p[evPseudonym])
	}
	who, err := unpackN(p[evPayload], 6)
	if err != nil {
		return e, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	e.User, e.UserName, e.Identity, e.Token, e.Address = string(who[0]), string(who[1]), string(who[2]), string(who[3]), string(who[4])
	e.Data = cloneBytes(who[5])
	return e, nil
}

func eventParts(v []byte) ([][]byte, error) { return eventPartsTo(nil, v) }

// eventPartsTo is eventParts into a slice that is used again.
func eventPartsTo(to [][]byte, v []byte) ([][]byte, error) {
	p, err := unpackTo(to[:0], v)
	if err == nil && (len(p) < evParts || len(p[evTime]) != 8 || len(p[evChain]) != chainSize) {
		err = errRecord
	}
	return p, err
}

// pruneEvents deletes up to limit events older than before and leaves a
// checkpoint, all in this transaction.
func (t *tx) pruneEvents(before time.Time, limit int) (int, error) {
	base, err := loadBase(t, t.db.auditKey)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, k := range t.keys("events", nil, limit) {
		p, err := eventParts(t.get("events", k))
		if err != nil {
			return n, err
		}
		if !timeOf(p[evTime]).Before(before) {
			break
		}
		base.seq = decodeSeq(k)
		copy(base.chain[:], p[evChain])
		if err := t.del("events", k); err != nil {
			return n, err
		}
		n++
	}
	if n == 0 {
		return 0, nil
	}
	if err := t.pruneBlocks(base.seq, limit); err != nil {
		return n, err
	}
	for _, k := range t.keys("checkpoints", nil, limit) {
		if decodeSeq(k) > base.seq {
			break
		}
		if err := t.del("checkpoints", k); err != nil {
			return n, err
		}
	}
	return n, t.put("meta", []byte("audit_base"), base.encode(t.db.auditKey))
}
