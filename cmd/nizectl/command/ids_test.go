package command

import (
	"context"
	"strings"
	"testing"

	"nize/daemon/api"
)

// TestWholeID: the unique head of an id stands for it; that of several lists them.
func TestWholeID(t *testing.T) {
	find := func(context.Context, *api.Client) ([]ID, error) {
		return []ID{{"01KB5Z3AAAAAAAAAAAAAAAAAAA", "box:write by mia"}, {"01KB5Z3BBBBBBBBBBBBBBBBBBB", "box:read"}, {"01KB5Z3BBBBBBBBBBBBBBBBBBB", "again"}, {"01KC000000000000000000000C", ""}}, nil
	}
	for given, want := range map[string]string{
		"01KB5Z3A": "01KB5Z3AAAAAAAAAAAAAAAAAAA", "01kb5z3b": "01KB5Z3BBBBBBBBBBBBBBBBBBB", "01KC": "01KC000000000000000000000C",
		"01KC000000000000000000000C": "01KC000000000000000000000C", "01KD000000000000000000000D": "01KD000000000000000000000D", // whole ones are not looked up
		"01K": "01K", "01ZZ": "01ZZ", "notes.txt": "notes.txt", "": "",
	} {
		if got, err := WholeID(t.Context(), nil, given, find); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
	got, err := WholeID(t.Context(), nil, "01KB", find)
	if err == nil || got != "" || !strings.Contains(err.Error(), "01KB is a prefix of 2 ids: 01KB5Z3AAAAAAAAAAAAAAAAAAA (box:write by mia), 01KB5Z3BBBBBBBBBBBBBBBBBBB (box:read); give more characters") {
		t.Errorf("%q, %v", got, err)
	}
}
