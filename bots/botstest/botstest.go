// Package botstest is the contract test of bots.Platform, with working fakes of the agent,
// gateway and platform. The messages themselves script [Agent], [Gateway] decides in the
// store and runs approved calls, and [Memory] is a platform in memory. The store is a real
// one.
//
//	func TestContract(t *testing.T) {
//		botstest.Script{Open: openBolt, New: newPlatform}.Run(t)
//	}
package botstest

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nize/bots"
	"nize/store"
)

// Requester is the user id that the person on a platform must have.
const Requester = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// User is a person on a platform who acts through its API.
type User interface {
	// Say writes a message; key is its id on the platform.
	Say(ctx context.Context, thread, key, text string) error
	// Press decides a call on its card.
	Press(ctx context.Context, call string, d store.Decision) error
	// Stop stops the thread's turn.
	Stop(ctx context.Context, thread string) error
	// See waits until the messages shown, in their current state and oldest first, satisfy
	// ok, and returns them.
	See(ctx context.Context, ok func([]store.Message) bool) ([]store.Message, error)
}

// Script is the contract test. Open opens a new store, which the test's cleanup closes; New
// creates a platform, its person, whose user id is [Requester], and the address of a
// thread.
type Script struct {
	Open func(t *testing.T) store.DB
	New  func(t *testing.T) (bots.Platform, User, store.Address)
}

// patience limits each wait of the script; only a failure takes this long.
const patience = time.Minute

// Run runs the whole script.
func (s Script) Run(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"answer": testAnswer, "duplicate": testDuplicate, "card": testCard, "late press": testLatePress,
		"press twice": testPressTwice, "restart": testRestart, "stop": testStop, "stop card": testStopCard, "edit": testEdit,
		"images": testImages, "files": testFiles, "killed": testKilled, "away": testAway,
	} {
		t.Run(name, func(t *testing.T) {
			db := s.Open(t)
			p, user, address := s.New(t)
			h := &fixture{t: t, db: db, platform: p, User: user, thread: store.NewID(time.Now())}
			address.Thread = strings.ReplaceAll(address.Thread, "THREAD", h.thread)
			th := store.Thread{ID: h.thread, User: Requester, Address: address, Created: time.Now()}
			if err := db.PutThread(t.Context(), store.System, th); err != nil {
				t.Fatal(err)
			}
			h.start()
			defer h.stop()
			test(t, h)
		})
	}
}

// fixture is a store, a platform, and a conversation that can be restarted.
type fixture struct {
	User
	t        *testing.T
	db       store.DB
	platform bots.Platform
	thread   string

	asked      int  // number of messages sent
	agentAgain bool // the next agent continues a cut answer
	agent      *Agent
	gateway    *Gateway
	cancel     context.CancelFunc
	wg         sync.WaitGroup
}

func (h *fixture) start() {
	h.agent = &Agent{Threads: h.db, Calls: h.db, Now: time.Now, Again: h.agentAgain}
	h.gateway = &Gateway{Calls: h.db, Now: time.Now}
	c := bots.New(bots.Options{
		Agent: h.agent, Approver: h.gateway, Inbox: h.db, Threads: h.db, Calls: h.db, Feed: h.db, Places: h.db, Backlog: h.db,
		Platforms: []bots.Platform{h.platform}, Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)), Pace: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			h.t.Errorf("Conversation.Run: %v", err)
		}
	})
	h.wg.Go(func() {
		if err := h.platform.Run(ctx, c); err != nil {
			h.t.Errorf("Platform.Run: %v", err)
		}
	})
}

func (h *fixture) stop() {
	h.cancel()
	h.wg.Wait()
	h.gateway.Close()
}

func (h *fixture) say(key, text string) {
	h.t.Helper()
	h.asked++
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	if err := h.Say(ctx, h.thread, key, text); err != nil {
		h.t.Fatalf("saying %q: %v", text, err)
	}
}

func (h *fixture) press(call string, d store.Decision) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	return h.Press(ctx, call, d)
}

// see waits for one message.
func (h *fixture) see(what string, ok func(store.Message) bool) store.Message {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	var found store.Message
	shown, err := h.See(ctx, func(all []store.Message) bool {
		for _, m := range all {
			if ok(m) {
				found = m
				return true
			}
		}
		return false
	})
	if err != nil {
		h.t.Fatalf("waiting for %s: %v; shown: %+v", what, err, shown)
	}
	return found
}

func (h *fixture) seeText(text string) {
	h.t.Helper()
	h.see("the answer "+text, func(m store.Message) bool {
		return m.Kind == store.TextMessage && m.Final && strings.TrimSpace(m.Text) == text
	})
}

// over waits until no turn is running: some platforms show all of a text before it is
// stored.
func (h *fixture) over() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		open, err := h.db.Open(ctx)
		if err == nil && len(open) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			h.t.Fatalf("threads that are still open: %v, %v", open, err)
		}
	}
}

func (h *fixture) seeCard(state store.State) store.Card {
	h.t.Helper()
	return *h.see("a card that is "+string(state), func(m store.Message) bool {
		return m.Kind == store.CardMessage && m.Card != nil && m.Card.State == state
	}).Card
}

func testAnswer(_ *testing.T, h *fixture) {
	h.say("m1", "say the quick **brown** fox, `jumps` over")
	h.seeText("the quick **brown** fox, `jumps` over")
}

func testDuplicate(t *testing.T, h *fixture) {
	h.say("m1", "say once")
	h.say("m1", "say once")
	h.seeText("once")
	h.say("m2", "say then")
	h.seeText("then")
	h.over()
	turns, err := h.db.Turns(t.Context(), h.thread)
	if err != nil || len(turns) != 4 {
		t.Errorf("got %d turns, %v; want 4", len(turns), err)
	}
}

func testCard(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {"name":"Bo"}`)
	card := h.seeCard(store.Pending)
	if err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}); err != nil {
		t.Fatal(err)
	}
	h.seeCard(store.Done)
	h.seeText("toolbox:greet is done")
	if n := h.gateway.Runs(card.Call); n != 1 {
		t.Errorf("the call ran %d times", n)
	}
}

// testImages checks that the thread shows the images that a call returned. Items that are
// not images, whatever their server calls them, are omitted and counted.
func testImages(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:chart {}`)
	card := h.seeCard(store.Pending)
	if err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}); err != nil {
		t.Fatal(err)
	}
	h.seeText("toolbox:chart is done")
	h.see("the image", func(m store.Message) bool { return m.Kind == store.ImagesMessage })
}

// Sharer is implemented by a [User] if the chat shows files. It returns the files in its
// thread by name.
type Sharer interface{ Shared() map[string][]byte }

// testFiles checks that the thread offers a file that a call returned, under a clean name,
// and shows the name and size of one that is too large.
func testFiles(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:report {}`)
	card := h.seeCard(store.Pending)
	if err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}); err != nil {
		t.Fatal(err)
	}
	h.seeText("toolbox:report is done")
	chat, ok := h.User.(Sharer)
	if !ok {
		return // its result is a download
	}
	h.see("what is too large", func(m store.Message) bool {
		return strings.Contains(m.Text, "huge.bin (9.4 MB)") && strings.Contains(m.Text, "Q3 report_.pdf ("+strconv.Itoa(len(Report))+" B)")
	})
	h.see("the file", func(store.Message) bool { return bytes.Equal(chat.Shared()["Q3 report_.pdf"], Report) })
	if n := len(chat.Shared()); n != 1 {
		t.Errorf("%d files are shared, want 1", n)
	}
}

func testPressTwice(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {}`)
	card := h.seeCard(store.Pending)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		verb := store.Approve
		if i%2 == 1 {
			verb = store.Deny
		}
		wg.Go(func() { errs[i] = h.press(card.Call, store.Decision{Verb: verb, Digest: card.Digest}) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d presses decided, want 1: %v", won, errs)
	}
	h.see("the end of the call", func(m store.Message) bool { return m.Kind == store.TextMessage && m.Final })
	if n := h.gateway.Runs(card.Call); n > 1 {
		t.Errorf("the call ran %d times", n)
	}
}

func testLatePress(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {}`)
	card := h.seeCard(store.Pending)
	if err := h.press(card.Call, store.Decision{Verb: store.Deny, Digest: card.Digest}); err != nil {
		t.Fatal(err)
	}
	h.seeText("toolbox:greet is refused")
	err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest})
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a press after the fact gave %v; want an error that says refused", err)
	}
	if h.gateway.Runs(card.Call) != 0 {
		t.Error("a refused call ran")
	}
}

func testRestart(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {}`)
	card := h.seeCard(store.Pending)
	h.stop()
	h.start()
	if err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest}); err != nil {
		t.Fatal(err)
	}
	h.seeCard(store.Done)
	h.seeText("toolbox:greet is done")
}

func testStop(t *testing.T, h *fixture) {
	h.say("m1", "slow thinking hard")
	h.see("the first words", func(m store.Message) bool { return strings.Contains(m.Text, "thinking") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.Stop(ctx, h.thread); err != nil {
		t.Fatal(err)
	}
	h.see("the end of the text", func(m store.Message) bool { return m.Kind == store.TextMessage && m.Final })
	h.say("m2", "say on we go")
	h.seeText("on we go")
}

func testStopCard(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {}`)
	card := h.seeCard(store.Pending)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.Stop(ctx, h.thread); err != nil {
		t.Fatal(err)
	}
	h.seeCard(store.Cancelled)
	err := h.press(card.Call, store.Decision{Verb: store.Approve, Digest: card.Digest})
	if err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("a press on a stopped turn gave %v; want an error that says cancelled", err)
	}
	h.say("m2", "say on we go")
	h.seeText("on we go")
	h.over()
}

func testEdit(t *testing.T, h *fixture) {
	h.say("m1", `call toolbox:greet {"n":1}`)
	card := h.seeCard(store.Pending)
	d := store.Decision{Verb: store.Edit, Digest: card.Digest, Args: []byte(`{"n":2}`)}
	if err := h.press(card.Call, d); err != nil {
		t.Fatal(err)
	}
	h.seeCard(store.Cancelled)
	edited := h.seeCard(store.Done)
	now, err := h.gateway.Card(t.Context(), edited.Call) // only one line remains
	if err != nil || edited.Call == card.Call || string(now.Args) != `{"n":2}` {
		t.Errorf("the edited card is %+v, %v", now, err)
	}
	h.seeText("toolbox:greet is done")
	if h.gateway.Runs(card.Call) != 0 {
		t.Error("the call from before the edit ran")
	}
}
