package commit

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"

	"nize/store"
	"nize/store/kv"
)

// verifier recomputes the chain from one event to the next.
type verifier struct {
	at    auditHead
	mac   hash.Hash
	buf   []byte
	parts [][]byte
	block blockCheck
}

// VerifyEvents implements [store.Ledger]. It starts at the checkpoint of the last pruning
// and ends at the event that was the newest when it began.
func (d *Trail) VerifyEvents(ctx context.Context) (int, error) { return d.VerifyFrom(ctx, 0, nil) }

// VerifyFrom implements [store.Trail].
func (d *Trail) VerifyFrom(ctx context.Context, after uint64, progress func(done, all int)) (int, error) {
	v := verifier{mac: hmac.New(sha256.New, d.db.auditKey)}
	var head auditHead
	err := d.db.Read(ctx, "verifying the audit trail", func(t *Tx) (err error) {
		v.at, head, err = t.verifyEnds(after)
		return err
	})
	if err != nil {
		return 0, err
	}
	held, all := 0, int(head.seq-v.at.seq)
	for v.at.seq < head.seq {
		if progress != nil {
			progress(held, all)
		}
		err = d.db.Read(ctx, "verifying the audit trail", func(t *Tx) error {
			base, err := loadBase(t, d.db.auditKey)
			if err != nil {
				return err
			}
			if base.seq > v.at.seq { // pruned meanwhile
				v.at = base
			}
			page := min(eventPage, head.seq-min(v.at.seq, head.seq))
			last := v.at.seq + page
			for k, b := range t.Scan("events", kv.Range{From: SeqKey(v.at.seq + 1), Before: SeqKey(last + 1)}) {
				if err := v.next(t, DecodeSeq(k), b); err != nil {
					return err
				}
				held++
			}
			if v.at.seq < last {
				return missing(v.at.seq + 1)
			}
			return nil
		})
		if err != nil {
			return held, err
		}
	}
	if v.at.seq == head.seq && v.at.chain != head.chain {
		return held, fmt.Errorf("verifying the audit trail: %w", tampered(head.seq, "event %d is not the one in its head", head.seq))
	}
	return held, nil
}

// verifyEnds returns the range in which the chain is verified.
func (t *Tx) verifyEnds(after uint64) (from, head auditHead, err error) {
	if head, err = loadHead(t, t.DB.auditKey); err != nil {
		return from, head, err
	}
	if k := t.Last("events", nil); k != nil && DecodeSeq(k) != head.seq {
		return from, head, tampered(min(DecodeSeq(k), head.seq)+1, "the newest event is %d, its head says %d", DecodeSeq(k), head.seq)
	}
	if from, err = loadBase(t, t.DB.auditKey); err != nil {
		return from, head, err
	}
	if err := t.checkBeside(from, head); err != nil || after == 0 {
		return from, head, err
	}
	from, err = loadCheckpoint(t, after)
	return from, head, err
}

func missing(seq uint64) error { return tampered(seq, "event %d is missing", seq) }

// next verifies b as the event after v's current one and moves to it.
func (v *verifier) next(t *Tx, seq uint64, b []byte) error {
	if seq != v.at.seq+1 {
		return missing(v.at.seq + 1)
	}
	p, err := t.eventPartsTo(v.parts, b)
	if err != nil {
		return tampered(seq, "event %d: %v", seq, err)
	}
	v.parts = p
	v.mac.Reset()
	v.buf = appendLink(v.buf[:0], v.at.chain, seq, p)
	v.mac.Write(v.buf)
	var chain [chainSize]byte
	v.mac.Sum(chain[:0])
	if !hmac.Equal(p[evChain], chain[:]) {
		return tampered(seq, "event %d was changed", seq)
	}
	if len(p[evPayload])+len(p[evSalt]) > 0 {
		v.buf = append(append(v.buf[:0], p[evSalt]...), p[evPayload]...)
		if hash := sha256.Sum256(v.buf); !hmac.Equal(hash[:], p[evHash]) {
			return tampered(seq, "the payload of event %d was changed", seq)
		}
	}
	if err := v.block.verify(t, seq, p); err != nil {
		return err
	}
	v.at = auditHead{seq: seq, chain: chain}
	return nil
}

// SignExport implements [store.Trail].
func (d *Trail) SignExport(message []byte) (signature []byte, key ed25519.PublicKey) {
	secret := ed25519.NewKeyFromSeed(sum(d.db.auditKey, []byte("audit export")))
	return ed25519.Sign(secret, message), ed25519.PublicKey(secret[ed25519.SeedSize:])
}

var _ store.Trail = (*Trail)(nil)

// CheckTrailEnd returns a [store.TamperedError] if the audit trail was truncated or
// replaced since its end was last recorded beside the database. It reads two events;
// VerifyFrom checks the same and reads the rest.
func (d *Trail) CheckTrailEnd(ctx context.Context) error {
	return d.db.Read(ctx, "checking the end of the audit trail", func(t *Tx) error {
		_, _, err := t.verifyEnds(0)
		return err
	})
}
