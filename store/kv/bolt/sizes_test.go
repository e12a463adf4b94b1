package bolt

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"
)

// TestFill: keys that are put in their order leave pages as full as Fill says, and
// ReadSizes accounts for every page of the file.
func TestFill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	f, err := Open(path, Options{Fill: map[string]float64{"full": 1, "most": 0.9}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"full", "half", "most"}
	for n := range 300 {
		b, err := f.Begin(t.Context(), true)
		for _, name := range names {
			if err == nil {
				err = b.Make(name)
			}
			for i := 0; i < 10 && err == nil; i++ {
				err = b.Put(name, binary.BigEndian.AppendUint64(nil, uint64(10*n+i)), make([]byte, 200))
			}
		}
		if err == nil {
			err = b.Commit()
		}
		if err != nil {
			t.Fatal(errors.Join(err, f.Close(false)))
		}
	}
	if err := f.Close(true); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSizes(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, full := int64(0), map[string]float64{}
	for _, b := range s.Buckets {
		if b.Keys != 3000 || b.Data != 3000*208 {
			t.Errorf("%s: %d keys, %d bytes", b.Name, b.Keys, b.Data)
		}
		full[b.Name] = float64(b.Data) / float64(b.Pages)
		sum += b.Pages
	}
	if full["full"] < 0.85 || full["most"] < 0.75 || full["most"] > full["full"] || full["half"] > 0.6 {
		t.Errorf("pages are filled to %v", full)
	}
	if rest := s.Used - s.Free - sum; rest < 0 || rest > 16*4096 || s.Used > s.File {
		t.Errorf("%d bytes are in no bucket, of %+v", rest, s)
	}
}
