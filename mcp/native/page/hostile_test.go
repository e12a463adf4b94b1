//go:build !race

package page

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// One goroutine works here: the race detector has nothing to find, and would take
// a minute for it.

// hostile pages are made to cost time and memory.
var hostile = map[string]string{
	"nested":     strings.Repeat("<div>", 1_000_000),
	"inline":     strings.Repeat("<b><i><a>", 300_000),
	"attributes": "<p" + strings.Repeat(" a", 1_000_000) + ">x",
	"many names": func() string {
		var b strings.Builder
		for i := range 200_000 {
			fmt.Fprintf(&b, " a%d=1", i)
		}
		return "<p" + b.String() + ">x</p>"
	}(),
	"lists":     strings.Repeat(strings.Repeat("<ul><li>x", 200)+strings.Repeat("</ul>", 200), 100),
	"table":     "<table>" + strings.Repeat("<tr><td>x<td>y", 500_000),
	"in tables": strings.Repeat("<table>x", 300_000),
	"script":    "<p>before</p><script>" + strings.Repeat("x", 4<<20) + "</script><p>after</p>",
	"comment":   "<!--" + strings.Repeat("-", 4<<20),
	"entities":  strings.Repeat("&amp", 1<<20),
	"brackets":  strings.Repeat("<", 4<<20),
	"emphasis":  "<p>" + strings.Repeat("*_`[", 1<<20),
}

// cpuTime is the time for which this process has computed, which is no longer on a
// busy machine, as the clock's is.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestHostile(t *testing.T) {
	for name, text := range hostile {
		began := cpuTime()
		got := Markdown(text, nil)
		took := cpuTime() - began
		t.Logf("%s: %d bytes, %v", name, len(text), took)
		if took > 8*time.Second { // under 2 s without the race detector
			t.Errorf("%s: %v", name, took)
		}
		if len(got) > 8*len(text) {
			t.Errorf("%s: %d bytes out of %d", name, len(got), len(text))
		}
	}
	if got := Markdown(hostile["script"], nil); got != "before\n\nafter" {
		t.Errorf("beside a long script: %.80q", got)
	}
}
