package database

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"

	"nize/store"
	"nize/store/kv"
	"nize/store/seal"
)

// verifier recomputes the chain from one event to the next.
type verifier struct {
	at    auditHead
	mac   hash.Hash
	buf   []byte
	parts [][]byte
	block blockCheck
}

// VerifyEvents implements [store.Ledger]. It starts at the checkpoint that the
// last pruning left and ends at the event that was the newest when it began.
func (d *DB) VerifyEvents(ctx context.Context) (int, error) { return d.VerifyFrom(ctx, 0, nil) }

// VerifyFrom implements [store.Trail].
func (d *DB) VerifyFrom(ctx context.Context, after uint64, progress func(done, all int)) (int, error) {
	v := verifier{mac: hmac.New(sha256.New, d.auditKey)}
	var head auditHead
	err := d.view(ctx, "verifying the audit trail", func(t *tx) (err error) {
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
		err = d.view(ctx, "verifying the audit trail", func(t *tx) error {
			base, err := loadBase(t, d.auditKey)
			if err != nil {
				return err
			}
			if base.seq > v.at.seq { // pruned meanwhile
				v.at = base
			}
			for range eventPage {
				if v.at.seq >= head.seq {
					break
				}
				if err := v.next(t); err != nil {
					return err
				}
				held++
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

// verifyEnds returns from where to where the chain is verified.
func (t *tx) verifyEnds(after uint64) (from, head auditHead, err error) {
	if head, err = loadHead(t, t.db.auditKey); err != nil {
		return from, head, err
	}
	if k := t.last("events", nil); k != nil && decodeSeq(k) != head.seq {
		return from, head, tampered(min(decodeSeq(k), head.seq)+1, "the newest event is %d, its head says %d", decodeSeq(k), head.seq)
	}
	if from, err = loadBase(t, t.db.auditKey); err != nil {
		return from, head, err
	}
	if err := t.checkBeside(from, head); err != nil || after == 0 {
		return from, head, err
	}
	from, err = loadCheckpoint(t, after)
	return from, head, err
}

// next checks the event after the one that v stands at and moves there.
func (v *verifier) next(t *tx) error {
	seq := v.at.seq + 1
	b := t.get("events", seqKey(seq))
	if b == nil {
		return tampered(seq, "event %d is missing", seq)
	}
	p, err := eventPartsTo(v.parts, b)
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

// VerifyEngine says how many events of the audit trail hold and how many secrets
// open with the master key, or what does not, of a database that InspectEngine
// knows or of a copy of one. It changes nothing.
func VerifyEngine(ctx context.Context, e kv.Engine, master *seal.Master) (events, secrets int, err error) {
	d := newDB(Options{})
	d.engine = e
	if err := d.loadKeys(master); err != nil {
		return 0, 0, err
	}
	if events, err = d.VerifyEvents(ctx); err != nil {
		return events, 0, err
	}
	err = d.view(ctx, "opening secrets", func(t *tx) error {
		keys, err := unwrapKeys(t, master)
		if err != nil {
			return err
		}
		// Under a newer key, whatever is to be sealed again has to open first.
		last := slices.MaxFunc(keys, func(a, b seal.DataKey) int { return int(a.Number) - int(b.Number) })
		sealer, err := seal.NewSealer(append(keys, seal.NewDataKey(last.Number+1))...)
		if err != nil {
			return err
		}
		d.keys.Store(&keyring{master, sealer})
		for _, s := range sealed {
			err := t.each(s.bucket, nil, func(k, v []byte) error {
				again, err := s.anew(t, k, v)
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return fmt.Errorf("%s %q: %w", s.bucket, k, err)
				}
				if again != nil {
					secrets++
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return events, secrets, err
}

// SignExport implements [store.Trail].
func (d *DB) SignExport(message []byte) (signature []byte, key ed25519.PublicKey) {
	secret := ed25519.NewKeyFromSeed(sum(d.auditKey, []byte("audit export")))
	return ed25519.Sign(secret, message), ed25519.PublicKey(secret[ed25519.SeedSize:])
}

var _ store.Trail = (*DB)(nil)
