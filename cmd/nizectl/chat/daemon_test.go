package chat

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nize/bots"
	"nize/bots/botstest"
	"nize/bots/outbox"
	"nize/daemon/api"
	"nize/store"
	"nize/store/database/databasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeDaemon serves the part of the control API that a chat uses, on a real
// socket, over a real store and conversation with botstest's doubles.
type fakeDaemon struct {
	t      *testing.T
	socket string
	db     store.DB
	model  string

	mu      sync.Mutex // guards what follows
	follow  map[string]map[chan api.ChatEvent]bool
	state   map[string]string
	refused func(text string) error // for a message, if set
	pressed func() error            // for a decision, if set: an error, or nil for a yes that is one of two

	conversation *bots.Conversation
	gateway      *botstest.Gateway
	cancel       context.CancelFunc
	wg           sync.WaitGroup
}

func newDaemon(t *testing.T) *fakeDaemon {
	t.Helper()
	dir := t.TempDir()
	db := databasetest.OpenIn(t, dir)
	d := &fakeDaemon{t: t, socket: filepath.Join(dir, "s"), db: db, model: "offline"}
	d.start()
	t.Cleanup(func() {
		d.stop()
		db.Close()
	})
	return d
}

// start begins to listen; after stop it does so over the same store.
func (d *fakeDaemon) start() {
	d.mu.Lock()
	d.follow, d.state = map[string]map[chan api.ChatEvent]bool{}, map[string]string{}
	d.mu.Unlock()
	d.gateway = &botstest.Gateway{Calls: d.db, Now: time.Now}
	followed := &followedFeed{Feed: d.db, begun: make(chan struct{})}
	d.conversation = bots.New(bots.Options{
		Agent:    &botstest.Agent{Threads: d.db, Calls: d.db, Now: time.Now},
		Approver: d.gateway, Inbox: d.db, Threads: d.db, Calls: d.db, Feed: followed,
		Platforms: []bots.Platform{d}, Log: slog.New(slog.NewTextHandler(d.t.Output(), nil)), Pace: time.Millisecond,
	})
	listener, err := net.Listen("unix", d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	server := &http.Server{Handler: d.routes(), BaseContext: func(net.Listener) context.Context { return ctx }}
	d.wg.Go(func() {
		if err := d.conversation.Run(ctx); err != nil {
			d.t.Errorf("Conversation.Run: %v", err)
		}
	})
	<-followed.begun                           // a press before that would be told to nobody
	d.wg.Go(func() { server.Serve(listener) }) // ends with Close
	d.wg.Go(func() {
		<-ctx.Done()
		server.Close()
	})
}

// followedFeed tells when somebody begins to follow it.
type followedFeed struct {
	store.Feed
	once  sync.Once
	begun chan struct{} // closed then
}

func (f *followedFeed) Watch(ctx context.Context, after store.Seq) iter.Seq2[store.Change, error] {
	f.once.Do(func() { close(f.begun) })
	return f.Feed.Watch(ctx, after)
}

func (d *fakeDaemon) stop() {
	d.cancel()
	d.wg.Wait()
	d.gateway.Close()
}

func (d *fakeDaemon) client() *api.Client {
	c := api.New(d.socket)
	d.t.Cleanup(c.Close)
	return c
}

func (d *fakeDaemon) Surface() store.Surface                        { return store.OnTerminal }
func (d *fakeDaemon) Run(ctx context.Context, _ bots.Handler) error { <-ctx.Done(); return nil }

func (d *fakeDaemon) Post(_ context.Context, to store.Address, m store.Message) (store.Address, error) {
	d.tell(to.Thread, api.ChatEvent{Message: &m})
	return to, nil
}

func (d *fakeDaemon) Update(_ context.Context, at store.Address, m store.Message) error {
	d.tell(at.Thread, api.ChatEvent{Message: &m})
	return nil
}

func (d *fakeDaemon) Present(_ context.Context, to store.Address, s outbox.State) error {
	d.tell(to.Thread, api.ChatEvent{State: string(s)})
	return nil
}

func (d *fakeDaemon) tell(thread string, e api.ChatEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.State != "" {
		d.state[thread] = e.State
	}
	for ch := range d.follow[thread] {
		ch <- e
	}
}

func (d *fakeDaemon) routes() http.Handler {
	mux := http.NewServeMux()
	by := store.Caller{User: botstest.Requester, Name: "ann", Role: store.Admin, Surface: store.OnTerminal}
	handle := func(route string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(api.VersionHeader, api.Version)
			out, err := f(r)
			if err != nil {
				e, _ := api.FromError(err)
				w.WriteHeader(e.Status())
				out = api.Failure{Error: e}
			}
			json.NewEncoder(w).Encode(out)
		})
	}
	handle("GET /v1/status", func(*http.Request) (any, error) {
		return api.Status{Model: d.model, Servers: []api.Health{{Name: "toolbox", State: "ready", ToolCount: 12}}}, nil
	})
	handle("POST /v1/chat/threads", func(r *http.Request) (any, error) {
		var req api.StartConversationRequest
		json.NewDecoder(r.Body).Decode(&req)
		id := store.NewID(time.Now())
		th := store.Thread{ID: id, User: by.User, Model: req.Model, Address: store.Address{Surface: store.OnTerminal, Thread: id}, Created: time.Now()}
		return th, d.db.PutThread(r.Context(), by, th)
	})
	handle("GET /v1/chat/threads/{id}", func(r *http.Request) (any, error) { return d.view(r.Context(), r.PathValue("id")) })
	handle("POST /v1/chat/threads/{id}/messages", func(r *http.Request) (any, error) {
		var m api.SendMessageRequest
		json.NewDecoder(r.Body).Decode(&m)
		d.mu.Lock()
		refused := d.refused
		d.mu.Unlock()
		if refused != nil {
			if err := refused(m.Text); err != nil {
				return nil, err
			}
		}
		_, err := d.conversation.Message(r.Context(), store.Inbound{Key: m.Key, Thread: r.PathValue("id"), By: by, Text: m.Text})
		return api.Empty{}, err
	})
	handle("POST /v1/chat/threads/{id}/stop", func(r *http.Request) (any, error) {
		return api.Empty{}, d.conversation.Stop(r.Context(), by, r.PathValue("id"))
	})
	handle("POST /v1/approvals/{id}", func(r *http.Request) (any, error) {
		var a api.DecideCallRequest
		json.NewDecoder(r.Body).Decode(&a)
		return d.decide(r.Context(), by, r.PathValue("id"), a)
	})
	handle("GET /v1/models", func(*http.Request) (any, error) {
		return api.List[api.ModelView]{Items: []api.ModelView{{ModelName: store.ModelName{Name: "smart", Target: "openai/x"}, Available: true}}}, nil
	})
	mux.HandleFunc("GET /v1/chat/threads/{id}/events", d.events)
	return mux
}

func (d *fakeDaemon) view(ctx context.Context, id string) (any, error) {
	th, err := d.db.GetThread(ctx, id)
	if err != nil {
		return nil, err
	}
	turns, err := d.db.Turns(ctx, id)
	if err != nil {
		return nil, err
	}
	calls, err := d.db.ListCalls(ctx, store.CallQuery{Waiting: true, Thread: id})
	view := api.ThreadView{Thread: th, Turns: turns}
	for _, c := range calls {
		card, err := d.gateway.Card(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		view.Cards = append(view.Cards, card)
	}
	return view, err
}

func (d *fakeDaemon) decide(ctx context.Context, by store.Caller, id string, a api.DecideCallRequest) (any, error) {
	if d.pressed != nil {
		if err := d.pressed(); err != nil {
			return nil, err
		}
		return d.db.GetCall(ctx, id)
	}
	_, err := d.conversation.Press(ctx, by, id, store.Decision{Verb: a.Verb, Digest: a.Digest, Args: a.Args, Always: a.Always, For: a.For, Exact: a.Exact, Until: a.Until, Reason: store.Plain(a.Reason)})
	if err != nil {
		return nil, err
	}
	return d.db.GetCall(ctx, id)
}

func (d *fakeDaemon) events(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if r.Context().Err() != nil {
		return // it is stopping: who dials again reaches the next one
	}
	ch := make(chan api.ChatEvent, 4096)
	d.mu.Lock()
	if d.follow[id] == nil {
		d.follow[id] = map[chan api.ChatEvent]bool{}
	}
	d.follow[id][ch] = true
	state := d.state[id]
	if state == "" {
		state = api.ChatIdle
	}
	ch <- api.ChatEvent{State: state} // the first, whatever happens
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.follow[id], ch)
	}()
	w.Header().Set(api.VersionHeader, api.Version)
	for {
		select {
		case e := <-ch:
			if json.NewEncoder(w).Encode(e) != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
