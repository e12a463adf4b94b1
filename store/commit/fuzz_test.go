package commit

import (
	"testing"

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
