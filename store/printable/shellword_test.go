package printable

import "testing"

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/var/lib/nize": "/var/lib/nize", "": "''", "/a b/it's": `'/a b/it'\''s'`, "$(x)": "'$(x)'"} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
