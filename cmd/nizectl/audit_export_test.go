package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/daemon/api"
	"nize/store"
)

var (
	exportSecret = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	exportKey    = hex.EncodeToString(exportSecret.Public().(ed25519.PublicKey))
)

// trail answers as a daemon with these events would, and with an export of them.
func (d *double) trail(t *testing.T, events ...store.Event) {
	t.Helper()
	var out api.Encoded
	sum := sha256.New()
	e := api.Export{At: now, Events: len(events), Head: uint64(len(events))}
	for i, ev := range events {
		ev.Seq = uint64(i + 1)
		e.First, e.Last, e.Chain = 1, ev.Seq, ev.Chain
		line, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	sum.Write(out)
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	last, err := e.Line(func(m []byte) ([]byte, ed25519.PublicKey) {
		return ed25519.Sign(exportSecret, m), exportSecret.Public().(ed25519.PublicKey)
	})
	if err != nil {
		t.Fatal(err)
	}
	answerLines(d, api.ExportAudit, append(append(out, last...), '\n'))
	answer(d, api.GetAuditKey, api.AuditKey{ExportKey: exportKey})
	answerLines(d, api.ReadAudit, events...)
}

// TestExportFile: written whole or not at all, replaced only when told, and
// checked with its key and without a daemon.
func TestExportFile(t *testing.T) {
	d := newDouble(t)
	d.trail(t, store.Event{Kind: "call.done", Chain: "c1"}, store.Event{Kind: "call.done", Chain: "c2"})
	path := filepath.Join(t.TempDir(), "trail.jsonl")
	if got := d.nizectl(surroundings{}, "audit", "export", path); got.code != 0 || !strings.Contains(got.out, "2, from 1 to 2") || !strings.Contains(got.err, "--key "+exportKey) {
		t.Fatalf("%+v", got)
	}
	if got := d.nizectl(surroundings{}, "audit", "export", path); got.code != 2 || !strings.Contains(got.err, "use --yes") {
		t.Errorf("replacing it: %+v", got)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.nizectl(surroundings{}, "audit", "export"); got.code != 0 || got.out != string(whole) {
		t.Errorf("to standard output: %+v", got)
	}
	if got := d.nizectl(surroundings{tty: true}, "audit", "export"); got.code != 2 || !strings.Contains(got.err, "name a FILE") {
		t.Errorf("to a terminal: %+v", got)
	}
	verify := func(args ...string) result {
		return d.nizectl(surroundings{}, append([]string{"audit", "verify", "--file", path}, args...)...)
	}
	if got := verify("--key", strings.ToUpper(exportKey)); got.code != 0 || !strings.Contains(got.out, "the export holds") || !strings.Contains(got.out, "not asked") {
		t.Errorf("with its key: %+v", got)
	}
	if got := verify("--key", strings.Repeat("ab", 32)); got.code != 1 || !strings.Contains(got.err, "another key") {
		t.Errorf("with another key: %+v", got)
	}
	if got := verify("--key", "xyz"); got.code != 2 {
		t.Errorf("with no key: %+v", got)
	}
	d.trail(t, store.Event{Seq: 2, Chain: "c2"})
	if got := verify("--json"); got.code != 0 || !strings.Contains(got.out, `"ok": true`) || !strings.Contains(got.out, "still has the event") {
		t.Errorf("with the daemon: %+v", got)
	}
	d.trail(t, store.Event{Seq: 2, Chain: "other"})
	if got := verify(); got.code != 1 || !strings.Contains(got.err, "event 2 has changed") {
		t.Errorf("with a trail that was written anew: %+v", got)
	}
	d.trail(t)
	if got := verify(); got.code != 0 || !strings.Contains(got.out, "retention has deleted") {
		t.Errorf("after a pruning: %+v", got)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(whole), "c1", "c9", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := verify("--key", exportKey); got.code != 1 || !strings.Contains(got.err, "failed verification") {
		t.Errorf("changed: %+v", got)
	}
}

// TestVerifyTampered: the one line names the event.
func TestVerifyTampered(t *testing.T) {
	d := newDouble(t)
	answerLines(d, api.VerifyAudit, api.VerifyLine{Result: &api.Verified{Events: 4, Failed: 5, Error: "event 5 was changed"}})
	for _, args := range [][]string{{"audit", "verify"}, {"audit", "verify", "--json"}} {
		if got := d.nizectl(surroundings{}, args...); got.code != 1 || got.err != "nizectl: the audit trail failed verification: event 5 was changed; 4 events before that hold\n" {
			t.Errorf("%+v", got)
		}
	}
	answerLines(d, api.VerifyAudit, api.VerifyLine{Result: &api.Verified{OK: true, Events: 4, After: 9, Checkpoints: []api.Checkpoint{{Seq: 9, At: now, Why: "pruning", Events: 3}, {Seq: 7, At: now, Why: "erasure", Events: 1, Subject: "01U"}, {Seq: 5, At: now, Why: "daily", Events: 2}}}})
	got := d.nizectl(surroundings{}, "audit", "verify", "--since-checkpoint")
	for _, want := range []string{"4 events after the checkpoint at event 9", "retention deleted 3 events", "1 event of user 01U erased", "daily check, 2 events held"} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("no %q in %+v", want, got)
		}
	}
}
