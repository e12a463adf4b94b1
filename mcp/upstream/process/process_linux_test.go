package process

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	GuardMain()
	goleak.VerifyTestMain(m)
}

func TestSpawnErrors(t *testing.T) {
	g, err := StartGuard(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("closing the guard: %v", err)
		}
	})
	for name, spawn := range map[string]func(Command) (Child, error){"guard": g.Spawn, "direct": SpawnDirect} {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		_, err = spawn(Command{Path: "/nonexistent/program", Dir: "/", Files: [3]*os.File{null, null, null}})
		if err == nil || !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: error %v", name, err)
		}
		null.Close()
	}
}

func FuzzReadFrame(f *testing.F) {
	good, err := encodeFrame(frame{Op: "spawn", ID: 1, Path: "/bin/true", Args: []string{"a"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 4 {
			return
		}
		fr, err := readFrame(strings.NewReader(string(data[4:])), [4]byte(data))
		if err != nil {
			return
		}
		if _, err := encodeFrame(fr); err != nil {
			t.Errorf("a frame that was read cannot be written: %v", err)
		}
	})
}
