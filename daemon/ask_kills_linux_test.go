package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nize/daemon/api"
	"nize/store"
)

var askKills = flag.Int("asks", 40, "how many asks TestAsksSurviveKills makes")

// askers are coding agents whose hooks ask, a person who decides, and somebody who kills
// nized and the hooks. Each step has a key of its own, which is in its command.
type askers struct {
	t       *testing.T
	socket  string
	nizectl string
	n       int // steps
	next    atomic.Int64
	done    atomic.Int64 // steps with an answer
	hooks   atomic.Int64 // that were killed

	mu      sync.Mutex
	pressed map[string]store.Verb // what the person decided, by call, before it was sent
	acked   map[string]bool       // calls whose decision was acknowledged
	answers map[string]string     // allow or deny, by key
}

// TestAsksSurviveKills: whatever is killed, no step is allowed without a decision, each
// step is one ask with one decision, and none that was decided is lost.
func TestAsksSurviveKills(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are killed over and over")
	}
	t.Parallel()
	k := newKillable(t)
	a := &askers{t: t, socket: filepath.Join(k.dir, "s"), nizectl: nizectl.build(t), n: *askKills,
		pressed: map[string]store.Verb{}, acked: map[string]bool{}, answers: map[string]string{}}
	ctx := t.Context()
	if _, err := api.AddServer.Call(ctx, k.Client, api.AddServerRequest{Server: store.Server{Name: "claude-code", Transport: store.External}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AddGrant.Call(ctx, k.Client, api.AddGrantRequest{Tool: "claude-code:Bash", Pattern: json.RawMessage(`{"command":"git status*"}`)}); err != nil {
		t.Fatal(err)
	}

	working, rest := context.WithCancel(ctx)
	defer rest()
	var agents, person sync.WaitGroup
	for range 6 {
		agents.Go(a.agent)
	}
	person.Go(func() { a.person(working) })
	ended := make(chan struct{})
	go func() { agents.Wait(); close(ended) }()
	kills := 0
	for alive := true; alive; {
		life := time.NewTimer(time.Duration(20+rand.IntN(300)) * time.Millisecond)
		select {
		case <-ended:
			alive = false
		case <-life.C:
			k.kill()
			k.start()
			kills++
		}
		life.Stop()
	}
	rest()
	person.Wait()
	k.kill() // what was acknowledged is on the disk
	k.start()
	a.check(k)
	t.Logf("%d steps, %d kills of nized, %d of a hook, %d decisions", a.n, kills, a.hooks.Load(), len(a.pressed))
}

// agent takes one step after another. It asks about a step again, under the same key,
// until nize could decide.
func (a *askers) agent() {
	for {
		i := int(a.next.Add(1)) - 1
		if i >= a.n || a.t.Failed() {
			return
		}
		key := fmt.Sprintf("k%d.", i)
		command := "make " + key
		if i%5 == 0 {
			command = "git status " + key // a standing answer allows it
		}
		for tries := 0; ; tries++ {
			answer, err := a.hook(key, command)
			if err != nil {
				a.t.Errorf("%s: %v", key, err)
				return
			}
			if answer != "" {
				a.mu.Lock()
				a.answers[key] = answer
				a.mu.Unlock()
				a.done.Add(1)
				break
			}
			if tries > 1000 {
				a.t.Errorf("%s: no answer", key)
				return
			}
			a.wait() // nized may be gone
		}
	}
}

// wait returns when nized answers.
func (a *askers) wait() {
	c := api.New(a.socket)
	defer c.Close()
	(&killable{t: a.t, Client: c}).until("nized answers", func() bool {
		_, err := api.GetStatus.Call(context.Background(), c, api.Empty{})
		return err == nil || a.t.Failed()
	})
}

// hook runs the hook once, maybe not to its end. "" is no answer, or that nize could not
// decide: the agent runs nothing then.
func (a *askers) hook(key, command string) (string, error) {
	event := fmt.Sprintf(`{"session_id":"s%d","cwd":"/srv","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":%q}`, len(key)%3, command, key)
	cmd := exec.Command(a.nizectl, "--socket", a.socket, "hook", "claude-code", "--wait", "10m")
	cmd.Env = append(os.Environ(), "HOME="+a.t.TempDir())
	cmd.Stdin = strings.NewReader(event)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if rand.IntN(4) == 0 {
		end := time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() {
			if cmd.Process.Kill() == nil {
				a.hooks.Add(1)
			}
		})
		defer end.Stop()
	}
	err := cmd.Wait()
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() == -1:
		return "", nil // killed: the agent runs nothing
	case err != nil:
		return "", fmt.Errorf("the hook: %w: %s", err, said.String())
	}
	var got struct {
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return "", fmt.Errorf("the hook said %q: %w", out.String(), err)
	}
	if got.Specific.Decision == "deny" && strings.Contains(got.Specific.Reason, "can't decide") {
		return "", nil
	}
	return got.Specific.Decision, nil
}

// person decides whatever waits, and says the same of a call when nobody acknowledged it.
func (a *askers) person(ctx context.Context) {
	c := api.New(a.socket)
	defer c.Close()
	every(ctx, 15*time.Millisecond, func(int) {
		list, err := api.ListApprovals.Call(ctx, c, api.Empty{})
		if err != nil {
			return // nized is gone
		}
		for _, card := range list.Items {
			a.mu.Lock()
			verb := a.pressed[card.Call]
			if verb == "" {
				verb = []store.Verb{store.Approve, store.Deny}[rand.IntN(2)]
				a.pressed[card.Call] = verb
			}
			a.mu.Unlock()
			if _, err := api.DecideCall.Call(ctx, c, api.DecideCallRequest{ID: card.Call, Verb: verb, Digest: card.Digest}); err == nil {
				a.mu.Lock()
				a.acked[card.Call] = true
				a.mu.Unlock()
			}
		}
	})
}

// check compares what the agents were told with what is stored.
func (a *askers) check(k *killable) {
	ctx := a.t.Context()
	events := map[string]map[string]int{} // by call and kind
	for e, err := range api.ReadAudit.Call(ctx, k.Client, api.AuditRequest{Kind: "ask", Limit: 20 * a.n}) {
		if err != nil {
			a.t.Fatal(err)
		}
		if events[e.Subject] == nil {
			events[e.Subject] = map[string]int{}
		}
		events[e.Subject][e.Kind]++
	}
	calls := map[string]store.Call{} // by key
	for id, kinds := range events {
		c, err := api.GetCall.Call(ctx, k.Client, api.CallRequest{ID: id, Reason: "the test looks"})
		if err != nil {
			a.t.Errorf("call %s is in the trail, and not stored: %v", id, err)
			continue
		}
		ends := kinds["ask.approved"] + kinds["ask.refused"] + kinds["ask.cancelled"] + kinds["ask.expired"]
		if kinds["ask.pending"] > 1 || ends != 1 {
			a.t.Errorf("call %s has the events %v", id, kinds)
		}
		if old, ok := calls[c.Ask.Key]; ok {
			a.t.Errorf("%s was asked twice: %s and %s", c.Ask.Key, old.ID, id)
		}
		calls[c.Ask.Key] = c
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.answers) != a.n {
		a.t.Errorf("%d of %d steps have an answer", len(a.answers), a.n)
	}
	byKey := map[string]store.Call{}
	for key, c := range calls {
		_, key, _ = strings.Cut(key, "/") // behind the session
		byKey[key] = c
	}
	for key, answer := range a.answers {
		c, ok := byKey[key]
		if !ok {
			a.t.Errorf("%s was answered with %s, and its ask is lost", key, answer)
			continue
		}
		standing := strings.Contains(string(c.Args), "git status")
		switch want := (map[bool]string{true: "allow", false: "deny"})[c.State == store.Approved]; {
		case answer != want:
			a.t.Errorf("%s was answered with %s, and is %s", key, answer, c.State)
		case answer == "allow" && standing != (c.Ask.Grant != ""):
			a.t.Errorf("%s is allowed, by the standing answer %q", key, c.Ask.Grant)
		case answer == "allow" && !standing && a.pressed[c.ID] != store.Approve:
			a.t.Errorf("%s is allowed without a decision", key)
		}
	}
	for id := range maps.Keys(a.acked) {
		c, err := api.GetCall.Call(ctx, k.Client, api.CallRequest{ID: id, Reason: "the test looks"})
		if err != nil {
			a.t.Errorf("call %s was decided, and is lost: %v", id, err)
			continue
		}
		if want := (map[store.Verb]store.State{store.Approve: store.Approved, store.Deny: store.Refused}); c.State != want[a.pressed[id]] && c.State != store.Cancelled {
			a.t.Errorf("call %s was decided with %s, and is %s", id, a.pressed[id], c.State)
		}
	}
}
