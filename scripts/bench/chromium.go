package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	longAnswer     = 48 << 10 // bytes of Markdown
	askLong        = "Write it at length."
	askShort       = "Say it in short."
	longThread     = 200                  // messages
	longPieceEvery = 8 * time.Millisecond // about 80 tokens a second, twenty times what people read
)

// noChromium is why nothing is painted.
const noChromium = "there is no chromium"

// paint measures the page as a person sees it in a real browser: its first paint, that of a
// long conversation, and the frames while a long answer is written.
func (b *bench) paint(ctx context.Context) (err error) {
	first := row{what: "Chromium, nothing cached: the page to its first paint", unit: "ms"}
	opened := row{what: fmt.Sprintf("Chromium: a conversation of %d messages, from its data to painted", longThread), unit: "ms", floor: 300}
	frame := row{what: fmt.Sprintf("Chromium: longest frame while an answer of %d KB is written", longAnswer>>10), unit: "ms", floor: 50}
	usual := row{what: "Chromium: 99 of 100 of those frames take at most", unit: "ms"}
	defer func() { b.table.add(first); b.table.add(opened); b.table.add(frame); b.table.add(usual) }()
	program, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if err != nil {
		first.missing, opened.missing, frame.missing, usual.missing = noChromium, noChromium, noChromium, noChromium
		return nil
	}
	model := httptest.NewServer(http.HandlerFunc(answerInPieces))
	defer model.Close()
	d, err := b.startNized(ctx, "painted")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.models(ctx, "pieces", model.URL); err != nil {
		return err
	}
	for _, key := range []string{"limits.user.messages", "budgets.user.daily"} {
		if _, err := api.PutSetting.Call(ctx, d.api, api.PutSettingRequest{Key: key, Value: "0"}); err != nil {
			return fmt.Errorf("setting %s: %w", key, err)
		}
	}
	v, err := d.visitor(ctx, "ann")
	if err != nil {
		return err
	}
	for n := range longThread / 2 {
		if err := v.ask(ctx, "chat/threads/"+v.thread+"/messages", map[string]string{"key": fmt.Sprint("short", n), "text": askShort}, nil); err != nil {
			return err
		}
		if err := d.answered(ctx, v.thread); err != nil {
			return err
		}
	}
	var long store.Thread
	if err := v.ask(ctx, "chat/threads", map[string]string{}, &long); err != nil {
		return err
	}
	browser, err := startChromium(ctx, program, filepath.Join(b.dir, "chromium"))
	if err != nil {
		return err
	}
	defer browser.stop()
	at, err := url.Parse(v.base)
	if err != nil {
		return fmt.Errorf("finding the page: %w", err)
	}
	for _, c := range v.http.Jar.Cookies(at) {
		if err := browser.do("Network.setCookie", map[string]any{"name": c.Name, "value": c.Value, "url": v.base, "httpOnly": true}, nil); err != nil {
			return err
		}
	}
	if err := browser.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": whatIsPainted}, nil); err != nil {
		return err
	}
	if first.value, err = browser.measure(v.base+"/app/", `performance.getEntriesByName('first-contentful-paint')[0]?.startTime`); err != nil {
		return err
	}
	if opened.value, err = browser.measure(v.base+"/app/c/"+v.thread, `bench.painted && bench.painted - bench.data`); err != nil {
		return err
	}
	if _, err := browser.measure(v.base+"/app/c/"+long.ID, `document.querySelector('[role=log]') && bench.data && 1`); err != nil {
		return err
	}
	if err := v.ask(ctx, "chat/threads/"+long.ID+"/messages", map[string]string{"key": "long", "text": askLong}, nil); err != nil {
		return err
	}
	var frames []float64
	if err := browser.await(`bench.ended && bench.frames`, &frames); err != nil {
		return err
	}
	if len(frames) == 0 {
		return errors.New("no frame was painted")
	}
	slices.Sort(frames)
	frame.value, usual.value = frames[len(frames)-1], frames[len(frames)*99/100]
	usual.reference = fmt.Sprintf("%d frames", len(frames))
	return nil
}

// whatIsPainted records on a page when the state of its conversation arrived and when it
// was painted, and how long each frame takes while an answer is written, including the last
// frame, in which the whole answer is drawn.
const whatIsPainted = `
const bench = globalThis.bench = { frames: [] };
const readable = Object.getOwnPropertyDescriptor(TextDecoderStream.prototype, 'readable').get;
Object.defineProperty(TextDecoderStream.prototype, 'readable', { get() {
  return readable.call(this).pipeThrough(new TransformStream({ transform(chunk, out) {
    if (chunk.includes('event: thread')) bench.data ??= performance.now();
    out.enqueue(chunk);
  } }));
} });
let last = 0, after = 0;
const frame = () => {
  const now = performance.now();
  if (document.querySelectorAll('.answer').length >= 25 && !bench.painted) setTimeout(() => { bench.painted ??= performance.now() });
  const busy = document.querySelector('[role=log][aria-busy=true] .answer');
  if (last && (busy || after)) bench.frames.push(now - last);
  if (busy) after = 30; else if (after && !--after) bench.ended = true;
  last = now;
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);`

// answered waits until every message of a conversation is answered.
func (d *nized) answered(ctx context.Context, thread string) error {
	return d.until(ctx, "to answer", func(ctx context.Context) bool {
		view, err := api.ShowConversation.Call(ctx, d.api, api.ShowConversationRequest{ID: thread, Reason: "figures"})
		return err == nil && !view.Thread.Open && len(view.Turns) > 0 && view.Turns[len(view.Turns)-1].Role == store.FromModel
	})
}

// longPieces returns the pieces of the long answer: half of it has blocks of every kind,
// the other half is one block of code.
func longPieces() (list []string) {
	size := 0
	add := func(piece string) {
		list, size = append(list, piece), size+len(piece)
	}
	for n := 0; size < longAnswer/2; n++ {
		if n%40 == 0 {
			add(fmt.Sprintf("\n\n## Part %d\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n| 1 | %d |\n\n```go\nfunc part%d() error { return nil }\n```\n\n", n/40, n, n))
		}
		add(fmt.Sprintf("Sentence %d of it says **something** with `code` and goes on for a while. ", n))
	}
	add("\n\n```go\n")
	for n := 0; size < longAnswer; n++ {
		add(fmt.Sprintf("func part%d() error { return nil } // and says why it does so\n", n))
	}
	return list
}

// chromium is a browser with one page, controlled through a pipe.
type chromium struct {
	cmd     *exec.Cmd
	to      *os.File
	from    *bufio.Reader
	session string
	n       int
}

func startChromium(ctx context.Context, program, dir string) (*chromium, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting chromium: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting chromium: %w", err), theirIn.Close(), in.Close())
	}
	c := &chromium{to: in, from: bufio.NewReader(out)}
	c.cmd = exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	c.cmd.Env = append(os.Environ(), "HOME="+dir)
	c.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	c.cmd.WaitDelay = 20 * time.Second
	err = c.cmd.Start()
	err = errors.Join(err, theirIn.Close(), theirOut.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting chromium: %w", err), in.Close(), out.Close())
	}
	var made struct{ TargetID, SessionID string }
	if err = c.do("Target.createTarget", map[string]any{"url": "about:blank"}, &made); err == nil {
		err = c.do("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	}
	c.session = made.SessionID
	if err == nil {
		err = c.do("Page.enable", struct{}{}, nil)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("starting chromium: %w", err)
	}
	return c, nil
}

func (c *chromium) stop() {
	_ = c.to.Close()         // which ends it
	_ = c.cmd.Process.Kill() // or this does
	_ = c.cmd.Wait()         // it was killed
}

// do sends one request and waits for its response; it skips events meanwhile.
func (c *chromium) do(method string, params, answer any) error {
	c.n++
	ask := struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
		Session string `json:"sessionId,omitempty"`
	}{c.n, method, params, c.session}
	line, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("asking chromium for %s: %w", method, err)
	}
	if _, err := c.to.Write(append(line, 0)); err != nil {
		return fmt.Errorf("asking chromium for %s: %w", method, err)
	}
	for {
		line, err := c.from.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("asking chromium for %s: %w", method, err)
		}
		var said struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line[:len(line)-1], &said); err != nil {
			return fmt.Errorf("reading what chromium says: %w", err)
		}
		switch {
		case said.ID != c.n:
			continue
		case said.Error != nil:
			return fmt.Errorf("asking chromium for %s: %s", method, said.Error.Message)
		case answer == nil:
			return nil
		}
		return json.Unmarshal(said.Result, answer)
	}
}

// measure opens a URL and waits for a number.
func (c *chromium) measure(address, expression string) (n float64, err error) {
	if err := c.do("Page.navigate", map[string]any{"url": address}, nil); err != nil {
		return 0, err
	}
	return n, c.await(expression, &n)
}

// await waits until an expression is truthy, and returns its value.
func (c *chromium) await(expression string, value any) error {
	var said struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Text string }
	}
	// Opening a page discards pending expressions.
	for begin := time.Now(); time.Since(begin) < patience; {
		ask := map[string]any{"expression": "new Promise((done) => { const look = () => { const it = " + expression + "; it ? done(it) : setTimeout(look, 50) }; look() })", "awaitPromise": true, "returnByValue": true}
		err := c.do("Runtime.evaluate", ask, &said)
		switch {
		case err != nil && strings.Contains(err.Error(), "context"):
			continue
		case err != nil:
			return err
		case said.ExceptionDetails != nil:
			return fmt.Errorf("looking at the page: %s", said.ExceptionDetails.Text)
		}
		return json.Unmarshal(said.Result.Value, value)
	}
	return errors.New("the page never got there")
}
