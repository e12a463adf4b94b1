// Command failover kills and stops the nized instances on one database, and the database,
// under load.
//
// The load is clients that use any of them. It verifies that everything acknowledged is
// stored and nothing ran twice. scripts/failover.sh starts it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/daemon/api"
	"nize/store"
)

const (
	nizeds   = 3
	every    = 20 * time.Second // interval of the kills
	stopped  = 15 * time.Second // how long one is stopped, every fourth time
	apart    = 4 * time.Second  // between the faults
	patience = 5 * time.Second  // a client's timeout before it uses the next nized
	aim      = 5 * time.Second  // the aim for a client's longest wait
	hangs    = 3 * every        // a client without a response over three faults has failed; less is only a figure, since a machine may be slow
	moved    = time.Minute      // a backup that is a whole interval late was missed
	health   = time.Second      // interval and timeout of a balancer's health checks
	restarts = 2                // of the database
)

func main() {
	f := &failover{ran: map[string]int{}, http: http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	flag.DurationVar(&f.whole, "for", 10*time.Minute, "how long")
	flag.StringVar(&f.bin, "bin", "bin", "where nized and nize-toolbox are")
	flag.StringVar(&f.old, "old", "", "where those of an older build are, for the first and the third")
	flag.StringVar(&f.dir, "dir", "", "of the nized's data")
	flag.StringVar(&f.restart, "restart", "", "program that restarts the database")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

type failover struct {
	whole        time.Duration
	bin, old     string
	dir, restart string

	http       http.Client // each request has its own deadline
	list       []*nized
	token, key string
	acked      sync.Map // keys of calls with the response done
	decided    sync.Map // ids of calls with an acknowledged approval
	chats      chats

	mu    sync.Mutex // guards the fields below
	ran   map[string]int
	done  []trouble
	count map[string]int
}

// trouble is one fault, and the longest time that a client had no response afterwards.
type trouble struct {
	what, who string
	to        *nized // or nil
	at, until time.Time
	gap       time.Duration
}

// nized is one instance, which its supervisor restarts.
type nized struct {
	bin, dir, addr string
	api            *api.Client
	starts         atomic.Int64
	mu             sync.Mutex
	process        *os.Process
	ready          bool // according to /readyz
}

func (n *nized) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil {
		_ = n.process.Signal(s) // it may have ended
	}
}

// look checks whether it is ready, as a balancer does.
func (f *failover) look(ctx context.Context, n *nized) {
	for ctx.Err() == nil {
		one, end := context.WithTimeout(ctx, health)
		r, err := http.NewRequestWithContext(one, http.MethodGet, "http://"+n.addr+"/readyz", nil)
		if err != nil {
			panic(err)
		}
		resp, err := f.http.Do(r)
		if err == nil {
			_ = resp.Body.Close() // only the status matters
		}
		end()
		n.mu.Lock()
		n.ready = err == nil && resp.StatusCode == http.StatusOK
		n.mu.Unlock()
		pause(ctx, health)
	}
}

func (n *nized) isReady() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ready
}

// supervise keeps one running until ctx ends.
func (f *failover) supervise(ctx context.Context, n *nized, log io.Writer) {
	for ctx.Err() == nil {
		c := exec.Command(filepath.Join(n.bin, "nized"), "--data-dir", n.dir, "--listen", n.addr, "--log-format", "json")
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "NIZE_DATABASE=" + os.Getenv("NIZE_DATABASE"), "NIZE_PUBLIC_URL=https://" + public}
		c.Stderr = log
		if err := c.Start(); err != nil {
			panic(err)
		}
		n.mu.Lock()
		n.process = c.Process
		n.starts.Add(1)
		n.mu.Unlock()
		ended := context.AfterFunc(ctx, func() { n.signal(syscall.SIGCONT); n.signal(syscall.SIGTERM) })
		_ = c.Wait() // however it ended
		ended()
		pause(ctx, 300*time.Millisecond)
	}
}

// active returns the active node; nil if none responds.
func (f *failover) active(ctx context.Context) *nized {
	for _, n := range f.list {
		ask, end := context.WithTimeout(ctx, 2*time.Second)
		_, err := api.GetStatus.Call(ask, n.api, api.Empty{})
		end()
		if err == nil {
			return n
		}
	}
	return nil
}

func (f *failover) await(ctx context.Context) (*nized, error) {
	for begun := time.Now(); time.Since(begun) < time.Minute && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if n := f.active(ctx); n != nil {
			return n, nil
		}
	}
	return nil, errors.New("none of them works within a minute")
}

func (f *failover) run(ctx context.Context) error {
	f.done, f.count = []trouble{{what: "nothing"}}, map[string]int{}
	logs, err := os.Create(filepath.Join(f.dir, "log"))
	if err != nil {
		return err
	}
	defer logs.Close()
	up, err := f.serveLedger()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for i := range nizeds {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", i+1)) // an address on which no outgoing connection takes its port while it is down
		if err != nil {
			return err
		}
		n := &nized{bin: f.bin, dir: filepath.Join(f.dir, fmt.Sprint(i)), addr: ln.Addr().String()}
		_ = ln.Close()
		if f.old != "" && i != 1 { // the older one creates the database
			n.bin = f.old
		}
		n.api = api.New(api.SocketIn(n.dir))
		f.list = append(f.list, n)
		if err := os.Mkdir(n.dir, 0o700); err != nil {
			return err
		}
		if i > 0 {
			key, err := os.ReadFile(filepath.Join(f.list[0].dir, "nize.key"))
			if err == nil {
				err = os.WriteFile(filepath.Join(n.dir, "nize.key"), key, 0o600)
			}
			if err != nil {
				return err
			}
		}
		all.Go(func() { f.supervise(running, n, logs) })
		all.Go(func() { f.look(running, n) })
		if i == 0 {
			if _, err := f.await(ctx); err != nil {
				return err
			}
		}
	}
	if err := f.set(ctx, f.list[0].api, up); err != nil {
		return err
	}
	load, rest := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for i, version := range []string{"2025-11-25", "2026-07-28"} {
		clients.Go(func() { f.call(load, version+" reads", version, "look", i) })
		clients.Go(func() { f.call(load, version+" changes", version, "note", i+1) })
	}
	clients.Go(func() { f.desk(load) })
	clients.Go(func() { f.decide(load) })
	clients.Go(func() { f.rounds(load) })
	clients.Go(func() { f.page(ctx, load) })
	clients.Go(func() { f.program(ctx, load) })
	f.harm(ctx)
	for _, n := range f.list {
		n.signal(syscall.SIGCONT)
	}
	_, err = f.await(ctx)
	time.Sleep(2 * patience) // so that every client gets one more response
	rest()
	clients.Wait()
	if err == nil {
		err = f.check(ctx)
	}
	return err
}

// harm kills one of them each time, and sometimes also stops one, or the database.
func (f *failover) harm(ctx context.Context) {
	begun, restarted := time.Now(), 0
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if time.Since(begun) > f.whole {
			return
		}
		active := f.active(ctx)
		if active == nil {
			continue
		}
		victim, who := active, "the active one"
		if rand.IntN(4) == 0 {
			for victim == active {
				victim = f.list[rand.IntN(len(f.list))]
			}
			who = "a standby"
		}
		f.did(who+" killed", victim)
		victim.signal(syscall.SIGKILL)
		if n%4 == 0 {
			pause(ctx, apart)
			if active = f.active(ctx); active != nil {
				f.did("the active one stopped for 15 s", active)
				active.signal(syscall.SIGSTOP)
				time.AfterFunc(stopped, func() { active.signal(syscall.SIGCONT) })
			}
		} else if f.old == "" && restarted < restarts && time.Since(begun) > time.Duration(restarted+1)*f.whole/(restarts+2) {
			restarted++
			pause(ctx, apart)
			f.did("the database restarted", nil)
			if out, err := exec.Command(f.restart).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "restarting the database: %v\n%s", err, out)
			}
		}
	}
}

// did records a fault, and its nized.
func (f *failover) did(what string, to *nized) {
	f.add(what, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, trouble{what: what, to: to, at: time.Now()})
}

func (f *failover) add(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[what] += n
}

// answered records that a client got a response, and how long it waited.
func (f *failover) answered(who string, since time.Time) time.Time {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[who]++
	if t := &f.done[len(f.done)-1]; now.Sub(since) > t.gap {
		t.who, t.until, t.gap = who, now, now.Sub(since)
	}
	return now
}

// serveLedger serves the tools, and counts their runs.
func (f *failover) serveLedger() (string, error) {
	s := sdk.NewServer(&sdk.Implementation{Name: "ledger", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	do := func(_ context.Context, _ *sdk.CallToolRequest, args in) (*sdk.CallToolResult, any, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ran[args.Text]++
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "did " + args.Text}}}, nil, nil
	}
	sdk.AddTool(s, &sdk.Tool{Name: "note", Description: "Writes a note down."}, do)
	sdk.AddTool(s, &sdk.Tool{Name: "look", Description: "Looks at a note.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *sdk.CallToolRequest, args in) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "did " + args.Text}}}, nil, nil
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(ln, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)) // until the end
	return "http://" + ln.Addr().String() + "/mcp", nil
}

// set configures the first one.
func (f *failover) set(ctx context.Context, c *api.Client, up string) error {
	if _, err := api.AddProject.Call(ctx, c, api.AddProjectRequest{Name: "load"}); err != nil {
		return err
	}
	everybody := []string{"all", "project:load"}
	for _, s := range []store.Server{
		{Name: "ledger", URL: up, Visibility: everybody, Approval: store.ApproveNever},
		{Name: "desk", URL: up, Visibility: everybody, Approval: store.ApproveAlways},
		{Name: "books", URL: up, Visibility: everybody, Approval: store.ApproveAlways},
		{Name: "toolbox", Command: filepath.Join(f.bin, "nize-toolbox"), Visibility: everybody, Approval: store.ApproveAlways},
	} {
		if _, err := api.AddServer.Call(ctx, c, api.AddServerRequest{Server: s}); err != nil {
			return err
		}
	}
	token, err := api.CreateToken.Call(ctx, c, api.CreateTokenRequest{Name: "load"})
	if err != nil {
		return err
	}
	key, err := api.CreateProjectKey.Call(ctx, c, api.CreateProjectKeyRequest{Project: "load"})
	if err != nil {
		return err
	}
	if _, err := api.PutSetting.Call(ctx, c, api.PutSettingRequest{Key: "backup.schedule", Value: "* * * * *"}); err != nil {
		return err
	}
	f.token, f.key = token.Secret.Reveal(), key.Secret.Reveal()
	return f.signIn(ctx, c)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// check verifies the final state.
func (f *failover) check(ctx context.Context) error {
	n, err := f.await(ctx)
	if err != nil {
		return err
	}
	states, texts := map[string]store.State{}, map[string]store.State{} // by the call's ID and text
	lost := 0
	for _, tool := range []string{"ledger:note", "desk:note", "books:note"} {
		for e, err := range api.ReadAudit.Call(ctx, n.api, api.AuditRequest{Tool: tool, Limit: 1 << 20}) {
			if err != nil {
				return fmt.Errorf("reading the audit trail: %w", err)
			}
			if !e.Outcome.Final() { // includes approvals that came second
				continue
			}
			if states[e.Subject] = e.Outcome; e.Outcome == store.Lost {
				lost++
			}
			c, err := api.GetCall.Call(ctx, n.api, api.CallRequest{ID: e.Subject, Reason: "counting what ran"})
			if err != nil {
				return fmt.Errorf("reading call %s: %w", e.Subject, err)
			}
			var in struct{ Text string }
			_ = json.Unmarshal(c.Args, &in) // a call without one is not ours
			texts[in.Text] = e.Outcome
		}
	}
	var wrong []string
	f.mu.Lock()
	defer f.mu.Unlock()
	acked := 0
	f.acked.Range(func(key, _ any) bool {
		acked++
		if texts[key.(string)] != store.Done {
			wrong = append(wrong, fmt.Sprintf("%s was answered, and is not in the audit trail as done", key))
		}
		if f.ran[key.(string)] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s was answered, and ran %d times", key, f.ran[key.(string)]))
		}
		return true
	})
	for key, times := range f.ran {
		if times > 1 {
			wrong = append(wrong, fmt.Sprintf("%s ran %d times", key, times))
		}
	}
	f.decided.Range(func(id, _ any) bool {
		if s := states[id.(string)]; s != store.Done && s != store.Lost && s != store.Failed {
			wrong = append(wrong, fmt.Sprintf("a yes on %s was acknowledged, and it is %q", id, s))
		}
		return true
	})
	more, err := f.chats.check(ctx, n.api, f.ran, texts)
	if err != nil {
		return err
	}
	wrong = append(wrong, more...)
	if more, err = f.scheduled(ctx, n.api); err != nil {
		return err
	}
	wrong = append(wrong, more...)
	if v, err := api.CheckAudit(ctx, n.api, api.VerifyAuditRequest{}, nil); err != nil || !v.OK {
		wrong = append(wrong, fmt.Sprintf("the audit trail failed verification: %+v, %v", v, err))
	} else {
		fmt.Printf("the audit trail holds: %d events\n", v.Events)
	}
	worst := map[string]trouble{}
	for _, t := range f.done {
		if t.gap > worst[t.what].gap {
			worst[t.what] = t
		}
	}
	for _, what := range sorted(worst) {
		t := worst[what]
		fmt.Printf("%8.1f s without an answer at most after %s: %s (%.0f s aimed)\n", t.gap.Seconds(), what, t.who, aim.Seconds())
		if t.gap > hangs {
			wrong = append(wrong, fmt.Sprintf("after %s at %s a client had no answer until %s: %s", what, t.at.UTC().Format(time.TimeOnly), t.until.UTC().Format(time.TimeOnly), t.who))
		}
	}
	for _, name := range sorted(f.count) {
		fmt.Printf("%8d %s\n", f.count[name], name)
	}
	fmt.Printf("%8d changes ran, %d were acknowledged, %d told as lost\n", len(f.ran), acked, lost)
	if len(wrong) > 0 {
		for _, t := range f.done[1:] {
			where := ""
			if t.to != nil {
				where = ": nized " + f.which(t.to.addr)
			}
			fmt.Fprintln(os.Stderr, t.at.UTC().Format("15:04:05.000"), t.what+where)
		}
		var b bytes.Buffer
		for _, line := range wrong[:min(len(wrong), 20)] {
			fmt.Fprintln(&b, line)
		}
		return fmt.Errorf("%d things are wrong:\n%s", len(wrong), b.String())
	}
	return nil
}

// scheduled verifies that, from the first backup on, one was made for each minute, soon
// after it or after the fault at that time; older programs record none. The caller holds
// f.mu.
func (f *failover) scheduled(ctx context.Context, c *api.Client) (wrong []string, err error) {
	made, latest, first := map[int64]int{}, time.Duration(0), time.Time{}
	for e, err := range api.ReadAudit.Call(ctx, c, api.AuditRequest{Kind: "database.backup", Limit: 1 << 20}) {
		if err != nil {
			return nil, fmt.Errorf("reading the audit trail: %w", err)
		}
		due := e.At.Truncate(time.Minute)
		if first.IsZero() || due.Before(first) {
			first = due
		}
		made[due.Unix()]++
		for _, t := range f.done {
			if t.at.After(due) && t.at.Before(e.At) {
				due = t.at
			}
		}
		latest = max(latest, e.At.Sub(due))
	}
	for due := first; len(made) > 0 && time.Since(due) > moved; due = due.Add(time.Minute) {
		if f.old == "" && made[due.Unix()] != 1 {
			wrong = append(wrong, fmt.Sprintf("%d backups were made that were due at %s", made[due.Unix()], due.Format(time.TimeOnly)))
		}
	}
	if f.old == "" && f.whole >= 3*time.Minute && len(made) == 0 {
		wrong = append(wrong, "no backup was made")
	}
	if latest > moved {
		wrong = append(wrong, fmt.Sprintf("a backup came %v late", latest))
	}
	fmt.Printf("%8d backups were made, the latest %.1f s after it was due or somebody was killed\n", len(made), latest.Seconds())
	return wrong, nil
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
