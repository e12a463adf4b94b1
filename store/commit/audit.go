package commit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"nize/store"
)

// The audit trail is a chain:
//
//	chain(n) = HMAC(audit key, chain(n-1) | seq | time | kind | subject | outcome | surface | tool | pseudonym | payload hash)
//	pseudonym    = HMAC(audit key, user id), 16 bytes
//	payload hash = SHA-256(salt | payload), payload = user id, user name, identity, token, address, data
//
// The parts of each are packed, so that bytes can't move from one part to the next. Payload
// and salt can be erased and the chain stays valid, since it contains only the payload's
// hash; without the salt the hash reveals nothing.
//
// meta/audit_head names the newest event and the number of events, and meta/audit_base the
// newest pruned event. Both carry an HMAC, so that neither end of the chain can be cut off
// without the key.

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
	// The call stores its arguments completely; an event stores only the beginning.
	MaxArgs   = 2 << 10
	MaxOutput = 1 << 10
)

// tampered returns an error for an audit trail that is invalid from an event on.
func tampered(seq uint64, format string, args ...any) error {
	return &store.TamperedError{Seq: seq, Why: fmt.Sprintf(format, args...)}
}

// NewTrail returns the key and the head of a new trail.
func NewTrail() (k, head []byte) {
	k = make([]byte, sha256.Size)
	rand.Read(k) // never fails since Go 1.24
	return k, auditHead{}.encode(k)
}

// auditHead is one end of the chain: an event's number and chain, and the number of events
// up to it, including pruned ones.
type auditHead struct {
	seq   uint64
	chain [chainSize]byte
}

func (h auditHead) encode(k []byte) []byte {
	b := append(SeqKey(h.seq), h.chain[:]...)
	return append(b, sum(k, []byte("audit head"), b)...)
}

func decodeHead(k, b []byte) (auditHead, error) {
	var h auditHead
	const n = 8 + chainSize
	if len(b) != n+sha256.Size || !hmac.Equal(b[n:], sum(k, []byte("audit head"), b[:n])) {
		return h, tampered(0, "its head was changed")
	}
	h.seq = DecodeSeq(b[:8])
	copy(h.chain[:], b[8:n])
	return h, nil
}

func loadHead(t *Tx, k []byte) (auditHead, error) {
	return decodeHead(k, t.Get("meta", []byte("audit_head")))
}

// loadBase returns the zero head if nothing was pruned yet.
func loadBase(t *Tx, k []byte) (auditHead, error) {
	b := t.Get("meta", []byte("audit_base"))
	if b == nil {
		return auditHead{}, nil
	}
	return decodeHead(k, b)
}

// sum returns the keyed hash of the parts.
func sum(k []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(Pack(parts...))
	return h.Sum(nil)
}

func (d *DB) pseudonym(user string) []byte { return d.pseudonyms.find(d, user) }

// pseudonyms keeps those of the users that occur most, since each event that is read needs
// one. Its values are not changed.
type pseudonyms struct {
	mu sync.Mutex // guards what follows
	of map[string][]byte
}

// mostPseudonyms bounds how many are kept.
const mostPseudonyms = 4096

func (ps *pseudonyms) find(d *DB, user string) []byte {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.of[user]; ok {
		return p
	}
	p := sum(d.auditKey, []byte("user"), []byte(user))[:pseudonymSize:pseudonymSize]
	if ps.of == nil || len(ps.of) >= mostPseudonyms {
		ps.of = map[string][]byte{}
	}
	ps.of[user] = p
	return p
}

// Note is the content of an event before it has a number.
type Note struct {
	By      store.Caller
	Kind    string
	Subject string
	Tool    string
	Outcome store.State
	Data    any // encoded as redacted JSON and cut, unless it is a json.RawMessage, which already is
	// At is when it happened, if that was before the transaction: records are queued to be
	// written together, and records of the journal until the next start.
	At time.Time
}

// eventTime returns the time of the next event: that of n, or the transaction's. Times
// never decrease along the chain, because queries by time use binary search.
func (t *Tx) eventTime(n Note) time.Time {
	if n.At.IsZero() || n.At.After(t.Now) {
		t.lastEvent = t.Now
		return t.Now
	}
	if t.lastEvent.IsZero() {
		if p, err := t.eventParts(t.Get("events", SeqKey(t.head.seq))); err == nil {
			t.lastEvent = TimeOf(p[evTime])
		} else {
			t.lastEvent = t.Now // it was pruned or is damaged: any time up to now is allowed
		}
	}
	if t.head.seq == 0 || n.At.After(t.lastEvent) {
		t.lastEvent = n.At
	}
	return t.lastEvent
}

// Event appends an event to the audit trail.
func (t *Tx) Event(n Note) error {
	if n.By.User == "" {
		return fmt.Errorf("%w caller: nobody is named for %s", store.ErrInvalid, n.Kind)
	}
	if n.By.Name == "" && n.By.User != store.System.User { // acts in a person's name without their session
		n.By.Name = t.userName(n.By.User)
	}
	data, ok := n.Data.(json.RawMessage)
	if !ok && n.Data != nil {
		b, err := json.Marshal(n.Data)
		if err != nil {
			return err
		}
		data = Redact(b, MaxArgs)
	}
	salt := make([]byte, 16)
	rand.Read(salt) // never fails since Go 1.24
	payload := Pack([]byte(n.By.User), []byte(n.By.Name), []byte(n.By.Identity), []byte(n.By.Token), []byte(n.By.Address), data)
	hash := payloadHash(salt, payload)
	p := make([][]byte, evParts)
	p[evTime], p[evKind], p[evSubject] = TimeKey(t.eventTime(n)), []byte(n.Kind), []byte(n.Subject)
	p[evOutcome], p[evSurface], p[evTool] = []byte(n.Outcome), []byte(n.By.Surface), []byte(n.Tool)
	p[evPseudonym], p[evHash], p[evSalt], p[evPayload] = t.DB.pseudonym(n.By.User), hash[:], salt, payload

	seq := t.head.seq + 1
	p[evChain] = link(t.DB.auditKey, t.head.chain, seq, p)
	if err := t.IsNew("events", SeqKey(seq)); err != nil { // never replace an event
		return tampered(seq, "event %d can't be appended: %v", seq, err)
	}
	if err := t.Put("events", SeqKey(seq), t.DB.encodeEvent(p)); err != nil {
		return err
	}
	t.head.seq = seq
	copy(t.head.chain[:], p[evChain])
	return nil
}

// userName returns a user's name, or "" if there is no such user.
func (t *Tx) userName(id string) string {
	u, err := GetJSON[store.User](t, "users", []byte(id))
	if err != nil {
		return ""
	}
	return u.Name
}

// link returns the chain value of an event, computed from its parts.
func link(k []byte, before [chainSize]byte, seq uint64, p [][]byte) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(appendLink(nil, before, seq, p))
	return h.Sum(nil)
}

// appendLink appends the input of an event's chain value, before hashing.
func appendLink(b []byte, before [chainSize]byte, seq uint64, p [][]byte) []byte {
	b = appendPart(b, before[:])
	b = binary.BigEndian.AppendUint64(append(b, 8), seq)
	for _, part := range p[evTime:evChain] {
		b = appendPart(b, part)
	}
	return b
}

// eventParts returns the parts of a stored event, in either form.
func (t *Tx) eventParts(v []byte) ([][]byte, error) { return t.eventPartsTo(nil, v) }

// eventPartsTo is eventParts into a slice that is reused.
func (t *Tx) eventPartsTo(to [][]byte, v []byte) ([][]byte, error) {
	if short, err := IsCompact(v); err != nil {
		return nil, err
	} else if short {
		return t.DB.decodeCompact(to, v)
	}
	p, err := unpackTo(to[:0], v)
	if err == nil && (len(p) < evParts || len(p[evTime]) != 8 || len(p[evChain]) != chainSize) {
		err = ErrDamaged
	}
	return p, err
}

// PruneEvents deletes up to limit events older than before and appends a checkpoint, all in
// this transaction.
func (t *Tx) PruneEvents(before time.Time, limit int) (int, error) {
	base, err := loadBase(t, t.DB.auditKey)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, k := range t.Keys("events", nil, limit) {
		p, err := t.eventParts(t.Get("events", k))
		if err != nil {
			return n, err
		}
		if !TimeOf(p[evTime]).Before(before) {
			break
		}
		base.seq = DecodeSeq(k)
		copy(base.chain[:], p[evChain])
		if err := t.Delete("events", k); err != nil {
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
	for _, k := range t.Keys("checkpoints", nil, limit) {
		if DecodeSeq(k) > base.seq {
			break
		}
		if err := t.Delete("checkpoints", k); err != nil {
			return n, err
		}
	}
	return n, t.Put("meta", []byte("audit_base"), base.encode(t.DB.auditKey))
}

// Redact returns a JSON document in the redacted form of the audit trail.
func Redact(raw json.RawMessage, limit int) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return store.Redact(raw, limit)
}
