package bots_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/store"
)

// away is a platform whose readers aren't always watching.
type away struct{ *botstest.Memory }

func (away) Mentions(store.Address) bool { return true }

// slow is an agent that waits as a message says: minutes before the first word, WORD,
// minutes after it; "other" is a decision by another person, and "tool" a first turn that
// makes a call.
type slow struct{ *botstest.Agent }

func (a slow) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	turns, err := a.Threads.Turns(ctx, thread)
	if err != nil || len(turns) == 0 || turns[len(turns)-1].Role != store.FromUser {
		return err
	}
	asked := turns[len(turns)-1]
	say := func(text string, ends bool) error {
		id := store.TurnID(thread, len(turns))
		turn := store.Turn{Thread: thread, N: len(turns), Role: store.FromModel, Text: text, Re: asked.N, At: time.Now()}
		if err := a.Threads.Append(ctx, store.System, turn, !ends); err != nil {
			return err
		}
		turns = append(turns, turn)
		tell(store.Progress{Kind: "turn", Turn: id, Stored: id, Text: text, Ends: ends})
		return nil
	}
	for word := range strings.FieldsSeq(asked.Text) {
		switch word {
		case "other", "own":
			by := map[string]string{"other": "somebody", "own": asked.By.User}[word]
			call := store.Call{ID: store.NewID(time.Now()), By: asked.By.User, State: store.Done, Decisions: []store.Decision{{Verb: store.Approve, By: by}}}
			tell(store.Progress{Kind: "call", ID: call.ID, Call: &call})
		case "wait":
			<-time.NewTimer(2 * time.Minute).C // the bubble's clock
		case "tool":
			if err := say("Let me look.", false); err != nil {
				return err
			}
		case "text":
			tell(store.Progress{Kind: "text", Turn: store.TurnID(thread, len(turns)), Delta: "Here "})
			<-time.NewTimer(time.Second).C // so that it is posted
		}
	}
	return say("Here it is.", true)
}

// An answer that took over a minute, or became possible through another person's approval,
// mentions the requester once: at its beginning, or in a line after it if the text began
// too early.
func TestMention(t *testing.T) {
	for said, want := range map[string]string{
		"text":                     "",
		"own text":                 "",
		"tool text":                "",
		"wait text":                "Here it is.",
		"other text":               "Here it is.",
		"text wait":                "The answer to your question is complete.",
		"text other":               "The answer to your question is complete.",
		"wait text wait":           "Here it is.",
		"wait tool text":           "Let me look.",
		"tool wait text":           "Here it is.",
		"tool text wait other":     "The answer to your question is complete.",
		"wait other":               "Here it is.",
		"wait tool wait text wait": "Let me look.",
	} {
		t.Run(said, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				memory := away{botstest.NewMemory(store.OnSlack)}
				agent := slow{&botstest.Agent{Threads: o.db, Calls: o.db, Now: time.Now}}
				c := bots.New(bots.Options{Agent: agent, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db, Places: o.db, Backlog: o.db,
					Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.Run(ctx) }()
				id := store.NewID(time.Now())
				th := store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Channel: "C1", Thread: id}}
				if err := o.db.PutThread(ctx, store.System, th); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Message(ctx, store.Inbound{Key: "1", Thread: id, By: o.by, Text: said}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute) // the bubble's clock
				synctest.Wait()
				shown, err := memory.See(ctx, func([]store.Message) bool { return true })
				if err != nil {
					t.Fatal(err)
				}
				var mentions []string
				for _, m := range shown {
					if m.Mention {
						mentions = append(mentions, m.Text)
					}
				}
				if got := strings.Join(mentions, " | "); got != want {
					t.Errorf("mentions %q, want %q: %+v", got, want, shown)
				}
				if behind, err := o.db.LaggingThreads(ctx); err != nil || len(behind) > 0 {
					t.Errorf("the chat lacks %v, %v", behind, err)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// counted is away that counts notifications: posts, not edits.
type counted struct {
	away
	mu    sync.Mutex
	first bool // the process that ends, so it can't mention anyone after the answer
	pings []string
}

func (p *counted) Post(ctx context.Context, to store.Address, m store.Message) (store.Address, error) {
	if m.Mention {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.first && m.Kind == store.NoticeMessage {
			return store.Address{}, errors.New("the process ended before it")
		}
		p.pings = append(p.pings, m.Text)
	}
	return p.away.Post(ctx, to, m)
}

// The requester is mentioned once, whenever the process ends in between, and a text that
// begins with the mention keeps it.
func TestMentionRestart(t *testing.T) {
	for _, test := range []struct {
		said   string
		after  time.Duration // when the first process ends
		pings  string
		headed int // number of mentioning messages in the end
	}{
		{"wait text", 2*time.Minute + 500*time.Millisecond, "Here ", 1},                                     // while the text with the mention streams
		{"text wait", 2*time.Minute + 1500*time.Millisecond, "The answer to your question is complete.", 1}, // before the line after the answer is posted
		{"wait text", time.Minute, "Here ", 1},                                                              // before it
		{"text", 500 * time.Millisecond, "", 0},                                                             // soon
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t)
			memory := &counted{away: away{botstest.NewMemory(store.OnSlack)}}
			agent := cutting{slow{&botstest.Agent{Threads: o.db, Calls: o.db, Now: time.Now}}}
			id := store.NewID(time.Now())
			th := store.Thread{ID: id, User: o.by.User, Address: store.Address{Surface: store.OnSlack, Channel: "C1", Thread: id}}
			if err := o.db.PutThread(t.Context(), store.System, th); err != nil {
				t.Fatal(err)
			}
			for _, span := range []time.Duration{test.after, 10 * time.Minute} {
				memory.first = span == test.after
				c := bots.New(bots.Options{Agent: agent, Approver: &botstest.Gateway{Calls: o.db, Now: time.Now}, Inbox: o.db, Threads: o.db, Calls: o.db, Feed: o.db, Places: o.db, Backlog: o.db,
					Platforms: []bots.Platform{memory}, Log: slog.New(slog.NewTextHandler(o.log, nil)), Pace: time.Millisecond})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.Run(ctx) }()
				synctest.Wait()
				if span == test.after {
					if _, err := c.Message(ctx, store.Inbound{Key: "1", Thread: id, By: o.by, Text: test.said}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(span)
				synctest.Wait()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			shown, err := memory.See(t.Context(), func([]store.Message) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			headed, last := 0, ""
			for _, m := range shown {
				if m.Mention {
					headed++
				}
				if m.Kind == store.TextMessage {
					last = m.Text
				}
			}
			if got := strings.Join(memory.pings, " | "); got != test.pings || headed != test.headed || last != "Here it is." {
				t.Errorf("%q, ended after %v: pings %q, want %q; %d mention, want %d: %+v", test.said, test.after, got, test.pings, headed, test.headed, shown)
			}
		})
	}
}

// cutting is slow that returns at once when its context ends, and continues its text
// afterwards.
type cutting struct{ slow }

func (a cutting) Work(ctx context.Context, thread string, tell func(store.Progress)) error {
	var mu sync.Mutex
	ended := false
	done := make(chan error, 1)
	go func() {
		done <- a.slow.Work(ctx, thread, func(p store.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if !ended {
				tell(p)
			}
		})
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		mu.Lock()
		defer mu.Unlock()
		ended = true
		return ctx.Err()
	}
}
