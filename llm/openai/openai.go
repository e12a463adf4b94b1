// Package openai speaks OpenAI's protocol through go-openai, for all compatible services.
//
// These are OpenAI, Anthropic, Gemini, Mistral, xAI, Azure, OpenRouter, DeepSeek, Groq,
// Ollama and others with a base URL. The library makes requests and splits streams into
// lines. The encoding and decoding are our own, because services differ in ways that the
// library's types don't support:
//
//   - doer sends: it retries before the first byte, keeps Retry-After, turns
//     every failure into an [llm.ProviderError] without the key, limits what is
//     read, and follows no redirect.
//   - lines reads: it passes on only data lines, so that keep-alive comments and
//     errors within a stream arrive in the same form from every service, and
//     turns a plain JSON response into a stream.
//   - callGatherer collects the pieces of tool calls, whatever a service omits.
//   - quirks has the differences between kinds of services.
//   - chat uses Chat Completions; responses uses the Responses API for models
//     that need it for functions.
//
// A stream is complete only if it had a finish reason, or ended with [DONE] after complete
// calls or a text. If it ends without either, the reply is cut: it has the text so far and
// no calls, or is an error if there is no text.
//
// Malformed output of a model must not break its conversation: function names, ids and
// arguments that a service would reject are sent back in a form that it accepts (names.go).
package openai

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"nize/llm"
	"nize/store"
)

// Options say how to reach a provider. Only Provider is required.
type Options struct {
	Provider  store.Provider
	Transport http.RoundTripper // default [http.DefaultTransport]
	Log       *slog.Logger

	// Timeouts is called for each request: the maximum time without a byte from the
	// service, and the maximum total time. Nil means 2 min and 10 min.
	Timeouts func() (idle, total time.Duration)
	// Sleep waits between attempts; tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// baseURLs of the kinds; other kinds need an explicit one.
var baseURLs = map[string]string{
	"openai":     "https://api.openai.com/v1",
	"anthropic":  "https://api.anthropic.com/v1",
	"gemini":     "https://generativelanguage.googleapis.com/v1beta/openai",
	"mistral":    "https://api.mistral.ai/v1",
	"xai":        "https://api.x.ai/v1",
	"openrouter": "https://openrouter.ai/api/v1",
	"deepseek":   "https://api.deepseek.com/v1",
	"groq":       "https://api.groq.com/openai/v1",
	"ollama":     "http://127.0.0.1:11434/v1",
}

// Client is the client of one provider. It is safe for concurrent use.
type Client struct {
	opt  Options
	base string
	http *http.Client

	// viaResponses has the models that rejected Chat Completions.
	viaResponses sync.Map // model name → struct{}
	// unopened has the models that close reasoning that they never opened.
	unopened sync.Map // model name → struct{}
	// forms has the schema forms that models accepted.
	forms knownForms
}

var _ llm.Model = (*Client)(nil)

// New returns the client of a provider. The error wraps [store.ErrInvalid] if the
// provider's description is not usable.
func New(opt Options) (*Client, error) {
	base, err := baseURL(opt.Provider)
	if err != nil {
		return nil, err
	}
	if opt.Timeouts == nil {
		opt.Timeouts = func() (idle, total time.Duration) { return 2 * time.Minute, 10 * time.Minute }
	}
	if opt.Sleep == nil {
		opt.Sleep = sleepContext
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{opt: opt, base: base, http: &http.Client{
		Transport: opt.Transport,
		// Following a redirect would send the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// baseURL returns the URL of the provider's endpoints.
func baseURL(p store.Provider) (string, error) {
	base := cmp.Or(p.BaseURL, baseURLs[p.Kind])
	if base == "" {
		return "", fmt.Errorf("%w provider %s: kind %s needs a base URL", store.ErrInvalid, p.Name, p.Kind)
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%w provider %s: base URL must be http(s)://host/path, without user, query and fragment", store.ErrInvalid, p.Name)
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case p.Kind == "azure" && !strings.Contains(path, "/openai/"):
		path += "/openai/v1" // the endpoint that needs no api-version
	case p.Kind == "ollama" && path == "":
		path = "/v1"
	}
	u.Path = path
	return u.String(), nil
}

// library returns a go-openai client for one request, which d sends.
func (c *Client) library(d *doer) *goopenai.Client {
	cfg := goopenai.DefaultConfig(c.opt.Provider.Key.Reveal())
	cfg.BaseURL = c.base
	cfg.HTTPClient = d
	cfg.EmptyMessagesLimit = 1 << 20
	return goopenai.NewClientWithConfig(cfg)
}

// Generate asks the model once, with Chat Completions or, if the model requires it, the
// Responses API.
func (c *Client) Generate(ctx context.Context, req llm.Request, delta func(llm.Delta)) (llm.Reply, error) {
	_, total := c.opt.Timeouts()
	ctx, cancel := context.WithTimeoutCause(ctx, total, errTotal)
	defer cancel()
	if delta == nil {
		delta = func(llm.Delta) {}
	}
	if c.wantsResponses(req) {
		return c.responses(ctx, req, delta)
	}
	reply, err := c.chat(ctx, req, delta)
	if err != nil && c.refersToResponses(err) {
		c.viaResponses.Store(req.Model, struct{}{})
		return c.responses(ctx, req, delta)
	}
	return reply, err
}

// ListModels returns the names of the models that the service offers, sorted.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	idle, _ := c.opt.Timeouts()
	ctx, cancel := context.WithTimeoutCause(ctx, idle, errTotal)
	defer cancel()
	sent := &doer{c: c}
	if _, err := c.library(sent).ListModels(ctx); err != nil && sent.models == nil {
		return nil, c.providerError(ctx, err)
	}
	names := make([]string, len(sent.models))
	for i, name := range sent.models {
		names[i] = strings.TrimPrefix(name, "models/") // Gemini's
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// embedBatch is how many texts one request contains: all services accept that many.
const embedBatch = 96

// Embedder computes embeddings with one model of the provider.
type Embedder struct {
	// Spent, if set before the first use, is called with the usage of each request.
	Spent func(ctx context.Context, u llm.Usage, took time.Duration)

	c     *Client
	model string
}

// Embedder returns the embedder of a model.
func (c *Client) Embedder(model string) *Embedder { return &Embedder{c: c, model: model} }

// Model returns the provider's name of the model.
func (e *Embedder) Model() string { return e.model }

// Embeddings returns one vector per text, in order, all of the same length. It sends
// batches and fails if any of them fails.
func (e *Embedder) Embeddings(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, embedBatch) {
		vecs, err := e.batch(ctx, batch)
		if err != nil {
			return nil, err
		}
		for _, v := range vecs {
			if len(out) > 0 && len(v) != len(out[0]) {
				return nil, e.c.brokenAnswer("its vectors have different lengths", nil)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

func (e *Embedder) batch(ctx context.Context, texts []string) ([][]float32, error) {
	_, total := e.c.opt.Timeouts()
	ctx, cancel := context.WithTimeoutCause(ctx, total, errTotal)
	defer cancel()
	began := time.Now()
	res, err := e.c.library(&doer{c: e.c}).CreateEmbeddings(ctx, goopenai.EmbeddingRequestStrings{
		Input: texts, Model: goopenai.EmbeddingModel(e.model), EncodingFormat: goopenai.EmbeddingEncodingFormatFloat,
	})
	if err != nil {
		return nil, e.c.providerError(ctx, err)
	}
	if e.Spent != nil { // even if the vectors turn out to be unusable
		u := llm.Usage{Prompt: int64(res.Usage.PromptTokens)}
		if u.Prompt <= 0 {
			n := 0
			for _, text := range texts {
				n += len(text)
			}
			u = llm.Usage{Prompt: llm.EstimateTokens(n), Estimated: true}
		}
		e.Spent(ctx, u, time.Since(began))
	}
	vecs := make([][]float32, len(texts))
	for i, d := range res.Data {
		if len(res.Data) == len(texts) && !slices.ContainsFunc(res.Data, func(o goopenai.Embedding) bool { return o.Index != 0 }) {
			d.Index = i // without indexes, the order counts
		}
		if d.Index < 0 || d.Index >= len(vecs) || vecs[d.Index] != nil || len(d.Embedding) == 0 {
			return nil, e.c.brokenAnswer("its vectors do not fit the texts", nil)
		}
		vecs[d.Index] = d.Embedding
	}
	for _, v := range vecs {
		if v == nil {
			return nil, e.c.brokenAnswer("a vector is missing", nil)
		}
	}
	return vecs, nil
}

// reasoning reports whether an OpenAI model is a reasoning model, which accepts no
// temperature.
func (c *Client) reasoning(model string) bool {
	if k := c.opt.Provider.Kind; k != "openai" && k != "azure" {
		return false
	}
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return true
		}
	}
	return false
}
