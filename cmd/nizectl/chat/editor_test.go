package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typed runs what a terminal sends through decoder and editor.
func typed(e *editor, pieces ...string) (last action) {
	var d decoder
	for _, piece := range pieces {
		for _, k := range d.feed([]byte(piece)) {
			last = e.press(k)
		}
	}
	for _, k := range d.flush() {
		last = e.press(k)
	}
	return last
}

func TestEditor(t *testing.T) {
	for name, test := range map[string]struct {
		keys []string
		want string
		act  action
	}{
		"plain":             {[]string{"hello"}, "hello", actNone},
		"cut character":     {[]string{"\xe6\x97", "\xa5"}, "日", actNone},
		"cut sequence":      {[]string{"ab\x1b", "[", "Dx"}, "axb", actNone},
		"home end":          {[]string{"b\x01a\x05c\x1b[H0\x1b[F1"}, "0abc1", actNone},
		"backspace delete":  {[]string{"abcd\x7f\x1b[D\x1b[3~"}, "ab", actNone},
		"words":             {[]string{"one two three\x1bb\x1bb-\x17"}, "one two three", actNone},
		"kill and yank":     {[]string{"one two\x17\x01\x19 "}, "two one ", actNone},
		"paste with breaks": {[]string{"\x1b[200~a\r\nb\x1b[2", "01~c"}, "a\nbc", actNone},
		"paste of keys":     {[]string{"\x1b[200~\x03\x04\x1bx\x1b[201~"}, "x", actNone},
		"alt enter":         {[]string{"a\x1b\rb"}, "a\nb", actNone},
		"submit":            {[]string{"a\r"}, "a", actSubmit},
		"leave":             {[]string{"\x04"}, "", actLeave},
		"escape alone":      {[]string{"a\x1b"}, "a", actEscape},
		"unknown sequence":  {[]string{"a\x1b[99;99~b"}, "ab", actNone},
		"broken bytes":      {[]string{"a\xff\xfeb"}, "ab", actNone},
	} {
		t.Run(name, func(t *testing.T) {
			e := &editor{}
			act := typed(e, test.keys...)
			if e.value() != test.want || act != test.act {
				t.Errorf("got %q, %v; want %q, %v", e.value(), act, test.want, test.act)
			}
		})
	}
}

func TestEditorRows(t *testing.T) {
	e := &editor{prompt: "> "}
	e.set("ab日本\nxy")
	rows, row, col := e.rows(style{}, 8)
	if diff := cmp.Diff([]string{"> ab日", "  本", "  xy"}, rows); diff != "" {
		t.Error(diff)
	}
	if row != 2 || col != 4 {
		t.Errorf("cursor at %d, %d", row, col)
	}
	e.at = 3
	if _, row, col = e.rows(style{}, 8); row != 1 || col != 2 {
		t.Errorf("cursor at %d, %d; want 1, 2", row, col)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "history")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two\nlines", "two\nlines", " ", "key ghp_" + strings.Repeat("a1", 18)} {
		if err := h.add(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, append(mustRead(t, path), "torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err = openHistory(path)
	if diff := cmp.Diff([]string{"one", "two\nlines"}, h.lines); err != nil || diff != "" {
		t.Error(err, diff)
	}
	e := &editor{history: h}
	typed(e, "draft\x1b[A\x1b[A\x1b[A")
	if e.value() != "one" {
		t.Errorf("up gave %q", e.value())
	}
	if typed(e, "\x1b[B\x1b[B"); e.value() != "draft" {
		t.Errorf("down gave %q", e.value())
	}
	for range 2 * maxHistory {
		h.lines = append(h.lines, "x")
	}
	if err := h.rewrite(); err != nil {
		t.Fatal(err)
	}
	if h, err = openHistory(path); err != nil || h.len() != maxHistory {
		t.Errorf("%d entries, %v; want %d", h.len(), err, maxHistory)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want 0600", info, err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzKeys: any bytes, cut anywhere, keep the editor whole.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1b[200~x\x1b[201~\x1b[A\x17\x7f日"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		e := &editor{prompt: "> ", history: &history{lines: []string{"h"}}}
		at := int(cut) % (len(b) + 1)
		typed(e, string(b[:at]), string(b[at:]))
		if e.at < 0 || e.at > len(e.text) {
			t.Fatalf("cursor %d of %d", e.at, len(e.text))
		}
		rows, row, _ := e.rows(style{}, 20)
		if row < 0 || row >= len(rows) {
			t.Fatalf("row %d of %d", row, len(rows))
		}
	})
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{"LANG": "de_CH.UTF-8@euro", "TZ": ":Europe/Zurich"}
	get := func(name string) string { return env[name] }
	if got := localeOf(get); got != "de-CH" {
		t.Errorf("locale %q", got)
	}
	if got := LocalZone(get); got != "Europe/Zurich" {
		t.Errorf("zone %q", got)
	}
	env["LC_ALL"] = "C"
	if got := localeOf(get); got != "" || utf8Locale(get) {
		t.Errorf("locale %q, UTF-8 %v", got, utf8Locale(get))
	}
}
