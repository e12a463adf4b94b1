package web_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/outbox"
	"nize/bots/web"
	"nize/store"
	"nize/store/database/databasetest"
)

// tab is a person's page: it handles events like page/conversation.js.
type tab struct {
	*web.Platform
	db      store.DB
	cards   *botstest.Gateway
	handler chan bots.Handler

	mu sync.Mutex // guards h
	h  bots.Handler
}

func (p *tab) Run(ctx context.Context, h bots.Handler) error {
	p.mu.Lock()
	p.h = h
	p.mu.Unlock()
	select {
	case p.handler <- h:
	default:
	}
	return p.Platform.Run(ctx, h)
}

func (p *tab) running(ctx context.Context) (bots.Handler, error) {
	p.mu.Lock()
	h := p.h
	p.mu.Unlock()
	if h != nil {
		return h, nil
	}
	select {
	case h := <-p.handler:
		return h, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var ann = store.Caller{User: botstest.Requester, Name: "ann", Role: store.Member, Surface: store.OnWeb}

func (p *tab) Say(ctx context.Context, thread, key, text string) error {
	h, err := p.running(ctx)
	if err == nil {
		_, err = h.Message(ctx, store.Inbound{Key: key, Thread: thread, By: ann, Text: text})
	}
	return err
}

func (p *tab) Press(ctx context.Context, call string, d store.Decision) error {
	h, err := p.running(ctx)
	if err == nil {
		_, err = h.Press(ctx, ann, call, d)
	}
	return err
}

func (p *tab) Stop(ctx context.Context, thread string) error {
	h, err := p.running(ctx)
	if err != nil {
		return err
	}
	return h.Stop(ctx, ann, thread)
}

// See follows the newest conversation until it shows the expected messages.
func (p *tab) See(ctx context.Context, ok func([]store.Message) bool) ([]store.Message, error) {
	all, err := p.db.ListThreads(ctx, "", 1)
	if err != nil {
		return nil, err
	}
	f := p.Follow(web.Tab{Thread: all[0].ID, User: ann.User})
	defer f.Close()
	var shown []store.Message
	put := func(m store.Message) {
		same := func(o store.Message) bool {
			return o.ID == m.ID || m.Turn != "" && (o.Turn == m.Turn || o.ID == m.Turn)
		}
		if i := slices.IndexFunc(shown, same); i >= 0 {
			shown[i] = m
			return
		}
		shown = append(shown, m)
	}
	for {
		if ok(shown) {
			return shown, nil
		}
		e, err := f.Next(ctx)
		if err != nil {
			return shown, err
		}
		switch e.Kind {
		case web.Whole:
			_, live := f.Snapshot()
			if shown, err = p.read(ctx, all[0].ID); err != nil {
				return shown, err
			}
			for _, m := range live {
				put(m)
			}
		case web.Shown:
			put(e.Message.Message)
		}
	}
}

// read returns the stored conversation without people's messages.
func (p *tab) read(ctx context.Context, thread string) (list []store.Message, err error) {
	turns, err := p.db.Turns(ctx, thread)
	if err != nil {
		return nil, err
	}
	calls, err := p.db.ListCalls(ctx, store.CallQuery{Thread: thread})
	if err != nil {
		return nil, err
	}
	cards := map[string]store.Card{}
	for _, c := range calls {
		if cards[c.ID], err = p.cards.Card(ctx, c.ID); err != nil {
			return nil, err
		}
	}
	for _, m := range web.History(web.Record{Turns: turns, Calls: calls, Cards: cards}, bots.Reader{}) {
		if m.Kind != web.PersonMessage {
			list = append(list, m.Message)
		}
	}
	return list, nil
}

// TestContract runs the contract test for platforms.
func TestContract(t *testing.T) {
	var db store.DB
	botstest.Script{
		Open: func(t *testing.T) store.DB { db = databasetest.Open(t); return db },
		New: func(t *testing.T) (bots.Platform, botstest.User, store.Address) {
			g := &botstest.Gateway{Calls: db, Now: time.Now}
			t.Cleanup(g.Close)
			p := &tab{Platform: web.New(db), db: db, cards: g, handler: make(chan bots.Handler, 1)}
			return p, p, store.Address{Surface: store.OnWeb, Thread: "THREAD"}
		},
	}.Run(t)
}

// noFeed has no changes.
type noFeed struct{ store.Feed }

func text(id, words string, final bool) store.Message {
	return store.Message{ID: id, Kind: store.TextMessage, Text: words, Final: final}
}

// TestFollower: a tab gets the whole first, then additions to a text; several changes
// between reads are sent once; too many are sent as the whole.
func TestFollower(t *testing.T) {
	ctx := t.Context()
	p := web.New(noFeed{})
	at := store.Address{Surface: store.OnWeb, Thread: "T"}
	post := func(m store.Message) {
		t.Helper()
		if _, err := p.Post(ctx, at, m); err != nil {
			t.Fatal(err)
		}
	}
	post(text("a", "Hel", false))
	f := p.Follow(web.Tab{Thread: "T", User: "ann"})
	defer f.Close()
	next := func() web.Event {
		t.Helper()
		e, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := next(); e.Kind != web.Whole {
		t.Fatalf("the first event is %q", e.Kind)
	}
	if state, live := f.Snapshot(); state != outbox.Idle || len(live) != 1 || live[0].Text != "Hel" {
		t.Fatalf("the snapshot is %v, %+v", state, live)
	}
	post(text("a", "Hello", false))
	post(text("a", "Hello, w", false))
	if e := next(); !e.Appended || e.Had != 3 || e.Message.Text != "Hello, w" {
		t.Errorf("of what was appended: %+v", e)
	}
	post(text("a", "Other", false))
	if e := next(); e.Appended || e.Message.Text != "Other" {
		t.Errorf("of what began again: %+v", e)
	}
	post(text("a", "Others", true))
	if e := next(); e.Appended || !e.Message.Final {
		t.Errorf("of its end: %+v", e)
	}
	if err := p.Present(ctx, at, outbox.Idle); err != nil {
		t.Fatal(err)
	}
	if e := next(); e.Kind != web.State || e.State != outbox.Idle {
		t.Errorf("of the state: %+v", e)
	}
	post(store.Message{ID: "n", Kind: store.NoticeMessage, Text: "for Ben", Only: "ben"})
	for n := range 300 {
		post(store.Message{ID: string(rune('A' + n)), Kind: store.NoticeMessage, Text: "x", Final: true})
	}
	if e := next(); e.Kind != web.Whole {
		t.Errorf("after too many: %+v", e)
	}
	if _, live := f.Snapshot(); len(live) != 0 {
		t.Errorf("still live: %+v", live)
	}
	post(text("b", strings.Repeat("x", 1<<20), false))
	if e := next(); e.Kind != web.Whole {
		t.Errorf("after too much: %s", e.Kind)
	}
}

// TestTellsOfWaitingCalls: tabs reload the pending calls only if one of these changed, and
// only the tabs of an affected person or session check their rights.
func TestTellsOfWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		feed := changes(make(chan store.Change))
		p := web.New(feed)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx, nil) }()
		synctest.Wait()
		f := p.Follow(web.Tab{User: "ann", Session: "s1"})
		defer f.Close()
		for _, test := range []struct {
			change store.Change
			want   []string
		}{
			{store.Change{Kind: "call", ID: "c", State: store.Running}, nil},
			{store.Change{Kind: "call", ID: "c", State: store.Done}, nil},
			{store.Change{Kind: "call", ID: "c", State: store.Pending, Waited: true}, []string{web.Calls}},
			{store.Change{Kind: "call", ID: "c", State: store.Cancelled, Waited: true}, []string{web.Calls}},
			{store.Change{Kind: "token", ID: "s2"}, nil},
			{store.Change{Kind: "token", ID: "s1"}, []string{web.Rights}},
			{store.Change{Kind: "user", ID: "bob"}, nil},
			{store.Change{Kind: "user", ID: "ann"}, []string{web.Rights, web.Calls}},
			{store.Change{Kind: "group", ID: "ops"}, []string{web.Calls}},
		} {
			f.Snapshot() // drops the queued events
			feed <- test.change
			synctest.Wait()
			var got []string
			for range test.want {
				e, err := f.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Kind)
			}
			soon, stop := context.WithTimeout(ctx, time.Second) // the bubble's clock
			e, err := f.Next(soon)
			if stop(); err == nil {
				got = append(got, e.Kind)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v: told %v, want %v", test.change, got, test.want)
			}
		}
		cancel()
		<-ended
	})
}

// changes is a feed.
type changes chan store.Change

func (changes) Last() store.Seq { return 0 }

func (c changes) Watch(ctx context.Context, _ store.Seq) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		for {
			select {
			case change := <-c:
				if !yield(change, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// TestHistory: a conversation as the page shows it, in the reader's language: a card or a
// tool's line, a call's replacement after it, and waiting messages at the end.
func TestHistory(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	card := store.Card{Call: "C2", Tool: "box:send", Server: "box", By: "Ann", State: store.Pending, Args: json.RawMessage(`{"n":9007199254740993,"to":"a\u202eb"}`), Digest: strings.Repeat("ab", 32)}
	card.ID = "C2"
	got := web.History(web.Record{
		Turns: []store.Turn{
			{Thread: "T", N: 0, Role: store.FromUser, By: store.Caller{User: "ann", Name: "Ann"}, Text: "Hi", Key: "T:k1", At: at},
			{Thread: "T", N: 1, Role: store.FromModel, Text: "Hello", Calls: []store.ToolCall{{ID: "L", Name: "discover_tools"}, {ID: "C0", Name: "execute_tool"}, {ID: "C1", Name: "execute_tool"}}, At: at},
			{Thread: "T", N: 2, Role: store.FromTool, CallID: "L", At: at},
		},
		Calls: []store.Call{
			{ID: "C0", Server: "box", Tool: "look", State: store.Done, Started: at, Finished: at.Add(40 * time.Millisecond), Result: &store.Result{Raw: json.RawMessage(`{"structuredContent":{}}`), View: json.RawMessage(`{"title":"Seen"}`)}},
			{ID: "C1", Server: "box", Tool: "send", State: store.Cancelled, Successor: "C2", Expires: at},
			{ID: "C2", Server: "box", Tool: "send", State: store.Pending, Expires: at},
		},
		Cards:  map[string]store.Card{"C1": {Call: "C1", Tool: "box:send", State: store.Cancelled}, "C2": card},
		Queued: []store.Inbound{{Key: "T:k1", Text: "Hi"}, {Key: "T:k2", Text: "And?"}},
	}, bots.Reader{Locale: "zh-Hans", Now: at})
	var lines []string
	for _, m := range got {
		line := m.ID + " " + string(m.Kind)
		if m.Line != nil {
			line += " " + m.Line.Title + " " + m.Line.State
		}
		if m.Words != nil && m.Words.Settled == nil {
			line += " " + m.Words.Headline + " " + strings.Join(strings.Fields(m.Words.Args), " ")
		}
		lines = append(lines, line)
	}
	want := `said/T:k1 person
T/1 text
tool/L tool 查找工具 已完成
tool/C0 tool box:look 已完成
images/C0 images
C1 card
C2 card 运行 box:send？ { "n": 9007199254740993, "to": "a\u202eb" }
said/T:k2 person`
	if s := strings.Join(lines, "\n"); s != want {
		t.Errorf("the conversation is\n%s\nwant\n%s", s, want)
	}
}

// TestHistoryWithoutRecords: calls without a record are shown with their outcome, and never
// as running.
func TestHistoryWithoutRecords(t *testing.T) {
	why := store.Textf("arguments don't fit %s: %s", "box:add", store.Textf("%s is required", "/text"))
	asked := func(id, name, args string) store.ToolCall { return store.ToolCall{ID: id, Name: name, Args: args} }
	got := web.History(web.Record{
		Turns: []store.Turn{
			{Thread: "T", N: 0, Role: store.FromUser, Text: "Go", Key: "k"},
			{Thread: "T", N: 1, Role: store.FromModel, Calls: []store.ToolCall{
				asked("A", "execute_tool", `{"tool_id":"box:add","params":{"titel":"x"}}`), asked("B", "execute_tool", `{"tool_id":"box:add"`),
				asked("C", "made_up", "{}"), asked("D", "discover_tools", "{}"), asked("E", "discover_tools", "{"),
			}},
			{Thread: "T", N: 2, Role: store.FromTool, CallID: "A", Ended: store.Planned, Said: why}, // as older versions stored it
			{Thread: "T", N: 3, Role: store.FromTool, CallID: "B", Said: store.Textf("The arguments were not a JSON object")},
			{Thread: "T", N: 4, Role: store.FromTool, CallID: "C", Ended: store.Failed, Unmade: true, Said: store.Textf("There is no function %q", "made_up")},
			{Thread: "T", N: 5, Role: store.FromTool, CallID: "D"},
			{Thread: "T", N: 6, Role: store.FromTool, CallID: "E", Ended: store.Failed, Unmade: true, Said: store.Textf("The arguments were not a JSON object")},
			{Thread: "T", N: 7, Role: store.FromModel, Calls: []store.ToolCall{asked("F", "execute_tool", "{}")}},
			{Thread: "T", N: 8, Role: store.FromNize, Text: "Stopped.", Said: store.Textf("Stopped."), Final: true},
			{Thread: "T", N: 9, Role: store.FromModel, Calls: []store.ToolCall{asked("G", "execute_tool", `{"tool_id":"box:add"}`), asked("H", "agent_ops", "{}")}},
		},
	}, bots.Reader{})
	var lines []string
	for _, m := range got {
		if m.Line == nil {
			continue
		}
		if m.Line.Opens {
			t.Errorf("%s opens, and there is nothing to be seen", m.ID)
		}
		lines = append(lines, strings.TrimSpace(m.ID+" "+string(m.Tool.State)+" "+m.Line.Title+": "+m.Line.State+" "+m.Line.Brief))
	}
	want := `tool/A failed box:add: failed arguments don't fit box:add: /text is required
tool/B failed execute_tool: failed The arguments were not a JSON object
tool/C failed made_up: failed There is no function "made_up"
tool/D done Search for tools: done
tool/E failed Search for tools: failed The arguments were not a JSON object
tool/F cancelled execute_tool: cancelled
tool/G planned box:add: planned
tool/H planned agent_ops: planned`
	if s := strings.Join(lines, "\n"); s != want {
		t.Errorf("the lines are\n%s\nwant\n%s", s, want)
	}
}
