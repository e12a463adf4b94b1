package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
	"nize/store"
)

// noEnv is an environment in which nothing is set.
func noEnv(string) string { return "" }

func runChat(t *testing.T, o Options) (out, errs string, err error) {
	t.Helper()
	var outBuf, errBuf bytes.Buffer
	o.Out, o.Err, o.Getenv = &outBuf, &errBuf, noEnv
	if o.In == nil {
		o.In = strings.NewReader("")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = Run(ctx, o)
	return outBuf.String(), errBuf.String(), err
}

func TestOne(t *testing.T) {
	d := newDaemon(t)
	for _, test := range []struct {
		name, message, approve string
		out                    string
		errs                   []string
		exit                   int
	}{
		{"answer", "say hello **there**", "", "hello **there**\n", []string{"No model provider"}, api.ExitDone},
		{"steering text", "say a\x1b[2Jb", "", "a[2Jb\n", nil, api.ExitDone},
		{"refused by default", `call toolbox:greet {"name":"Bo"}`, "", "toolbox:greet is refused\n",
			[]string{"Run toolbox:greet?", `name: Bo`, "✗ toolbox:greet · Refused: nobody was there to ask"}, api.ExitRefused},
		{"approve all", `call toolbox:greet {"name":"Bo"}`, "all", "toolbox:greet is done\n",
			[]string{"No model provider is set up; `nizectl providers add` sets one up.\n✓ toolbox:greet {\"name\":\"Bo\"} · Done · approved by ann"}, api.ExitDone},
		{"provider out", "fail", "", "", nil, api.ExitFailed},
		{"ask without a terminal", "say x", "ask", "", nil, api.ExitUsage},
		{"unknown approval", "say x", "maybe", "", nil, api.ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs, err := runChat(t, Options{Client: d.client(), Message: test.message, Approve: test.approve})
			if out != test.out {
				t.Errorf("out %q, want %q", out, test.out)
			}
			for _, want := range test.errs {
				if !strings.Contains(errs, want) {
					t.Errorf("err output lacks %q: %q", want, errs)
				}
			}
			if got := api.ExitCode(err); got != test.exit {
				t.Errorf("exit %d (%v), want %d", got, err, test.exit)
			}
		})
	}
}

func TestOneJSON(t *testing.T) {
	d := newDaemon(t)
	out, _, err := runChat(t, Options{Client: d.client(), Message: "say hello", JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for line := range strings.Lines(out) {
		var e struct {
			Thread string
			api.ChatEvent
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if !store.ValidID(e.Thread) {
			t.Errorf("line %q has no thread", line)
		}
		if e.Message != nil && e.Message.Final {
			last = e.Message.Text
		}
	}
	if last != "hello" {
		t.Errorf("last text %q of %q", last, out)
	}
}

func TestOneNoDaemon(t *testing.T) {
	_, _, err := runChat(t, Options{Client: api.New(t.TempDir() + "/none"), Message: "x"})
	if got := api.ExitCode(err); got != api.ExitNoDaemon {
		t.Errorf("exit %d (%v), want %d", got, err, api.ExitNoDaemon)
	}
}

// TestOneStopped ends the context in the middle of a turn, as a signal does
// that the caller of Run takes: the turn must not go on in the daemon.
func TestOneStopped(t *testing.T) {
	d := newDaemon(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &watched{want: "thinking", found: cancel}
	err := Run(ctx, Options{Client: d.client(), In: strings.NewReader(""), Out: out, Err: &bytes.Buffer{}, Message: "slow thinking hard", JSON: true, Getenv: noEnv})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Run: %v", err)
	}
	for change, err := range d.db.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if open, err := d.db.Open(t.Context()); err != nil || (len(open) == 0 && change.Kind == "turn") {
			return // stopped and answered
		}
	}
}

// watched is a writer that says when it has seen a text.
type watched struct {
	seen  bytes.Buffer
	want  string
	found func()
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.seen.Write(b)
	if strings.Contains(w.seen.String(), w.want) {
		w.found()
	}
	return n, err
}

func TestLines(t *testing.T) {
	d := newDaemon(t)
	in := strings.Join([]string{
		"/help", "/hlep", "say one", `call toolbox:greet {"a":1}`, "/model smrt", "/models", "/servers", "say two", "/quit", "say never",
	}, "\n")
	out, errs, err := runChat(t, Options{Client: d.client(), In: strings.NewReader(in), Approve: "all"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one\n", "Run toolbox:greet?", "toolbox:greet is done\n", "two\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("out lacks %q: %q", want, out)
		}
	}
	for _, want := range []string{"/history", "did you mean /help?", "did you mean smart?", "openai/x", "12 tools", "ok toolbox:greet - Done - approved by ann"} {
		if !strings.Contains(errs, want) {
			t.Errorf("err output lacks %q: %q", want, errs)
		}
	}
	if strings.Contains(out+errs, "\x1b") {
		t.Error("an escape sequence in plain output")
	}
	if strings.Contains(out, "never") {
		t.Error("a line after /quit was taken")
	}
}

// A command asks the same questions line by line; an empty line is the first,
// narrowest choice, and what is no choice is asked again.
func TestAskStanding(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	ask := store.Card{Asked: true, Here: true, Patterns: []store.CardPattern{
		{Args: json.RawMessage(`{"command":"git status -s"}`), Line: "git status -s", Exact: true}, {Args: json.RawMessage(`{"command":"git status*"}`), Line: "git status*"},
		{Args: json.RawMessage(`{"command":"git*"}`), Line: "git*", Repository: "/srv/web", Wide: true, Risk: store.Plain("also push")},
	}}
	for _, test := range []struct {
		deny    bool
		answers string
		want    store.Decision
		card    store.Card
	}{
		{false, ",,", store.Decision{Verb: store.Approve, Always: true, For: store.ForMe, Line: true, Until: now.Add(time.Hour)}, ask},
		{false, "2,2,", store.Decision{Verb: store.Approve, Always: true, For: store.ForConversation, Pattern: json.RawMessage(`{"command":"git status*"}`), Until: now.Add(time.Hour)}, ask},
		{false, ",3,6", store.Decision{Verb: store.Approve, Always: true, For: store.ForMe, Pattern: json.RawMessage(`{"command":"git*"}`), Here: true}, ask},
		{false, ",4,6", store.Decision{Verb: store.Approve, Always: true, For: store.ForMe}, ask},
		{false, ",,", store.Decision{Verb: store.Approve, Always: true, For: store.ForMe, Exact: true, Until: now.Add(time.Hour)}, store.Card{}},
		{false, "2,x,3,2,6", store.Decision{Verb: store.Approve, Always: true, For: store.ForEveryone}, store.Card{}},
		{true, "1,3", store.Decision{Verb: store.Deny, Always: true, For: store.ForMe, Until: now.Add(24 * time.Hour)}, store.Card{}},
	} {
		answers := strings.Split(test.answers, ",")
		got, err := AskStanding(test.deny, test.card, func(string) (string, error) {
			a := answers[0]
			answers = answers[1:]
			return a, nil
		}, now)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil || len(answers) > 0 {
			t.Errorf("%q: %v, %q left (-want +got):\n%s", test.answers, err, answers, diff)
		}
	}
}

// A yes that is not enough ends a turn at once: nobody here can give another one.
func TestApproveAllIsNotEnough(t *testing.T) {
	for name, c := range map[string]struct {
		pressed error
		want    string
	}{
		"one of two":    {nil, "needs another approval"},
		"others decide": {store.Mark(errors.New("only admins can decide this"), store.ErrRefused), "only admins can decide this"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			d.pressed = func() error { return c.pressed }
			_, _, err := runChat(t, Options{Client: d.client(), Message: `call toolbox:greet {"name":"Bo"}`, Approve: "all"})
			if code := api.ExitCode(err); code != api.ExitRefused || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nizectl chat --resume ") {
				t.Errorf("exit %d: %v", code, err)
			}
		})
	}
}
