package control

import (
	"testing"
	"testing/synctest"

	"nize/daemon/api"
)

// TestProgress: a follower gets the latest of what was told before, and what is told
// later, until the call ends; others' calls of the same name are not theirs.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p progress
		tell, end := p.begin(progressKey{"ann", "x"})
		tell(1, 0, "one")
		tell(2, 3, "two")
		var ann, ben []api.Progress
		followed := make(chan error)
		go func() {
			followed <- p.follow(t.Context(), progressKey{"ann", "x"}, func(l api.Progress) error { ann = append(ann, l); return nil })
		}()
		synctest.Wait()
		tell(3, 3, "three")
		synctest.Wait()
		end()
		tell(4, 3, "late")
		if err := <-followed; err != nil || len(ann) != 2 || ann[0] != (api.Progress{Done: 2, Total: 3, Message: "two"}) || ann[1].Message != "three" {
			t.Errorf("ann is told %+v, %v", ann, err)
		}
		if err := p.follow(t.Context(), progressKey{"ben", "x"}, func(l api.Progress) error { ben = append(ben, l); return nil }); err != nil || len(ben) != 0 {
			t.Errorf("ben is told %+v, %v", ben, err)
		}
		if len(p.calls) != 0 {
			t.Errorf("%d calls are kept", len(p.calls))
		}
	})
}
