package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"nize/store"
)

// TestDueAfterAnother: what was done by another one is not done again, and what it
// left out, as one whose clock is behind does, is made up for.
func TestDueAfterAnother(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		last, begin time.Time // what was done last, and when this one takes over
		due         bool      // at noon, or as soon as it works
	}{
		"done just now":                      {noon.Add(time.Second), noon.Add(time.Second), false},
		"left out by a clock that is behind": {noon.Add(-time.Hour), noon.Add(2 * time.Second), true},
		"not yet due":                        {noon.Add(-time.Hour), noon.Add(-2 * time.Second), true},
		"done":                               {noon, noon.Add(5 * time.Second), false},
		"a clock that was wrong by a day":    {noon.AddDate(0, 0, 1), noon.Add(-time.Second), true},
	} {
		var d due
		since := func() time.Time { return c.last }
		first := d.now(c.begin, "0 * * * *", since)
		if then := d.now(noon.Add(5*time.Second), "0 * * * *", since); (first || then) != c.due || first && then {
			t.Errorf("%s: due %t, and then %t", name, first, then)
		}
		if !d.now(noon.Add(time.Hour), "0 * * * *", since) {
			t.Errorf("%s: not due at the next full hour", name)
		}
	}
}

// TestBackupElsewhere: a backup that another machine made counts here.
func TestBackupElsewhere(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), map[string]string{"NIZE_BACKUP_SCHEDULE": "@every 1h"})
	dir := filepath.Join(w.opt.DataDir, "backups")
	made := func() int {
		list, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return len(list)
	}
	w.scheduler.backup(t.Context())
	w.off.Add(int64(time.Hour + time.Minute))
	w.scheduler.backup(t.Context())
	if made() != 1 {
		t.Fatalf("%d backups after an hour", made())
	}
	if err := os.RemoveAll(dir); err != nil { // it was another machine's
		t.Fatal(err)
	}
	w.scheduler.backupsDue = due{}
	w.off.Add(int64(30 * time.Minute))
	w.scheduler.backup(t.Context())
	if made() != 0 {
		t.Error("it was made again")
	}
	w.scheduler.backupsDue = due{}
	w.off.Add(int64(31 * time.Minute))
	w.scheduler.backup(t.Context())
	if made() != 1 {
		t.Error("what was due while none worked is not made up for")
	}
}

// TestRest: what is due is done then, not up to a minute later.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scheduler{now: time.Now, config: store.Defaults{}}
		now := time.Now()
		for _, c := range []struct{ refresh, backup, want time.Duration }{
			{6 * time.Hour, 20 * time.Second, 20 * time.Second}, {3 * time.Second, 20 * time.Second, 3 * time.Second},
			{6 * time.Hour, time.Hour, time.Minute}, {-time.Hour, time.Hour, time.Second},
		} {
			s.backupsDue.next = now.Add(c.backup)
			if got := s.rest(now.Add(c.refresh)); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
		s.backupsDue.next = time.Time{} // off
		if got := s.rest(now.Add(time.Hour)); got != time.Minute {
			t.Errorf("nothing is due, and it rests %v", got)
		}
	})
}
