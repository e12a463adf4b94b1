package upstream

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// Step is one step of connecting to a server.
type Step struct {
	Name string        `json:"name"` // spawn, connect, initialize or list; read, reach or list for an OpenAPI server
	Took time.Duration `json:"took"` // nanoseconds
	Err  string        `json:"err,omitempty"`
	Hint string        `json:"hint,omitempty"` // how to fix the error
}

// Probe is the result of contacting a server.
type Probe struct {
	Steps        []Step       `json:"steps"` // in order; a failed step is the last
	Tools        []store.Tool `json:"tools"` // with pins; refused tools and those with scan findings have their Findings
	Instructions string       `json:"instructions,omitempty"`
	Protocol     string       `json:"protocol,omitempty"` // negotiated version
	Info         string       `json:"info,omitempty"`     // the server's own name and version
	Title        string       `json:"title,omitempty"`    // the server's own title; empty if a scan found something
	Stderr       []byte       `json:"stderr,omitempty"`   // the end of the output of a stdio server
	Warnings     []string     `json:"warnings,omitempty"`
	NeedsLogin   bool         `json:"needs_login,omitempty"` // the server responded, and requires a sign-in
	URL          string       `json:"url,omitempty"`         // base URL of an OpenAPI server's operations
	Wants        string       `json:"wants,omitempty"`       // the credential that the operations require and the server lacks, as a sentence
}

// Probe contacts a server, which need not be registered, step by step, and disconnects. The
// error names the step that failed and, for a stdio server, the end of its output; the
// Probe is returned even with an error. It uses the credentials of the team and the system.
func (p *Pool) Probe(ctx context.Context, cfg store.Server) (*Probe, error) {
	cfg = cfg.Normal()
	log := wire.NewStderrLog(p.opt.Log.With("server", cfg.Name))
	defer p.probes.add(cfg.Name, log)()
	res := &Probe{}
	begin := time.Now()
	pass := func(name string) {
		res.Steps = append(res.Steps, Step{Name: name, Took: time.Since(begin)})
		begin = time.Now()
	}
	d := &dialer{pool: p, cfg: cfg, log: log, budget: wire.NewBudget(), mask: &mask.Mask{}, source: openapi.NewSource(), onStep: pass}
	sess, err := d.dial(ctx)
	if err == nil {
		if sess.speaksOlder() {
			p.probes.noteOlder(cfg)
		}
		res.Instructions, res.Protocol, res.Info = sess.instructions, sess.version, sess.serverInfo
		if _, findings := p.opt.Gate.Pin(cfg, sess.instructions, store.Tool{Title: sess.title}); len(findings) == 0 {
			res.Title = sess.title
		}
		if sess.document != nil {
			res.Wants = wants(cfg, sess.document.Wants)
		}
		if err = sess.listAnew(ctx, true); err == nil {
			pass(StepList)
		}
		sess.Terminate(false)
	}
	res.Stderr = log.Bytes()
	if cfg.Transport == store.OpenAPI {
		res.URL = d.cfg.URL // also if the service can't be reached
	}
	if err != nil && p.offersLogin(ctx, cfg, err) {
		err = &oauth.LoginError{Call: store.LoginNeeded(cfg.Name, cfg.Auth)}
	}
	if err != nil {
		res.NeedsLogin = errors.As(err, new(*oauth.LoginError))
		step := Step{Name: nextStep(cfg, res.Steps), Took: time.Since(begin), Err: store.RedactText(err.Error()), Hint: hint(cfg, err)}
		res.Steps = append(res.Steps, step)
		text := fmt.Sprintf("%s failed: %s", step.Name, step.Err)
		if step.Hint != "" {
			text += "; " + step.Hint
		}
		return res, errors.New(text)
	}
	catalog := sess.tools.Load()
	res.Warnings = catalog.warns
	if sess.document != nil {
		res.Warnings = slices.Concat(sess.document.Warnings, catalog.warns)
	}
	for _, l := range catalog.list {
		t := l.tool
		t.Findings = l.findings
		if t.State = store.ToolQuarantined; catalog.byName[t.Name].refused != nil {
			t.State, t.Findings = store.ToolRefused, []string{store.Clip(catalog.byName[t.Name].refused.Error(), 300)}
		} else if len(l.findings) == 0 {
			t.State = store.ToolAccepted // the state that a registration would give it
		}
		res.Tools = append(res.Tools, t)
	}
	return res, nil
}

// offerTime is the timeout for reading the well-known documents of an authorization server.
const offerTime = 20 * time.Second

// offersLogin reports whether users can sign in at a server that rejected a request. Many
// servers respond 401 without saying how, or in an unreadable form, so it then reads their
// well-known documents.
func (p *Pool) offersLogin(ctx context.Context, cfg store.Server, err error) bool {
	if p.opt.Logins == nil || !wire.LoginLost(err) {
		return false
	}
	for name := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" { // the server rejected a key
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, offerTime)
	defer cancel()
	return p.opt.Logins.Offered(ctx, cfg)
}

// nextStep returns the step after those that were completed.
func nextStep(cfg store.Server, passed []Step) string {
	order := []string{StepConnect, StepInitialize, StepList}
	switch cfg.Transport {
	case store.Stdio:
		order[0] = StepSpawn
	case store.OpenAPI:
		order[0], order[1] = StepRead, StepReach
	}
	return order[min(len(passed), len(order)-1)]
}

// hint returns advice for a person about an error of Probe.
func hint(cfg store.Server, err error) string {
	var dns *net.DNSError
	var status *wire.StatusError
	var unknownCA x509.UnknownAuthorityError
	var hostname x509.HostnameError
	text := err.Error()
	ended := cfg.Transport == store.Stdio && (strings.Contains(text, "it exited") || strings.Contains(text, "it ended with"))
	switch {
	case errors.As(err, new(*oauth.LoginError)):
		return "sign in with nizectl servers login " + cfg.Name
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrInvalid):
		return "" // the error itself contains it
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is the server running, and is the port right?"
	case errors.As(err, &dns):
		return "check the host name in the URL"
	case errors.As(err, &unknownCA), errors.As(err, &hostname):
		return "its certificate is not trusted on this machine"
	case errors.As(err, &status):
		return statusHint(cfg, status)
	case cfg.Transport == store.Stdio && strings.Contains(text, "not on nized's PATH"):
		return "install it, or give its absolute path"
	case ended && causeHint(text) != "":
		return causeHint(text)
	case errors.Is(err, syscall.ENOEXEC), strings.Contains(text, "exec format error"):
		return "it is a program for another machine, or a script whose first line names no interpreter"
	case cfg.Transport == store.OpenAPI && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EACCES)):
		return "give the path of a file that nized's user can read"
	case errors.Is(err, syscall.ENOENT), strings.Contains(text, "no such file"):
		return "check the path of the command and the working directory"
	case errors.Is(err, syscall.EACCES), strings.Contains(text, "permission denied"):
		return "the command is not executable for nized's user"
	case strings.Contains(text, "it exited"), strings.Contains(text, "it ended with"):
		return "run the command by hand to see why it ends; it sees only PATH, HOME, LANG and its own env"
	case strings.Contains(text, "no answer within") && installs(cfg):
		return "if it was still installing, run it once by hand, or give it more time with --start-timeout 10m"
	case strings.Contains(text, "no answer within") && cfg.Transport == store.Stdio:
		return "is it an MCP server that speaks on standard input and output?"
	case strings.Contains(text, "no answer within") && cfg.Transport == store.OpenAPI:
		return "check the address of the document, or give it more time with --start-timeout 5m"
	case strings.Contains(text, "no answer within"):
		return "is it an MCP server? try --transport sse if it is an older one"
	}
	return ""
}

func statusHint(cfg store.Server, status *wire.StatusError) string {
	switch status.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("it requires a credential: register it with --header-secret Authorization and run nizectl credentials set %s NAME", cfg.Name)
	case http.StatusNotFound:
		if u, err := url.Parse(cfg.URL); err == nil && (u.Path == "" || u.Path == "/") {
			return "check the path of the URL; many servers answer under /mcp"
		}
		return "check the path of the URL"
	case http.StatusMethodNotAllowed:
		return "it may speak the older transport: try --transport sse"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "redirects are not followed: register " + cmp.Or(status.Target, "the address that it redirects to")
	case http.StatusOK:
		return "does the URL lead to an MCP server?"
	}
	return ""
}
