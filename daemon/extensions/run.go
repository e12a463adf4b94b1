package extensions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nize/mcp/native"
	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/process"
	"nize/store"
)

// Limits of one call.
const (
	stopTime     = 5 * time.Second // to end a child that took too long
	maxResult    = 8 << 20         // bytes
	maxMemory    = store.Size(512 << 20)
	maxProcesses = 64
)

// request is the input of an extension.
type request struct {
	Input   json.RawMessage `json:"input"`
	Context runContext      `json:"context"`
}

// runContext contains the credential in clear text, for the one child that needs it: in its
// standard input, which no other process reads.
type runContext struct {
	native.Context
	Credential *resolved `json:"credential,omitempty"`
}

type resolved struct {
	APIKey      string `json:"apiKey,omitempty"`
	AccessToken string `json:"accessToken,omitempty"`
	TokenType   string `json:"tokenType,omitempty"`
}

// newRequest returns the input of one call; hides masks the secrets in it.
func newRequest(of native.Context, input json.RawMessage) (r request, hides *mask.Mask) {
	r, hides = request{input, runContext{Context: of}}, new(mask.Mask)
	if v := of.Credential; !v.Secret().IsZero() {
		r.Context.Credential = &resolved{v.APIKey.Reveal(), v.AccessToken.Reveal(), v.TokenType}
		hides.Add(v.Secret().Reveal())
	}
	return r, hides
}

// run runs one call in its own process. Every failure is returned as one plain sentence.
func (l *Extensions) run(ctx context.Context, e *extension, of native.Context, input json.RawMessage) (none native.Result, err error) {
	id := "native:" + e.Name
	fail := func(code store.Code, message store.Text) (native.Result, error) {
		return none, &store.CallError{Code: code, Message: message}
	}
	now, err := read(e.dir, l.owner, true)
	if err != nil || now.hash() != e.tool.Code {
		return fail(store.CodeRefused, store.Textf("%s was not run: its files differ from the accepted ones", id))
	}
	asked, hides := newRequest(of, input)
	body, err := json.Marshal(asked)
	if err != nil {
		return none, fmt.Errorf("encoding a call of an extension: %w", err)
	}
	limit := e.timeout()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := process.Run(ctx, l.opt.Spawn, process.Job{
		Argv: e.argv(), Env: environment(), Dir: e.dir, Input: append(body, '\n'),
		MaxOutput: maxResult, Memory: maxMemory, Processes: maxProcesses,
	})
	var ended *process.JobError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fail(store.CodeUnknown, store.Textf("%s did not answer within %s and was ended: the outcome is unknown; check before you run it again", id, store.SpanText(limit)))
	case ctx.Err() != nil:
		return none, ctx.Err()
	case errors.As(err, &ended):
		why := ended.Error()
		if ended.Last != "" {
			why += "; its last words: " + store.RedactText(store.Clip(hides.Text(lastLine(ended.Last)), 300))
		}
		return fail(store.CodeTool, store.Textf("%s failed: %s", id, why))
	case err != nil:
		return fail(store.CodeUnavailable, store.Textf("%s could not be run: %s", id, store.RedactText(store.Line(err.Error()))))
	}
	out, _ = hides.JSON(out)
	result, why := e.decode(out)
	if why != "" {
		return fail(store.CodeTool, store.Textf("%s did not return a result: %s", id, why))
	}
	return result, nil
}

// argv returns the command; a program of the folder gets its absolute path.
func (e *extension) argv() []string {
	argv := append([]string(nil), e.Command...)
	if strings.Contains(argv[0], "/") {
		argv[0] = filepath.Join(e.dir, argv[0])
	}
	return argv
}

// environment returns the environment of a child, which contains nothing of the daemon's
// own. It keeps Python from writing files beside the accepted ones.
func environment() []string {
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// decode parses the output of an extension. why describes what is wrong with it.
func (e *extension) decode(out []byte) (r native.Result, why string) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return r, "it wrote nothing to standard output"
	}
	if err := json.Unmarshal(out, &r); err != nil || out[0] != '{' {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field != "" {
			return r, kind.Field + " is not what it must be"
		}
		return r, fmt.Sprintf("its output is not one JSON object: %q", store.Clip(string(out), 80))
	}
	if bytes.Equal(bytes.TrimSpace(r.StructuredContent), []byte("null")) {
		r.StructuredContent = nil
	}
	if len(r.Content) == 0 && len(r.StructuredContent) == 0 {
		return r, "it has neither content nor structuredContent"
	}
	if e.output != nil && !r.IsError {
		if len(r.StructuredContent) == 0 {
			return r, "it has no structuredContent, which its outputSchema promises"
		}
		if err := e.output.Check(r.StructuredContent); err != nil {
			return r, "structuredContent is not as its outputSchema promises: " + strings.TrimPrefix(err.Error(), "arguments don't fit the schema: ")
		}
	}
	return r, ""
}

func lastLine(text string) string {
	lines := strings.Split(text, "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
