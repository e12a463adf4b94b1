package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/taskwire"
	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/process"
	"nize/mcp/upstream/wire"
	"nize/mcp/view"
	"nize/store"
)

// dialer is one attempt to open a session, and the facts learned during it.
type dialer struct {
	pool  *Pool
	cfg   store.Server
	owner string
	log   *wire.StderrLog
	// budget is the server's budget for unsolicited messages; nil means unlimited.
	budget *wire.Budget
	mask   *mask.Mask
	// legacy skips the probe for 2026-07-28, because the server is known to support only
	// the older protocol.
	legacy bool
	views  knownViews
	source *openapi.Source // of an OpenAPI server
	// said returns the output of the command on standard output that was not a message; nil
	// until the command was spawned.
	said func() string
	// onStep is called after each completed step of Probe.
	onStep func(name string)
}

// Steps of connecting to a server, as named by Probe.
const (
	StepSpawn      = "spawn"
	StepConnect    = "connect"
	StepInitialize = "initialize"
	StepList       = "list"

	// For an OpenAPI server, these replace the second and third step.
	StepRead  = "read"
	StepReach = "reach"
)

// info returns nize's client information.
func (p *Pool) info() *sdk.Implementation {
	return &sdk.Implementation{Name: "nize", Title: "nize", Version: p.opt.Version}
}

// dial opens a session. One deadline covers all of its steps.
func (d *dialer) dial(ctx context.Context) (*session, error) {
	limit, written := startTime(d.cfg), d.log.Written()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", store.SpanText(limit)))
	defer cancel()
	s := &session{cfg: d.cfg, owner: d.owner, gate: d.pool.opt.Gate, views: d.views,
		changed: make(chan struct{}, 1), checkWanted: make(chan struct{}, 1), listing: make(chan struct{}, 1)}
	var err error
	switch d.cfg.Transport {
	case store.Stdio:
		err = d.stdio(ctx, s)
	case store.HTTP:
		err = d.http(ctx, s)
	case store.SSE:
		err = d.sse(ctx, s)
	case store.OpenAPI:
		err = d.openAPI(ctx, s)
	default:
		err = fmt.Errorf("%w transport %q", store.ErrInvalid, d.cfg.Transport)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			if d.log.Written() > written {
				err = fmt.Errorf("%w; it was ended; its last words: %s", err, d.log.LastWords())
			}
			if d.said != nil && d.said() != "" {
				err = fmt.Errorf("%w; to standard output it wrote %s", err, d.said())
			}
		}
		if rpc := (*wire.RPCError)(nil); errors.As(err, &rpc) {
			maskRPC(d.mask, rpc)
		}
		return nil, d.mask.Error(err)
	}
	return s, nil
}

func (d *dialer) reportStep(step string) {
	if d.onStep != nil {
		d.onStep(step)
	}
}

// client returns the SDK client of a session. It declares that nize can display views of
// tools and can ask the user behind a call.
func (d *dialer) client(s *session) *sdk.Client {
	changed := s.markChanged
	can := &sdk.ClientCapabilities{}
	if err := json.Unmarshal([]byte(view.Capabilities), can); err != nil {
		panic("upstream: what nize can do is no JSON: " + err.Error())
	}
	opt := &sdk.ClientOptions{
		Capabilities:               can,
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { changed() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { changed() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { changed() },
	}
	if d.pool.opt.Attendant != nil {
		can.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
		opt.ElicitationHandler = s.askedByStream
	}
	return wire.NewClient(d.pool.info(), opt)
}

// askedByStream answers a question that arrived on the standing stream.
func (s *session) askedByStream(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	conn := s.standing.Load()
	if conn == nil {
		return nil, errors.New("no call is under way")
	}
	params, err := json.Marshal(req.Params)
	if err != nil {
		return nil, err
	}
	raw, err := conn.Asked(taskwire.MethodElicit, params)
	if err != nil {
		return nil, err
	}
	answer := &sdk.ElicitResult{}
	return answer, json.Unmarshal(raw, answer)
}

// stdio spawns the command and speaks 2025-11-25 with it, because some servers exit or hang
// if they are probed for a newer version.
func (d *dialer) stdio(ctx context.Context, s *session) error {
	env, secrets, err := d.pool.environment(ctx, d.cfg, d.owner)
	if err != nil {
		return err
	}
	knowCommand(d.mask, d.cfg, secrets)
	d.log.Mask(d.mask.Text)
	frames, err := d.spawn(env)
	if err != nil {
		return err
	}
	d.said = frames.Said
	d.reportStep(StepSpawn)
	return d.handshake(ctx, s, frames)
}

// handshake initializes a session over frames, and closes them if that fails.
func (d *dialer) handshake(ctx context.Context, s *session, f wire.Frames) error {
	p := wire.NewPeer(f, d.budget, s.markChanged, d.warn)
	p.Hide, p.StartTime = d.mask.Text, startTime(d.cfg)
	cs, err := d.client(s).Connect(ctx, p, &sdk.ClientSessionOptions{ProtocolVersion: wire.VersionLegacy})
	if err != nil {
		if cause := p.Cause(); cause != nil && !errors.Is(cause, wire.ErrEnded) {
			err = cause
		}
		p.Terminate(true)
		return fmt.Errorf("initializing: %w", err)
	}
	s.Conn = &maskedConn{&wire.PeerSession{Peer: p, Session: cs}, d.mask}
	s.setServerInfo(cs.InitializeResult(), d.mask)
	d.reportStep(StepInitialize)
	return nil
}

func (d *dialer) warn(msg string) {
	d.log.Log.Warn("server misbehaves", "what", store.RedactText(d.mask.Text(msg)))
}

// spawn starts the command with pipes for its standard streams.
func (d *dialer) spawn(env []string) (*wire.StdioFrames, error) {
	path := d.cfg.Command
	if !filepath.IsAbs(path) {
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, fmt.Errorf("the command %s is not on nized's PATH", path)
		}
		path = found
	}
	dir := d.cfg.Cwd
	if dir == "" {
		dir = "/"
		if home := os.Getenv("HOME"); home != "" {
			if st, err := os.Stat(home); err == nil && st.IsDir() {
				dir = home
			}
		}
	}
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	defer func() { closeAll(theirs) }()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
		// Our ends have deadlines; the child expects its ends to block.
		if err := syscall.SetNonblock(int(theirs[i].Fd()), false); err != nil {
			closeAll(ours)
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
	}
	cmd := process.Command{Path: path, Args: d.cfg.Args, Env: env, Dir: dir, Files: theirs, Memory: d.cfg.MemoryLimit}
	proc, err := d.pool.spawn(cmd)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	frames := wire.StartStdio(proc, ours, d.log, d.budget, d.warn)
	d.pool.children.add(frames, d.cfg)
	d.pool.watchingMemory.Do(func() { d.pool.spawnTask(d.pool.watchMemory) })
	return frames, nil
}

// spawn starts a command under the guard, if there is one.
func (p *Pool) spawn(cmd process.Command) (process.Child, error) {
	if p.opt.Guard != nil {
		return p.opt.Guard.Spawn(cmd)
	}
	return process.SpawnDirect(cmd)
}

// sse connects over the older HTTP+SSE transport.
func (d *dialer) sse(ctx context.Context, s *session) error {
	life, end := context.WithCancelCause(context.Background())
	trip, err := d.roundTripper(ctx, life, end)
	if err != nil {
		end(err)
		return err
	}
	frames, err := wire.DialSSE(ctx, d.cfg.URL, trip, d.budget)
	if err != nil {
		end(err)
		return fmt.Errorf("connecting: %w", err)
	}
	d.reportStep(StepConnect)
	return d.handshake(ctx, s, frames)
}

// http connects over Streamable HTTP. It tries 2026-07-28 first, unless the server is known
// not to support it. The SDK treats any failure of its probe as an older server, so a
// modern server that is just starting would stay without notifications. So a probe that
// failed for another reason is repeated once, and doesn't mark the server as older.
func (d *dialer) http(ctx context.Context, s *session) error {
	if err := d.streamable(ctx, s); err != nil || !s.unsure {
		return err
	}
	s.Terminate(true)
	return d.streamable(ctx, s)
}

func (d *dialer) streamable(ctx context.Context, s *session) error {
	u, err := url.Parse(d.cfg.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%w URL of server %s: it must start with http:// or https://", store.ErrInvalid, d.cfg.Name)
	}
	u.Fragment = ""
	life, end := context.WithCancelCause(context.Background())
	trip, err := d.roundTripper(ctx, life, end)
	if err != nil {
		end(err)
		return err
	}
	trip.Budget = d.budget // over SSE the frames spend the budget
	opts := &sdk.ClientSessionOptions{}
	if d.legacy {
		opts.ProtocolVersion = wire.VersionLegacy
	}
	transport := &sdk.StreamableClientTransport{Endpoint: u.String(), HTTPClient: trip.Client(), MaxEventSize: wire.MaxMessage}
	cs, err := d.connect(ctx, d.client(s), transport, opts, end)
	if err != nil {
		end(err)
		var noise *wire.NoiseError
		if errors.As(context.Cause(life), &noise) {
			return noise
		}
		if last := trip.Failure.Load(); last != nil && ctx.Err() == nil {
			err = *last
		}
		return store.NetworkError(err)
	}
	init := cs.InitializeResult()
	w, err := wire.NewHTTPConn(wire.HTTPOptions{URL: u, Trip: trip, Session: cs, Client: d.pool.info(), Parent: d.pool.ctx})
	if err != nil {
		return err
	}
	s.Conn = &maskedConn{w, d.mask}
	s.standing.Store(w)
	s.unsure = init.ProtocolVersion < wire.VersionModern && trip.Trouble.Load()
	s.setServerInfo(init, d.mask)
	d.reportStep(StepInitialize)
	return nil
}

// connect runs the SDK's handshake. Some of its waits (subscriptions/listen) ignore
// deadlines, so everything that it has open is closed when ctx ends.
func (d *dialer) connect(ctx context.Context, c *sdk.Client, t sdk.Transport, opts *sdk.ClientSessionOptions, end context.CancelCauseFunc) (*sdk.ClientSession, error) {
	unhook := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer unhook()
	if d.onStep != nil {
		var once atomic.Bool
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			if once.CompareAndSwap(false, true) {
				d.reportStep(StepConnect)
			}
		}})
	}
	return c.Connect(ctx, t, opts)
}

// setServerInfo stores the server's information from initialize.
func (s *session) setServerInfo(init *sdk.InitializeResult, m *mask.Mask) {
	s.instructions = store.Clip(m.Text(init.Instructions), 64<<10)
	s.version = init.ProtocolVersion
	if caps := init.Capabilities; caps != nil {
		s.prompts, s.resources = caps.Prompts != nil, caps.Resources != nil
	}
	if init.ServerInfo != nil {
		s.serverInfo = strings.TrimSpace(store.Clip(m.Text(init.ServerInfo.Name), 100) + " " + store.Clip(m.Text(init.ServerInfo.Version), 50))
		s.title = store.Clip(strings.Join(strings.Fields(m.Text(init.ServerInfo.Title)), " "), 100)
	}
	s.since = time.Now()
}

// headers returns the headers of a request, with the current credentials.
func (d *dialer) headers(ctx context.Context) (http.Header, error) {
	h, err := d.pool.headers(ctx, d.cfg, d.owner)
	if err == nil {
		knowHeaders(d.mask, d.cfg, h)
	}
	return h, err
}

// roundTripper returns the round tripper for the SDK and for the older transport.
func (d *dialer) roundTripper(ctx context.Context, life context.Context, end context.CancelCauseFunc) (*wire.RoundTripper, error) {
	u, err := url.Parse(d.cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("%w URL of server %s", store.ErrInvalid, d.cfg.Name)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w URL of server %s: it holds a password, which every list would show; use --header-secret Authorization", store.ErrInvalid, d.cfg.Name)
	}
	header, err := d.headers(ctx) // fail early, with a clear error
	if err != nil {
		return nil, err
	}
	t := &wire.RoundTripper{Base: d.pool.base, Scheme: u.Scheme, Host: u.Host, Header: header, Hide: d.mask.Text, Life: life, End: end}
	for _, v := range d.cfg.Headers {
		if v.Hidden() {
			t.Fresh = d.headers
		}
	}
	t.Denied = d.denied
	return t, nil
}
