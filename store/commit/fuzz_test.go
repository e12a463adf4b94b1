package commit

import (
	"slices"
	"testing"

	"nize/store"
	"nize/store/record"
)

func FuzzUnpack(f *testing.F) {
	f.Add(Pack([]byte("a"), nil, []byte("bc")))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		parts, err := unpack(b)
		if err != nil {
			return
		}
		again, err := unpack(Pack(parts...))
		if err != nil || len(again) != len(parts) {
			t.Fatalf("%v, %d parts became %d", err, len(parts), len(again))
		}
		for i := range parts {
			if string(again[i]) != string(parts[i]) {
				t.Fatalf("part %d: %q became %q", i, parts[i], again[i])
			}
		}
		record.DecodeCounters(b)
		(&Tx{DB: &DB{}}).decodeEvent(SeqKey(1), b, &names{})
	})
}

// FuzzForm: what is read of an event in the compact form is written as the same again.
func FuzzForm(f *testing.F) {
	d := &DB{auditKey: []byte("key")}
	d.SetSchema(CompactSchema)
	salt := make([]byte, saltSize)
	payload := Pack([]byte("u"), []byte("U"), nil, []byte("01M8FKY2W5BM1EKQ6EZ8ZXFAAQ"), []byte("127.0.0.1"), []byte(`{"took_us":3}`))
	hash := payloadHash(salt, payload)
	b := d.encodeEvent([][]byte{SeqKey(1), []byte("call.done"), []byte("01M8FKY2W5BM1EKQ6EZ8ZXFAAQ"), []byte("done"), []byte("mcp"), []byte("a:b"), d.pseudonym("u"), hash[:], make([]byte, chainSize), salt, payload})
	f.Add(b)
	f.Add(d.encodeEvent([][]byte{SeqKey(1), []byte("call.done"), nil, nil, nil, nil, d.pseudonym("u"), hash[:], make([]byte, chainSize), nil, nil}))
	f.Add(encodeChanges([]store.Change{{Kind: "call", ID: "01M8FKY2W5BM1EKQ6EZ8ZXFAAQ", State: "done", Waited: true}, {Kind: "turn"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tx := &Tx{DB: d}
		if p, err := tx.eventParts(b); err == nil {
			if again, err := tx.eventParts(d.encodeEvent(p)); err != nil || string(Pack(again...)) != string(Pack(p[:len(again)]...)) {
				t.Fatalf("%q became %q, %v", p, again, err)
			}
		}
		changes, err := DecodeChanges(SeqKey(9), b)
		if err != nil || len(changes) == 0 {
			return
		}
		if again, err := DecodeChanges(SeqKey(9), encodeChanges(changes)); err != nil || !slices.Equal(again, changes) {
			t.Fatalf("%+v became %+v, %v", changes, again, err)
		}
	})
}
