package commit

import (
	"nize/store"
	"nize/store/kv"
	"nize/store/kv/bolt"
)

// What the tests beside this file look at.
const (
	EvTime, EvKind, EvSubject, EvOutcome, EvSurface = evTime, evKind, evSubject, evOutcome, evSurface
	EvTool, EvPseudonym, EvPayload, EvSalt, EvChain = evTool, evPseudonym, evPayload, evSalt, evChain
	EventPage, BlockSize, FeedRecent, FeedPage      = eventPage, blockSize, feedRecent, feedPage
)

func EventParts(t *Tx, v []byte) ([][]byte, error) { return t.eventParts(v) }

type AllOf = allOf

func EncodedHead(key []byte, seq uint64, chain [chainSize]byte) []byte {
	return auditHead{seq: seq, chain: chain}.encode(key)
}

func (d *DB) AuditKey() []byte  { return d.auditKey }
func (d *DB) Engine() kv.Engine { return d.engine }
func (d *DB) Path() string      { return d.path }

func (d *DB) File() *bolt.File { return d.file }

func (d *DB) Queued() (waiting, lazy int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting), len(d.lazy)
}

func (d *DB) EndJournal(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.early.endLocked(err)
}

func (d *DB) Failed(err error) { _ = d.failed(err) }
func (d *DB) Forget()          { d.cache.clear() }

func (d *DB) Find(key any) (any, bool)                        { return d.cache.get(key) }
func (d *DB) FeedPage(after store.Seq) ([]store.Change, bool) { return d.feed.page(after) }

var Changes = (*DB).changes
