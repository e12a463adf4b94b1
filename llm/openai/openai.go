// Package openai speaks OpenAI's protocol through go-openai, for every service
// that does: OpenAI, Anthropic, Gemini, Mistral, xAI, Azure, OpenRouter, DeepSeek,
// Groq, Ollama and others with a base URL.
//
// The library makes requests and cuts streams into lines. What is read and
// written is ours, since services differ where its types don't:
//
//   - doer sends: it retries before the first byte, keeps Retry-After, turns
//     every failure into an [llm.ProviderError] without the key, bounds what is
//     read, and follows no redirect.
//   - lines reads: it passes on nothing but data lines, so that keep-alive
//     comments and errors within a stream arrive the same from every service,
//     and makes a stream of a plain JSON answer.
//   - gather collects the pieces of tool calls, whatever a service leaves out.
//   - quirks has where kinds of services differ.
//   - chat speaks Chat Completions; responses speaks the Responses API for
//     models that want it where functions are involved.
//
// A stream is complete only when its reason to finish was seen, or its end by [DONE]
// behind complete calls or a text. One that ends
// without either is an answer that was cut as far as it has text, without its calls,
// and else an error.
//
// What a model once wrote wrongly must not spoil its conversation: function
// names, ids and arguments that a service would refuse go back in a form that it
// takes (names.go).
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

// Options say how a provider is reached. Only Provider is needed.
type Options struct {
	Provider  store.Provider
	Transport http.RoundTripper // [http.DefaultTransport]
	Log       *slog.Logger

	// Timeouts are read for each request: how long one may go without a byte from
	// the service, and how long it may take in all. Nil is 2 min and 10 min.
	Timeouts func() (idle, total time.Duration)
	// Sleep waits between tries; tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
}

// baseURLs of the kinds. Those that aren't here need one.
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

// Client is one provider. It is safe for concurrent use.
type Client struct {
	opt  Options
	base string
	http *http.Client

	// viaResponses remembers the models that refused Chat Completions.
	viaResponses sync.Map // model name → struct{}
	// unopened remembers the models that close reasoning which they never opened.
	unopened sync.Map // model name → struct{}
	// forms remembers in which form models take schemas.
	forms knownForms
}

var _ llm.Model = (*Client)(nil)

// New makes the client of a provider. The error wraps [store.ErrInvalid] for a
// provider that can't be reached as it is described.
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
		// A redirect would carry the key to where it doesn't belong.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// baseURL is where the provider's endpoints are.
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

// library is a go-openai client for one request; d is what sends it.
func (c *Client) library(d *doer) *goopenai.Client {
	cfg := goopenai.DefaultConfig(c.opt.Provider.Key.Reveal())
	cfg.BaseURL = c.base
	cfg.HTTPClient = d
	cfg.EmptyMessagesLimit = 1 << 20
	return goopenai.NewClientWithConfig(cfg)
}

// Generate asks the model once, by Chat Completions or, where the model wants
// that, by the Responses API.
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

// embedBatch is how many texts go into one request: all services take that many.
const embedBatch = 96

// Embedder computes embeddings with one model of the provider.
type Embedder struct {
	// Spent, if set before the first use, is called with what each request came to.
	Spent func(ctx context.Context, u llm.Usage, took time.Duration)

	c     *Client
	model string
}

// Embedder returns the embedder of a model.
func (c *Client) Embedder(model string) *Embedder { return &Embedder{c: c, model: model} }

// Model is the model's name at the provider.
func (e *Embedder) Model() string { return e.model }

// Embeddings returns one vector per text, in order, all of the same length. It
// asks in batches; an error of one is an error of all.
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
	if e.Spent != nil { // also for vectors that turn out to be unfit
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
			d.Index = i // a service that numbers nothing keeps the order
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

// reasoning says whether an OpenAI model thinks first: it takes no temperature.
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
