package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/mcp/mcptest"
	"nize/store"
)

// The torture of the real programs: nized, with a server of tools over HTTP and
// nize-toolbox as a child, under the load of MCP clients, of the command line
// and of people in Slack, is killed at random moments and at exact points of its
// requests to Slack, with a full disk now and then, and damaged copies of its
// database are opened. After each kill it is looked whether what was
// acknowledged is there, nothing ran twice and nothing was said twice. It is no
// part of a plain test run: `make torture` does it.
var (
	tortureKills = flag.Int("kills", 0, "how often TestTorture kills nized")
	tortureTime  = flag.Duration("torture", time.Hour, "when TestTorture stops killing at the latest")
	tortureSeed  = flag.Uint64("seed", 0, "of TestTorture; 0 is a new one")
	tortureNized = flag.String("nized", "", "the nized that TestTorture tortures; one is built otherwise")
)

// torture is one run.
type torture struct {
	*scene
	random *rand.Rand
	gate   *gate
	first  int    // exact point
	full   string // the file system that can be filled, "" where there is none
	began  time.Time

	acked struct {
		sync.Mutex
		calls, groups []string // not yet looked for
		n, unknown    int      // calls that were answered, and that were not
		groupCount    int
	}
	runMu sync.Mutex
	runs  map[string]int // of tools, by key

	asked   []*question // that may still change
	over    []*question
	channel string
	kills   map[string]int
	disks   int // times that the disk was full
	damaged int // damaged copies that were opened
	mu      sync.Mutex
	wrong   []string
}

// question is a message of a person's to nize, and the answer that it gets.
type question struct {
	root    slacktest.Message
	want    string
	deaths  []string  // how nized died while it was open
	shownAt time.Time // since when it is answered, in whatever way
}

// violation notes what must not be.
func (s *torture) violation(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if !slices.Contains(s.wrong, line) {
		s.wrong = append(s.wrong, line)
		s.t.Errorf("after %s: %s", time.Since(s.began).Round(time.Second), line)
	}
}

// The ways in which nized dies in a request to Slack.
var manners = []string{
	"lost",     // before Slack has it
	"taken",    // Slack has done it, nobody learned of it
	"answered", // with the answer on its way
	"late",     // Slack does it when the next nized runs already
}

// The requests in which it dies, and how many of them pass before. Half of the
// times only the connection is cut, and it dies later.
var methods = []string{
	"chat.startStream", "chat.appendStream", "chat.stopStream", "chat.postMessage", "chat.update", "agents.sessions.setStatus",
}

const mostPassed = 3

// point is an exact point: the nth of them all.
func point(n int) (method, manner string, skip int, cut bool) {
	method, n = methods[n%len(methods)], n/len(methods)
	manner, n = manners[n%len(manners)], n/len(manners)
	skip, n = n%mostPassed, n/mostPassed
	if manner == "late" && strings.HasPrefix(method, "agents.") {
		manner = "taken" // the last state is the one that came last
	}
	return method, manner, skip, n%2 == 1
}

// gate stands before the fake of Slack and kills at a request.
type gate struct {
	next http.Handler
	kill func()
	shut atomic.Bool // nobody reaches Slack

	mu     sync.Mutex // guards what follows
	method string     // that it waits for
	manner string
	skip   int           // requests that pass before
	cut    bool          // it cuts the connection and kills nobody
	late   time.Duration // of that manner
	hit    chan struct{} // closed when it killed
}

// arm makes the gate wait for a request.
func (g *gate) arm(method, manner string, skip int, cut bool, late time.Duration) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.method, g.manner, g.skip, g.cut, g.late, g.hit = method, manner, skip, cut, late, make(chan struct{})
	return g.hit
}

func (g *gate) disarm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.method = ""
}

// is says whether this is the request that it waits for.
func (g *gate) is(path string) (manner string, late time.Duration, cut bool, hit chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.method == "" || path != "/api/"+g.method {
		return "", 0, false, nil
	}
	if g.skip--; g.skip >= 0 {
		return "", 0, false, nil
	}
	g.method = ""
	return g.manner, g.late, g.cut, g.hit
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.shut.Load() {
		http.Error(w, "shut", http.StatusServiceUnavailable)
		return
	}
	manner, late, cut, hit := g.is(r.URL.Path)
	if hit == nil {
		g.next.ServeHTTP(w, r)
		return
	}
	defer close(hit)
	kill := g.kill
	if cut {
		kill = func() { panic(http.ErrAbortHandler) }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	whole := r.Clone(context.WithoutCancel(r.Context()))
	whole.Body = io.NopCloser(bytes.NewReader(body))
	answer := &discarded{header: http.Header{}}
	switch manner {
	case "lost":
		kill()
	case "taken":
		g.next.ServeHTTP(answer, whole)
		kill()
	case "answered":
		g.next.ServeHTTP(w, whole)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		kill()
	case "late":
		time.AfterFunc(late, func() { g.next.ServeHTTP(answer, whole) })
		kill()
	}
}

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(int)             {}
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }

func TestTorture(t *testing.T) {
	if *tortureKills == 0 {
		t.Skip("make torture")
	}
	seed := *tortureSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s := &torture{
		scene: &scene{fixture: &fixture{says: newSpeaker(t)}}, random: rand.New(rand.NewPCG(seed, 1)), began: time.Now(),
		runs: map[string]int{}, kills: map[string]int{},
	}
	t.Logf("seed %d", seed)
	s.first = s.random.IntN(len(methods) * len(manners) * mostPassed * 2)
	s.open(t)
	s.began = time.Now() // what it takes to build and start nized is no torture
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { s.callByMCP(ctx) })
	load.Go(func() { s.callByControl(ctx) })
	load.Go(func() { s.addGroups(ctx) })
	defer load.Wait()
	defer s.kill() // or a client that waits holds up the end
	defer stop()

	for n := 0; n < *tortureKills && time.Since(s.began) < *tortureTime; n++ {
		s.round(n)
	}
	stop()
	load.Wait()
	s.settle(0)
	s.check(true)
	s.report()
}

// open starts everything.
func (s *torture) open(t *testing.T) {
	ran := func(prefix string) func(context.Context, json.RawMessage) json.RawMessage {
		return func(_ context.Context, args json.RawMessage) json.RawMessage {
			var in struct{ Text string }
			_ = json.Unmarshal(args, &in) // a text that lacks is one that nobody asked for
			s.runMu.Lock()
			defer s.runMu.Unlock()
			if s.runs[prefix+in.Text]++; s.runs[prefix+in.Text] > 1 {
				s.violation("%s%s ran %d times", prefix, in.Text, s.runs[prefix+in.Text])
			}
			return json.RawMessage(`{"content":[{"type":"text","text":"noted"}]}`)
		}
	}
	tool := mcptest.Tool{Name: "note", Description: "Write a note down.", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}
	s.killable = &killable{t: t, path: *tortureNized, dir: s.dataDir(t)}
	if s.path == "" {
		s.path = nized.build(t)
	}
	s.start()
	for name, approval := range map[string]store.Approval{"box": store.ApproveNever, "desk": store.ApproveAlways} {
		tool := tool
		tool.Do = ran(name + " ")
		up := mcptest.New(t, mcptest.Options{Name: name, Tools: []mcptest.Tool{tool}})
		if _, err := api.AddServer.Call(t.Context(), s.Client, api.AddServerRequest{Server: store.Server{Name: name, URL: up.HTTP(), Visibility: []string{"all"}, Approval: approval}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := api.AddServer.Call(t.Context(), s.Client, api.AddServerRequest{Server: store.Server{Name: "toolbox", Command: toolbox(t), Args: []string{"--notes", t.TempDir()}, Visibility: []string{"all"}, Approval: store.ApproveNever}}); err != nil {
		t.Fatal(err)
	}
	s.says.use(t, s.Client)
	// Slack sends again what was not acknowledged, for as long as it takes.
	again := slices.Repeat([]time.Duration{time.Second}, 300)
	s.fake = slacktest.New(slacktest.Options{Unlimited: true, Patience: 3 * time.Second, RetryAfter: again})
	s.gate = &gate{next: s.fake.Handler(), kill: s.die}
	if err := s.fake.StartWith(nil, s.gate); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.fake.Close)
	(&slackChat{t: t, Server: s.fake}).connect(s.killable)
	for key, value := range map[string]string{"limits.user.messages": "0", "limits.user.turns": "0", "budgets.user.daily": "0"} {
		if _, err := api.PutSetting.Call(t.Context(), s.Client, api.PutSettingRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
}

// dataDir is on a file system that can be full, where this system lets us.
func (s *torture) dataDir(t *testing.T) string {
	size := "64m"
	if *tortureKills > 200 {
		size = "512m"
	}
	dir, err := mountSmall(t, size)
	if err == nil {
		s.full = dir
		return dir
	}
	t.Logf("left out: a full disk, since this system lets nobody mount a small file system: %v", err)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fillDisk lets nized work on a full disk for a moment: what only reads works.
func (s *torture) fillDisk() {
	if s.full == "" {
		return
	}
	s.disks++
	free := fill(s.t, s.full)
	defer free()
	ctx := s.t.Context()
	s.until("calls are refused", func() bool {
		_, err := api.CallTool.Call(ctx, s.Client, api.CallToolRequest{ID: "box:note", Args: json.RawMessage(`{"text":"` + strings.Repeat("x", 100<<10) + store.NewID(time.Now()) + `"}`)})
		return err != nil
	})
	for _, err := range api.ReadAudit.Call(ctx, s.Client, api.AuditRequest{Limit: 10}) {
		if err != nil {
			s.violation("reading the audit trail on a full disk: %v", err)
		}
	}
	if _, err := api.GetStatus.Call(ctx, s.Client, api.Empty{}); err != nil {
		s.violation("the status on a full disk: %v", err)
	}
}

// openDamaged opens a copy of the database that is damaged somewhere: nized
// serves it or says what is wrong, within a while.
func (s *torture) openDamaged() {
	s.damaged++
	s.gate.shut.Store(true) // or the copy answers people, too
	defer s.gate.shut.Store(false)
	dir := s.t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "nize*")) // not the socket
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600) != nil {
			s.t.Fatal("no room for a copy")
		}
	}
	path := filepath.Join(dir, "nize.db")
	content, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	from := s.random.IntN(len(content))
	for i := from; i < min(from+1<<s.random.IntN(17), len(content)); i++ {
		content[i] = byte(s.random.IntN(256))
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, s.path, "--data-dir", dir, "--listen", "127.0.0.1:0", "--socket", filepath.Join(dir, "s"), "--log-level", "error")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	c := api.New(filepath.Join(dir, "s"))
	defer c.Close()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if out := said.String(); ctx.Err() != nil || out == "" || strings.Contains(out, "goroutine ") {
				s.violation("with %d bytes from %d damaged nized ended with %q, %v", len(content), from, out, ctx.Err())
			}
			return
		case <-tick.C:
			if _, err := api.GetStatus.Call(ctx, c, api.Empty{}); err == nil {
				cancel()
				<-ended
				return
			}
		}
	}
}

// die kills nized, from any goroutine; kill waits for its end.
func (s *torture) die() { _ = s.cmd.Process.Kill() }

// round is one life of nized, and its death.
func (s *torture) round(n int) {
	if s.random.IntN(3) == 0 {
		s.fake.Fail([]string{"chat.startStream", "chat.appendStream", "chat.stopStream", "chat.postMessage", "chat.update", "agents.sessions.setStatus"}[s.random.IntN(6)],
			[]slacktest.Fault{{Hang: true}, {Status: http.StatusBadGateway, After: true}, {Status: http.StatusInternalServerError, Times: 2}, {Delay: 300 * time.Millisecond, Times: 3}}[s.random.IntN(4)])
	}
	if n%30 == 7 { // an odd one: no request kills it meanwhile
		s.fillDisk()
	}
	manner, hit, slow := "at random", (<-chan struct{})(nil), false
	limit := time.Duration(20+s.random.IntN(900)) * time.Millisecond
	if n%2 == 0 {
		method, how, skip, cut := point(s.first + n/2)
		manner, limit = method+" "+how, 3*time.Second
		if slow = method == "chat.appendStream"; slow {
			limit = 2 * slowTime
		}
		if cut {
			manner += ", cut"
		}
		hit = s.gate.arm(method, how, skip, cut, time.Duration(s.random.IntN(5000))*time.Millisecond)
	}
	for i := range 1 + s.random.IntN(3) {
		s.ask(n, i, slow && i == 0)
	}
	life := time.NewTimer(limit)
	defer life.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for alive := true; alive; {
		select {
		case <-hit:
			if alive = strings.HasSuffix(manner, "cut"); alive {
				hit = nil
				life.Reset(time.Duration(s.random.IntN(2000)) * time.Millisecond) // and then it dies all the same
			}
		case <-life.C:
			if hit != nil {
				manner = "at random" // no such request came
			}
			alive = false
		case <-tick.C:
			s.press()
		}
	}
	s.gate.disarm()
	s.kills[manner]++
	for _, q := range s.asked {
		q.deaths = append(q.deaths, manner)
	}
	opened := s.fake.Stats().Opened
	s.kill()
	s.fake.Mend()
	if n%50 == 11 {
		s.openDamaged()
	}
	s.start()
	s.until("the bot is back", func() bool { st := s.fake.Stats(); return st.Opened > opened && st.Links >= 1 })
	s.check(false)
	s.settle(24)
}

// slowTime is how long a slow answer takes: so long that a stream gets as many
// pieces, one in 700 ms, as may pass, and one more.
const slowTime = 4 * time.Second

// ask lets somebody say something to nize, which is answered slowly or as it comes.
func (s *torture) ask(n, i int, slow bool) {
	if len(s.asked)+len(s.over) == 0 || (len(s.asked)+len(s.over))%200 == 0 { // the fake reads a channel from its beginning
		s.channel = fmt.Sprintf("C%08d", n)
		s.fake.AddChannel(slacktest.Channel{ID: s.channel, Name: "torture-" + fmt.Sprint(n), Members: []string{slacktest.Ann, slacktest.Ben, slacktest.Bot}})
	}
	word := fmt.Sprintf("r%dx%d", n, i)
	q := &question{want: "You said " + word + "."}
	user := []string{slacktest.Ann, slacktest.Ben}[s.random.IntN(2)]
	private := false
	kind := s.random.IntN(6)
	if slow {
		kind = -1
	}
	switch kind {
	case -1:
		said := strings.SplitAfter("You said "+word+" and it takes me a while to say so.", " ")
		q.want = strings.Join(said, "")
		s.says.plan(word, plan{say: said, slow: slowTime / time.Duration(len(said))})
	case 0:
		q.want = strings.TrimSpace(strings.Repeat("All work and no play makes "+word+" a dull boy.\n", 400)) // two messages
		s.says.plan(word, plan{say: []string{q.want[:len(q.want)/2], q.want[len(q.want)/2:]}})
	case 1, 2:
		q.want = "That was " + word + "."
		s.says.plan(word, plan{tool: "desk:note", args: `{"text":"` + word + `"}`})
	case 3:
		private = true
		fallthrough
	default:
		s.says.plan(word, plan{say: []string{"You ", "said ", word + "."}})
	}
	var err error
	if private {
		q.root, err = s.fake.DM(user, "#"+word)
	} else {
		q.root, err = s.fake.Mention(user, s.channel, "#"+word)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.asked = append(s.asked, q)
}

var cardID = regexp.MustCompile(`\ncall: (\S+)`)

// press approves the cards that wait.
func (s *torture) press() {
	for _, q := range s.asked {
		for _, m := range s.fake.Thread(q.root.Channel, q.root.Root()) {
			if id := cardID.FindStringSubmatch(m.Text); id != nil && strings.Contains(m.Text, "\nstate: waiting") {
				_ = s.fake.Press(s.t.Context(), q.root.User, m, "call-run") // it is pressed again if nobody heard it
			}
		}
	}
}

// says is what a thread shows of an answer, and how often each card stands there.
func (s *torture) shown(q *question) (texts []string, cards map[string]int) {
	cards = map[string]int{}
	for _, m := range s.fake.Thread(q.root.Channel, q.root.Root()) {
		switch id := cardID.FindStringSubmatch(m.Text); {
		case m.User != slacktest.Bot:
		case id != nil:
			cards[id[1]]++
		case !strings.Contains(string(m.Blocks), `"context"`) && !strings.HasPrefix(m.Text, "Welcome! "):
			texts = append(texts, m.Text)
		}
	}
	return texts, cards
}

// settleTime is how long an answer may take to stand there once. A busy machine
// needs some of it; only an answer that stays twice needs all of it.
const settleTime = 2 * time.Minute

// settle waits until no more than so many questions are open.
func (s *torture) settle(left int) {
	defer func() {
		for _, q := range s.asked {
			if texts, _ := s.shown(q); s.t.Failed() {
				s.t.Logf("open: %q: %.300q, session %+v; nized died %s", q.root.Text, texts, s.fake.Session(q.root.Channel, q.root.Root()).Statuses, q.deaths)
			}
		}
	}()
	s.until(fmt.Sprintf("no more than %d of %d questions are open", left, len(s.asked)), func() bool {
		s.press()
		s.asked = slices.DeleteFunc(s.asked, func(q *question) bool {
			texts, _ := s.shown(q)
			if s.fake.Session(q.root.Channel, q.root.Root()).Status != "active" || !strings.Contains(strings.Join(texts, ""), q.want) {
				q.shownAt = time.Time{}
				return false
			}
			if q.shownAt.IsZero() {
				q.shownAt = time.Now()
			}
			// What is too much is taken away yet, or stays.
			if strings.TrimSpace(strings.Join(texts, "")) != q.want && time.Since(q.shownAt) < settleTime {
				return false
			}
			s.over = append(s.over, q)
			return true
		})
		return len(s.asked) <= left
	})
}

// check looks whether what was acknowledged is there, and the trail whole.
func (s *torture) check(whole bool) {
	ctx := s.t.Context()
	s.acked.Lock()
	calls, groups := s.acked.calls, s.acked.groups
	s.acked.calls = nil
	s.acked.Unlock()
	for _, id := range calls {
		if c, err := api.GetCall.Call(ctx, s.Client, api.CallRequest{ID: id, Reason: "the test looks"}); err != nil || c.State != store.Done {
			s.violation("call %s was answered, and is %q, %v", id, c.State, err)
		}
	}
	list, err := api.ListGroups.Call(ctx, s.Client, api.Empty{})
	if err != nil {
		s.violation("listing groups: %v", err)
	}
	have := map[string]bool{}
	for _, g := range list.Items {
		have[g.Name] = true
	}
	for _, g := range groups {
		if !have[g] {
			s.violation("group %s was acknowledged, and is not there", g)
		}
	}
	if v, err := api.CheckAudit(ctx, s.Client, api.VerifyAuditRequest{SinceCheckpoint: !whole}, nil); err != nil || !v.OK {
		s.violation("audit %+v, %v", v, err)
	}
	if !whole {
		return
	}
	for _, q := range slices.Concat(s.over, s.asked) {
		texts, cards := s.shown(q)
		if strings.TrimSpace(strings.Join(texts, "")) != q.want {
			s.violation("%q is answered by %d messages, want %.30q once: %.60q; nized died %s", q.root.Text, len(texts), q.want, texts, q.deaths)
		}
		for id, n := range cards {
			if n > 1 {
				s.violation("%d cards of call %s; nized died %s", n, id, q.deaths)
			}
		}
	}
}

// every does something about so often until ctx ends.
func every(ctx context.Context, d time.Duration, do func(n int)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		do(n)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// callByControl calls as the command line does.
func (s *torture) callByControl(ctx context.Context) {
	c := api.New(filepath.Join(s.dir, "s"))
	defer c.Close()
	every(ctx, 30*time.Millisecond, func(n int) {
		call, err := api.CallTool.Call(ctx, c, api.CallToolRequest{ID: "box:note", Args: json.RawMessage(fmt.Sprintf(`{"text":"c%d"}`, n))})
		s.tell(call.ID, err == nil && call.State == store.Done, fmt.Sprintf("box c%d", n))
	})
}

// tell notes how a call came back.
func (s *torture) tell(id string, done bool, key string) {
	s.acked.Lock()
	defer s.acked.Unlock()
	if !done {
		s.acked.unknown++
		return
	}
	s.acked.n++
	if id != "" {
		s.acked.calls = append(s.acked.calls, id)
	}
	s.runMu.Lock()
	defer s.runMu.Unlock()
	if s.runs[key] != 1 {
		s.violation("%s was answered, and ran %d times", key, s.runs[key])
	}
}

// callByMCP calls as an MCP client does, with a token.
func (s *torture) callByMCP(ctx context.Context) {
	c := api.New(filepath.Join(s.dir, "s"))
	defer c.Close()
	made, err := api.CreateToken.Call(ctx, c, api.CreateTokenRequest{Name: "torture"})
	if err != nil {
		if ctx.Err() == nil {
			s.violation("making a token: %v", err)
		}
		return
	}
	k := &killable{Client: c, t: s.t}
	every(ctx, 30*time.Millisecond, func(n int) {
		if n%5 == 0 {
			k.execute(made.Secret.Reveal(), "toolbox:current_time", `{"place":"Tokyo"}`)
			return
		}
		got := k.execute(made.Secret.Reveal(), "box:note", fmt.Sprintf(`{"text":"m%d"}`, n))
		s.tell("", strings.Contains(got, "noted"), fmt.Sprintf("box m%d", n))
	})
}

// addGroups changes the configuration.
func (s *torture) addGroups(ctx context.Context) {
	c := api.New(filepath.Join(s.dir, "s"))
	defer c.Close()
	every(ctx, 250*time.Millisecond, func(n int) {
		name := fmt.Sprintf("g%d", n)
		if _, err := api.AddGroup.Call(ctx, c, api.AddGroupRequest{Name: name}); err == nil {
			s.acked.Lock()
			s.acked.groups = append(s.acked.groups, name)
			s.acked.Unlock()
		}
	})
}

// report says what was done.
func (s *torture) report() {
	total := 0
	var by []string
	for manner, n := range s.kills {
		total += n
		by = append(by, fmt.Sprintf("%4d %s", n, manner))
	}
	slices.Sort(by)
	s.acked.Lock()
	defer s.acked.Unlock()
	fmt.Printf("torture: %s, %d kills\n  %s\n", time.Since(s.began).Round(time.Second), total, strings.Join(by, "\n  "))
	fmt.Printf("torture: the disk was full %d times, %d damaged databases were opened\n", s.disks, s.damaged)
	fmt.Printf("torture: %d calls answered, %d cut off, %d groups made; %d messages in Slack; %d violations\n",
		s.acked.n, s.acked.unknown, len(s.acked.groups), len(s.over)+len(s.asked), len(s.wrong))
}
