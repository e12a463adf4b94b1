// Command agents tests nize's hooks with other vendors' coding agents: Claude Code and
// Codex.
//
// It runs them against a scripted model and a simulated Slack, all on loopback.
// scripts/agents.sh starts it. It exits with 1 at the first failure.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"nize/bots/slack/slacktest"
	"nize/daemon/api"
	"nize/store"
)

// patience limits every wait: a machine may be slow.
const patience = 3 * time.Minute

func main() {
	d := driver{began: time.Now()}
	flag.StringVar(&d.bin, "bin", "bin", "`DIR` with nized and nizectl")
	flag.StringVar(&d.claude, "claude", "", "`PROGRAM` of Claude Code; without one it is left out")
	flag.StringVar(&d.codex, "codex", "", "`PROGRAM` of Codex; without one it is left out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := d.run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "agents: FAILED:", err)
		os.Exit(1)
	}
}

type driver struct {
	bin, claude, codex string
	began              time.Time
	dir                string // a home directory that contains nized's data
	model              model
	modelURL           string
	slack              *slacktest.Server
	api                *api.Client
	nized              *exec.Cmd
}

func (d *driver) ok(format string, args ...any) {
	fmt.Printf("agents: ok after %3.0f s: %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *driver) run(ctx context.Context) (err error) {
	if d.bin, err = filepath.Abs(d.bin); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "nize-ag."); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	models := httptest.NewServer(&d.model)
	defer models.Close()
	d.modelURL = models.URL
	d.slack = slacktest.New(slacktest.Options{Unlimited: true})
	if err := d.slack.Start(nil); err != nil {
		return err
	}
	defer d.slack.Close()
	d.api = api.New(d.socket())
	defer d.api.Close()
	if err := d.start(ctx); err != nil {
		return err
	}
	defer d.kill()
	if err := d.connectSlack(ctx); err != nil {
		return fmt.Errorf("connecting Slack: %w", err)
	}
	d.ok("nized works with a pretended Slack")
	for _, a := range []agent{claudeCode{d.claude}, codex{d.codex}} {
		if a.program() == "" {
			fmt.Printf("agents: left out: %s\n", a.name())
			continue
		}
		err := d.play(ctx, a)
		if c, ok := a.(claudeCode); err == nil && ok {
			err = d.playHTTP(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\nthe model was told: %s\nnized's log:\n%s", a.name(), err, tail(d.model.heard()), tail(d.log()))
		}
	}
	return nil
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

func (d *driver) log() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (d *driver) data() string   { return filepath.Join(d.dir, "data") }
func (d *driver) socket() string { return filepath.Join(d.data(), "nized.sock") }

// env returns the environment of every program, without the user's own variables, such as
// keys.
func (d *driver) env(more ...string) []string {
	return append([]string{"PATH=" + d.bin + ":" + os.Getenv("PATH"), "HOME=" + d.dir, "TMPDIR=" + d.dir, "NO_COLOR=1", "NIZE_SOCKET=" + d.socket()}, more...)
}

func (d *driver) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d.nized = exec.Command(filepath.Join(d.bin, "nized"), "--data-dir", d.data(), "--listen", "127.0.0.1:0")
	d.nized.Env, d.nized.Stderr = d.env(), log
	if err := d.nized.Start(); err != nil {
		return err
	}
	return d.until(ctx, "nized answers", func() bool {
		_, err := api.GetStatus.Call(ctx, d.api, api.Empty{})
		return err == nil
	})
}

// kill kills nized to simulate a crash.
func (d *driver) kill() {
	if d.nized != nil {
		_ = d.nized.Process.Kill()
		_ = d.nized.Wait() // it was killed
		d.nized = nil
	}
}

func (d *driver) until(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, context.Cause(ctx))
		}
	}
	return nil
}

// connectSlack links Ann in Slack with the local user, as whom the hooks send asks.
func (d *driver) connectSlack(ctx context.Context) error {
	if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: "slack.api_url", Value: d.slack.APIURL()}); err != nil {
		return err
	}
	made, err := api.ConnectBot.Call(ctx, d.api, api.ConnectBotRequest{Name: "slack", Tokens: []api.Secret{api.NewSecret(d.slack.BotToken()), api.NewSecret(d.slack.AppToken())}})
	if err != nil {
		return err
	}
	if err := d.until(ctx, "the bot is connected", d.slack.Connected); err != nil {
		return err
	}
	if err := d.slack.Slash(ctx, slacktest.Ann, slacktest.General, made.Send); err != nil {
		return err
	}
	if err := d.until(ctx, "Ann is an admin", func() bool { return d.hasUser(ctx, "slack:") }); err != nil {
		return err
	}
	code, err := api.MakeLink.Call(ctx, d.api, api.MakeLinkRequest{})
	if err != nil {
		return err
	}
	if _, err := d.slack.DM(slacktest.Ann, "link "+code.Code.Reveal()+" confirm"); err != nil {
		return err
	}
	return d.until(ctx, "Ann is who works at this machine", func() bool { return d.hasUser(ctx, "local:", "slack:") })
}

// hasUser reports whether an admin has identities with these prefixes.
func (d *driver) hasUser(ctx context.Context, prefixes ...string) bool {
	users, err := api.ListUsers.Call(ctx, d.api, api.Empty{})
	return err == nil && slices.ContainsFunc(users.Items, func(u store.User) bool {
		for _, prefix := range prefixes {
			if !slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, prefix) }) {
				return false
			}
		}
		return u.Role == store.Admin
	})
}

// agent is a coding agent.
type agent interface {
	name() string // of the client and of its source
	program() string
	command(d *driver) (args, env []string)
	prepare(d *driver) error
	// edits reports whether it runs arguments that a person edited.
	edits() bool
}

type claudeCode struct{ path string }

func (claudeCode) name() string          { return "claude-code" }
func (c claudeCode) program() string     { return c.path }
func (claudeCode) edits() bool           { return true }
func (claudeCode) prepare(*driver) error { return nil }
func (claudeCode) command(d *driver) (args, env []string) {
	return []string{"-p", "do it", "--output-format", "json"},
		[]string{"ANTHROPIC_BASE_URL=" + d.modelURL, "ANTHROPIC_API_KEY=x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"}
}

type codex struct{ path string }

func (codex) name() string      { return "codex" }
func (c codex) program() string { return c.path }
func (codex) edits() bool       { return false }
func (codex) prepare(d *driver) error {
	config := fmt.Sprintf("model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n"+
		"[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n[projects.%q]\ntrust_level = \"trusted\"\n", d.modelURL+"/v1", d.project())
	return os.WriteFile(filepath.Join(d.dir, ".codex", "config.toml"), []byte(config), 0o600)
}
func (codex) command(*driver) (args, env []string) {
	// Codex runs only trusted hooks, and no user can confirm the trust here.
	return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"}, nil
}

func (d *driver) project() string { return filepath.Join(d.dir, "project") }

func (d *driver) nizectl(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, filepath.Join(d.bin, "nizectl"), args...)
	c.Env = d.env()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nizectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// turn is one run of an agent.
type turn struct {
	out  bytes.Buffer
	done chan error
}

// begin starts a turn in which the model requests one shell command.
func (d *driver) begin(ctx context.Context, a agent, command string) (*turn, error) {
	d.model.wants(command)
	args, env := a.command(d)
	c := exec.CommandContext(ctx, a.program(), args...)
	c.Dir, c.Env = d.project(), d.env(env...)
	t := &turn{done: make(chan error, 1)} // buffered, so that it ends even if no one waits
	c.Stdout, c.Stderr = &t.out, &t.out
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() { t.done <- c.Wait() }()
	return t, nil
}

// end waits for the end of a turn; the model ends it once it has the result of its step.
func (d *driver) end(t *turn, ran bool, command, told string) error {
	err := <-t.done
	switch heard := d.model.heard(); {
	case err != nil:
		return fmt.Errorf("%s: it ended with %w: %s", command, err, tail(t.out.String()))
	case heard == "":
		return fmt.Errorf("%s: the model was told nothing of its step: %s", command, tail(t.out.String()))
	case told != "" && !strings.Contains(heard, told):
		return fmt.Errorf("%s: the model was not told %q", command, told)
	}
	if d.made(command) != ran {
		return fmt.Errorf("%s: that it ran is %t", command, !ran)
	}
	return nil
}

// touch returns a command whose execution is visible.
func touch(name string) string { return "touch " + name }

func (d *driver) made(command string) bool {
	_, err := os.Stat(filepath.Join(d.project(), strings.TrimPrefix(command, "touch ")))
	return err == nil
}

// waiting returns the card of the waiting ask, as Ann sees it in Slack.
func (d *driver) waiting(ctx context.Context, command string) (card store.Card, m slacktest.Message, err error) {
	private := d.slack.DMChannel(slacktest.Ann)
	err = d.until(ctx, "the ask for "+command+" is before Ann", func() bool {
		list, err := api.ListApprovals.Call(ctx, d.api, api.Empty{})
		if err != nil || len(list.Items) != 1 || !strings.Contains(string(list.Items[0].Args), command) {
			return false
		}
		card = list.Items[0]
		i := slices.IndexFunc(d.slack.Messages(private), func(m slacktest.Message) bool { return strings.Contains(m.Text+string(m.Blocks), card.Call) })
		if i >= 0 {
			m = d.slack.Messages(private)[i]
		}
		return i >= 0
	})
	return card, m, err
}

// play tests everything that is promised about hooks.
func (d *driver) play(ctx context.Context, a agent) error {
	if err := os.MkdirAll(filepath.Join(d.project(), ".git"), 0o700); err != nil {
		return err
	}
	if err := d.nizectl(ctx, "connect", a.name(), "--hooks", "--write"); err != nil {
		return err
	}
	if err := a.prepare(d); err != nil {
		return err
	}
	name := func(s string) string { return touch(a.name() + "-" + s) }

	yes := name("yes")
	t, err := d.begin(ctx, a, yes)
	if err != nil {
		return err
	}
	_, m, err := d.waiting(ctx, yes)
	if err != nil {
		return fmt.Errorf("%w: %s", err, tail(t.out.String()))
	}
	if d.made(yes) {
		return errors.New("it ran before its yes")
	}
	if err := d.slack.Press(ctx, slacktest.Ann, m, "Run"); err != nil {
		return err
	}
	if err := d.end(t, true, yes, ""); err != nil {
		return err
	}
	d.ok("%s waits, Ann presses Run in Slack, and the step runs", a.name())

	no := name("no")
	if t, err = d.begin(ctx, a, no); err != nil {
		return err
	}
	card, _, err := d.waiting(ctx, no)
	if err != nil {
		return err
	}
	const why = "not before the release"
	if _, err := api.DecideCall.Call(ctx, d.api, api.DecideCallRequest{ID: card.Call, Verb: store.Deny, Digest: card.Digest, Reason: why}); err != nil {
		return err
	}
	if err := d.end(t, false, no, why); err != nil {
		return err
	}
	d.ok("%s: refused, it does not run, and the model is told why", a.name())

	wanted, approved := name("wanted"), name("approved")
	if t, err = d.begin(ctx, a, wanted); err != nil {
		return err
	}
	if card, _, err = d.waiting(ctx, wanted); err != nil {
		return err
	}
	edited := json.RawMessage(strings.ReplaceAll(string(card.Args), wanted, approved))
	if _, err := api.DecideCall.Call(ctx, d.api, api.DecideCallRequest{ID: card.Call, Verb: store.Edit, Digest: card.Digest, Args: edited}); err != nil {
		return err
	}
	told := ""
	if !a.edits() {
		told = approved // the command to run instead
	}
	if err := d.end(t, false, wanted, told); err != nil {
		return err
	}
	if d.made(approved) != a.edits() {
		return fmt.Errorf("%s: that it ran is %t", approved, !a.edits())
	}
	d.ok("%s: edited, what was wanted does not run; what was approved instead: %t", a.name(), a.edits())

	if err := d.nizectl(ctx, "approvals", "grants", "add", a.name()+":Bash", "--args", `{"command":"`+name("standing")+`*"}`); err != nil {
		return err
	}
	before := len(d.slack.Messages(d.slack.DMChannel(slacktest.Ann)))
	standing := name("standing-1")
	if t, err = d.begin(ctx, a, standing); err != nil {
		return err
	}
	if err := d.end(t, true, standing, ""); err != nil {
		return err
	}
	if after := len(d.slack.Messages(d.slack.DMChannel(slacktest.Ann))); after != before {
		return fmt.Errorf("a standing answer was there, and Slack has %d messages more", after-before)
	}
	d.ok("%s: a standing answer, no card", a.name())

	killed := name("killed")
	if t, err = d.begin(ctx, a, killed); err != nil {
		return err
	}
	if _, _, err = d.waiting(ctx, killed); err != nil {
		return err
	}
	d.kill()
	if err := d.end(t, false, killed, "can't decide"); err != nil {
		return err
	}
	d.ok("%s: nized is killed while it waits: denied", a.name())

	gone := name("standing-2") // a command that would be allowed
	if t, err = d.begin(ctx, a, gone); err != nil {
		return err
	}
	if err := d.end(t, false, gone, "can't decide"); err != nil {
		return err
	}
	d.ok("%s: nized is gone: denied", a.name())
	if err := d.start(ctx); err != nil {
		return err
	}
	list, err := api.ListApprovals.Call(ctx, d.api, api.Empty{})
	if err != nil {
		return err
	}
	for _, card := range list.Items { // of the ask whose hook could not withdraw it
		if _, err := api.DecideCall.Call(ctx, d.api, api.DecideCallRequest{ID: card.Call, Verb: store.Deny, Digest: card.Digest}); err != nil {
			return err
		}
	}
	return d.until(ctx, "the bot is connected", d.slack.Connected)
}

// playHTTP lets Claude Code post its event itself, with a token and without a process.
func (d *driver) playHTTP(ctx context.Context, c claudeCode) error {
	made, err := api.CreateToken.Call(ctx, d.api, api.CreateTokenRequest{Name: "agent", Audience: store.ForAPI})
	if err != nil {
		return err
	}
	address, err := os.ReadFile(filepath.Join(d.data(), "nized.addr"))
	if err != nil {
		return err
	}
	post := map[string]any{"type": "http", "url": "http://" + strings.TrimSpace(string(address)) + "/hooks/claude-code",
		"headers": map[string]string{"Authorization": "Bearer " + made.Secret.Reveal()}, "timeout": 600, "onFailure": "block"}
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{"matcher": "*", "hooks": []any{post}}}}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.dir, ".claude", "settings.json"), settings, 0o600); err != nil {
		return err
	}
	yes := touch("http-yes")
	t, err := d.begin(ctx, c, yes)
	if err != nil {
		return err
	}
	_, m, err := d.waiting(ctx, yes)
	if err != nil {
		return fmt.Errorf("%w: %s", err, tail(t.out.String()))
	}
	if err := d.slack.Press(ctx, slacktest.Ann, m, "Run"); err != nil {
		return err
	}
	if err := d.end(t, true, yes, ""); err != nil {
		return err
	}
	if err := d.nizectl(ctx, "tokens", "revoke", "agent", "--yes"); err != nil {
		return err
	}
	no := touch(c.name() + "-standing-3") // a command that a standing answer allows
	if t, err = d.begin(ctx, c, no); err != nil {
		return err
	}
	if err := d.end(t, false, no, "the token was revoked"); err != nil {
		return err
	}
	d.ok("%s over HTTP: a yes runs, a revoked token is denied", c.name())
	return nil
}
