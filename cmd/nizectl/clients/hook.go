package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/daemon/agenthook"
	"nize/daemon/api"
	"nize/mcp/commandline"
	"nize/store"
)

const (
	// maxHookEvent limits the input from an agent.
	maxHookEvent = 8 << 20
	// hookWait is how long the hook waits for a decision. It must be less than the agent's
	// timeout for the hook.
	hookWait = 9 * time.Minute
	// hookMargin is the time reserved for withdrawing the ask and answering.
	hookMargin = 5 * time.Second
	// askTime is how long nize may take to accept an ask, which waits for no person.
	askTime = 30 * time.Second
	// maxPaths limits how many words of a command line are looked up as paths.
	maxPaths = 2000
	// longPoll is how long one request waits, because proxies end longer ones.
	longPoll = 50 * time.Second
)

// HookCommand is `nizectl hook`.
func HookCommand(a *command.App) *cli.Command {
	var defaults []string
	for _, c := range agenthook.Clients {
		defaults = append(defaults, c.Name+": "+strings.Join(c.Skip, ", "))
	}
	return a.Command(command.Leaf{Name: "hook", Args: "CLIENT", Usage: "ask nize before a coding agent runs a tool", Names: command.Fixed(hookNames()...), Run: runHook,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Usage: "the `URL` of a nized on another machine; the token is in --token-file or NIZE_TOKEN"},
			&cli.StringFlag{Name: "token-file", Usage: "`FILE` with a token for the API", TakesFile: true},
			&cli.StringSliceFlag{Name: "only", Usage: "ask only about these tools, by a `PATTERN` such as Bash or mcp__*"},
			&cli.StringSliceFlag{Name: "skip", Usage: "also leave these tools to the client's own rules"},
			&cli.StringFlag{Name: "on-failure", Value: "deny", Usage: "if nize can't be reached: deny, or ask, which uses the client's own prompt"},
			&cli.DurationFlag{Name: "wait", Value: hookWait, Usage: "how long to wait for a decision; less than the client's timeout for the hook"},
		},
		More: "The client starts it with an event on standard input; nizectl connect CLIENT --hooks writes that into its settings.\n" +
			"If nize can't be reached, or there is no decision in time, the step is denied, never allowed. Tools that only read are\n" +
			"left to the client's own rules:\n  " + strings.Join(defaults, "\n  ")})
}

func runHook(ctx context.Context, c *command.Call) error {
	client, ok := agenthook.Find(c.Arg(0))
	if !ok {
		return command.Failf(api.ExitUsage, "unknown client %q: there are %s", c.Arg(0), strings.Join(hookNames(), ", "))
	}
	onFailure := agenthook.Deny
	switch c.Cmd.String("on-failure") {
	case "deny":
	case "ask":
		onFailure = agenthook.Ask
	default:
		return command.Usagef("--on-failure %q: use deny or ask", c.Cmd.String("on-failure"))
	}
	only, skip := c.Cmd.StringSlice("only"), c.Cmd.StringSlice("skip")
	for flag, patterns := range map[string][]string{"only": only, "skip": skip} {
		for _, p := range patterns {
			if err := agenthook.CheckPattern(p); err != nil {
				return command.Usagef("--%s: %v", flag, err)
			}
		}
	}
	if c.InTTY {
		c.Note("this reads a hook event of %s, which starts it: nizectl connect %s --hooks shows how", client.Title, client.Name)
	}
	raw, err := io.ReadAll(io.LimitReader(c.In, maxHookEvent+1))
	if err == nil && len(raw) > maxHookEvent {
		err = fmt.Errorf("the hook event is over %d MiB", maxHookEvent>>20)
	}
	var e agenthook.Event
	if err == nil {
		e, err = client.Read(raw)
	}
	if errors.Is(err, agenthook.ErrOther) {
		return nil
	}
	if err != nil { // exit code 2 blocks the step in every client
		return command.Failf(api.ExitUsage, "the step was denied: %v", err)
	}
	if client.Skips(e.Tool, only, skip) {
		return nil
	}
	d, err := askAbout(ctx, c, client, e)
	if err != nil {
		d = agenthook.Decision{Verdict: onFailure, Reason: "nize can't decide: " + err.Error()}
	}
	if out := client.Answer(e, d); out != nil {
		if _, err := c.Raw.Write(out); err != nil {
			return command.Failf(api.ExitUsage, "the answer could not be written: %v", err)
		}
	}
	return nil
}

// asker sends asks over the socket or HTTP.
type asker interface {
	post(ctx context.Context, req api.AskRequest) (api.Ask, error)
	get(ctx context.Context, id string, wait time.Duration) (api.Ask, error)
	cancel(ctx context.Context, id string) error
}

// askAbout sends an ask and waits for the decision. If the wait ends early, it withdraws
// the ask.
func askAbout(ctx context.Context, c *command.Call, client agenthook.Client, e agenthook.Event) (none agenthook.Decision, err error) {
	wait := c.Cmd.Duration("wait")
	if wait <= 0 || wait > 24*time.Hour {
		return none, fmt.Errorf("--wait %s: use a time up to 24h", wait)
	}
	var to asker = socketAsker{c.API}
	if at := c.Cmd.String("url"); at != "" {
		if to, err = newWebAsker(c, at); err != nil {
			return none, err
		}
	}
	host, _ := os.Hostname() // without a name, none is sent
	dir, repo := repository(e)
	req := api.AskRequest{
		Source: client.Name, Tool: e.Tool, Title: clip(e.Title), Arguments: e.Args, Key: keyOf(e), Expires: store.SpanText(wait),
		Context: &api.AskContext{Cwd: clip(dir), Host: clip(host), Session: clip(e.Session), Repository: repo},
	}
	end := time.Now().Add(wait)
	var got api.Ask
	if err := within(ctx, min(wait, askTime)+hookMargin, func(ctx context.Context) (err error) {
		got, err = to.post(ctx, req)
		return err
	}); err != nil {
		return none, err
	}
	for got.State == string(store.Pending) && err == nil {
		left := min(time.Until(end), longPoll)
		if left <= 0 {
			break
		}
		id := got.ID
		if err = within(ctx, left+hookMargin, func(ctx context.Context) (err error) {
			got, err = to.get(ctx, id, left.Round(time.Millisecond))
			return err
		}); err != nil {
			got.ID = id
		}
	}
	if err == nil && got.State != string(store.Pending) {
		return agenthook.DecisionOf(got, e.Args), nil
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookMargin) // the client may have cancelled ctx
	defer cancel()
	if cancelErr := to.cancel(late, got.ID); err == nil && cancelErr != nil {
		return none, fmt.Errorf("there was no decision in time, and the ask could not be withdrawn: %w", cancelErr)
	}
	return agenthook.DecisionOf(got, e.Args), err
}

// within calls do with a timeout. If do fails because of it, the error says so.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("nize did not respond within %s; see nizectl status, then try again", limit.Round(time.Millisecond))
	}
	return err
}

// keyOf returns the agent's own name of a step, which identifies an ask when it is
// repeated.
func keyOf(e agenthook.Event) string {
	if e.Key == "" || len(e.Key)+len(e.Session) >= store.MaxAskKey {
		return ""
	}
	return e.Session + "/" + e.Key
}

func clip(s string) string { return store.Clip(s, store.MaxAskText) }

// repository returns the directory of a step without symbolic links, and the top directory
// of the working tree that contains the step: "" if there is none, if the step leaves it by
// a symbolic link, or if the event doesn't say where it runs. A worktree and a submodule
// are separate trees.
func repository(e agenthook.Event) (dir, top string) {
	dir, err := filepath.EvalSymlinks(e.Cwd)
	if err != nil || !filepath.IsAbs(dir) {
		return e.Cwd, ""
	}
	if e.UnsureDir {
		return dir, ""
	}
	top = topOf(dir)
	if top == "" || len(top) > store.MaxAskText || len(dir) > store.MaxAskText {
		return dir, ""
	}
	paths := commandline.Paths(e.Args)
	if len(paths) > maxPaths {
		return dir, ""
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if end, ok := resolve(path); isBelow(top, path) && (!ok || topOf(end) != top) {
			return dir, ""
		}
	}
	return dir, top
}

// WorkingTree returns the top directory of the git working tree around a directory, as the
// hook sends it in asks; "" if there is none.
func WorkingTree(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	return topOf(dir)
}

// topOf returns the closest directory at or above a path that contains a .git.
func topOf(path string) string {
	for {
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			return path
		}
		up := filepath.Dir(path)
		if up == path {
			return ""
		}
		path = up
	}
}

func isBelow(top, path string) bool {
	rel, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolve follows the symbolic links of a path as far as it exists. It returns false for a
// dangling link, since a file created through it may be anywhere.
func resolve(path string) (end string, ok bool) {
	rest := ""
	for {
		if end, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(end, rest), true
		}
		if _, err := os.Lstat(path); err == nil {
			return "", false
		}
		up := filepath.Dir(path)
		if up == path {
			return "", false
		}
		path, rest = up, filepath.Join(filepath.Base(path), rest)
	}
}

// socketAsker sends asks to the control socket.
type socketAsker struct{ c *api.Client }

func (s socketAsker) post(ctx context.Context, req api.AskRequest) (api.Ask, error) {
	return api.PostAsk.Call(ctx, s.c, req)
}

func (s socketAsker) get(ctx context.Context, id string, wait time.Duration) (api.Ask, error) {
	return api.GetAsk.Call(ctx, s.c, api.GetAskRequest{ID: id, Wait: wait.String()})
}

func (s socketAsker) cancel(ctx context.Context, id string) error {
	_, err := api.CancelAsk.Call(ctx, s.c, api.CancelAskRequest{ID: id})
	return err
}

// webAsker sends asks over HTTP.
type webAsker struct {
	base  string
	token store.Secret
}

func newWebAsker(c *command.Call, at string) (none webAsker, err error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return none, fmt.Errorf("--url %q: use https://HOST", at)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return none, errors.New("--url: a token is only sent over https or to this machine")
	}
	token := c.Env("NIZE_TOKEN")
	if file := c.Cmd.String("token-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return none, fmt.Errorf("reading the token: %w", err)
		}
		token = string(text)
	}
	if token = strings.TrimSpace(token); token == "" {
		return none, errors.New("--url needs a token for the API: --token-file FILE, or NIZE_TOKEN")
	}
	return webAsker{strings.TrimSuffix(u.String(), "/"), store.NewSecret(token)}, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func (w webAsker) post(ctx context.Context, req api.AskRequest) (got api.Ask, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return got, err
	}
	return got, w.do(ctx, http.MethodPost, "/asks", body, &got)
}

func (w webAsker) get(ctx context.Context, id string, wait time.Duration) (got api.Ask, err error) {
	return got, w.do(ctx, http.MethodGet, "/asks/"+url.PathEscape(id)+"?wait="+url.QueryEscape(wait.String()), nil, &got)
}

func (w webAsker) cancel(ctx context.Context, id string) error {
	return w.do(ctx, http.MethodDelete, "/asks/"+url.PathEscape(id), nil, new(api.Ask))
}

// do sends a request. It does not follow redirects, since the token is for this host.
func (w webAsker) do(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.token.Reveal())
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("nize can't be reached: %w", errors.Unwrap(err)) // without the URL
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxHookEvent))
	if err != nil {
		return fmt.Errorf("the answer of nize broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var failed struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(answer, &failed) == nil && failed.Error.Message != "" {
			return errors.New(failed.Error.Message)
		}
		return fmt.Errorf("nize answered %s", resp.Status)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the answer is not nize's: %w", err)
	}
	return nil
}
