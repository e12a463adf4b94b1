package main

import (
	"strings"
	"testing"

	"nize/cmd/nizectl/command"
	daemonsettings "nize/daemon/settings"
	"nize/store"
)

// TestMisspelled: a variable that is almost one of nizectl's is named, and none
// that nized reads.
func TestMisspelled(t *testing.T) {
	said := func(environ ...string) string {
		var b strings.Builder
		nameMisspelled(&command.App{Err: &b}, environ)
		return b.String()
	}
	if got := said("NIZE_SOKET=/x", "NIZE_SOCKET=/y", "HOME=/"); got != "nizectl: the environment variable NIZE_SOKET does nothing; did you mean NIZE_SOCKET?\n" {
		t.Errorf("said %q", got)
	}
	if got := said("NIZE_DATADIR=/x"); !strings.Contains(got, "NIZE_DATA_DIR") {
		t.Errorf("said %q", got)
	}
	names := []string{"NIZE_CONFIG=1", "NIZE_MCP_CONFIG=1", "NIZE_MASTER_KEY=1"}
	for _, k := range store.Keys {
		names = append(names, "NIZE_"+strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))+"=1")
	}
	for key := range daemonsettings.Flags() {
		names = append(names, "NIZE_"+strings.ToUpper(strings.ReplaceAll(key, ".", "_"))+"=1")
	}
	for _, pair := range names {
		if got := said(pair); got != "" && !strings.HasPrefix(pair, "NIZE_SOCKET_PATH") {
			t.Errorf("%s: said %q", pair, got)
		}
	}
}
