package rounds

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestStream: a client gets each event once, from its position on, whether it attached
// before a text, while it was written, after it, or when the round had ended.
func TestStream(t *testing.T) {
	const all = `1 usage; 2.2 "He"; 2.5 "llo"; 3 usage; 4 round.finished; end`
	for name, c := range map[string]struct {
		at    string // Last-Event-ID
		after int    // attach after so many steps
		late  bool   // it reads only at the end
		want  string
	}{
		"from the start":             {"", 0, false, all},
		"after the first":            {"", 1, false, all},
		"while the text is written":  {"", 2, false, all},
		"after the text":             {"", 3, false, `1 usage; 2.5 "Hello"; 3 usage; 4 round.finished; end`},
		"after the end":              {"", 5, false, `1 usage; 2.5 "Hello"; 3 usage; 4 round.finished; end`},
		"slow":                       {"", 0, true, `1 usage; 2.5 "Hello"; 3 usage; 4 round.finished; end`},
		"slow within the text":       {"2.2", 2, true, `2.5 "llo"; 3 usage; 4 round.finished; end`},
		"continued":                  {"1", 1, false, `2.2 "He"; 2.5 "llo"; 3 usage; 4 round.finished; end`},
		"continued within the text":  {"2.1", 2, false, `2.2 "e"; 2.5 "llo"; 3 usage; 4 round.finished; end`},
		"continued after its text":   {"2.5", 3, false, `3 usage; 4 round.finished; end`},
		"continued after everything": {"4", 5, false, `end`},
		"ahead of the round":         {"3", 1, false, `4 round.finished; end`},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			s := &state{ID: "r"}
			l := &live{round: "r", cancel: func() {}, streamed: true, clients: map[*Stream]struct{}{}}
			e.live["r"] = l
			at, err := ParsePosition(c.at)
			if err != nil {
				t.Fatal(err)
			}
			var st *Stream
			var got []string
			read := func() {
				for st != nil {
					now, cancel := context.WithCancel(t.Context())
					cancel() // don't wait
					events, err := st.Next(now)
					if errors.Is(err, ErrDone) {
						got = append(got, "end")
					}
					if err != nil {
						return
					}
					for _, one := range events {
						line := one.ID + " " + one.Name
						if _, text, ok := strings.Cut(string(one.Data), `"delta":`); ok {
							line = one.ID + " " + strings.TrimSuffix(text, "}")
						}
						got = append(got, line)
					}
				}
			}
			steps := []func(){
				func() { s.log(usageEvent, Usage{}); l.stored(s) },
				func() { l.addText("He") },
				func() { l.addText("llo") },
				func() {
					s.Log = append(s.Log, event{Name: textDelta, Text: l.textSoFar()})
					s.log(usageEvent, Usage{})
					s.log(roundFinished, Answer{})
					l.stored(s)
				},
				func() { e.forget(l) },
			}
			for i, step := range steps {
				if i == c.after {
					st = e.attach(l, at)
				}
				if !c.late {
					read()
				}
				step()
			}
			if st == nil {
				st = e.attach(l, at)
			}
			read()
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("%s\nwant %s", s, c.want)
			}
		})
	}
}
