// Package wire carries requests to Discord and events from it: rate limits,
// trying again, errors, and the gateway with its resumes.
//
// Requests go through discordgo, whose rate-limit buckets are used with what it
// leaves to others: waiting ends with the context, a limit is waited for here, and
// nothing is sent again by itself that may have been done. The gateway is nize's
// own: discordgo counts an event as received before anybody could store it, ends
// the process where decoding one panics, reconnects for ever after close codes
// that only the operator can mend, and sleeps while it closes.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots/queue"
	"nize/store"
)

// DefaultURL is where Discord's API is.
const DefaultURL = "https://discord.com/api/"

const (
	version  = "v9/"
	callTime = 30 * time.Second
	// maxTries is how often what may be repeated is tried.
	maxTries = 4
	// maxWait is how long a request waits for Discord's limits before it fails;
	// who asked for it decides what becomes of it.
	maxWait = 2 * time.Minute
	// maxPerSecond and maxAtOnce keep all requests together below Discord's 50 in
	// any second.
	maxPerSecond = 40
	maxAtOnce    = 8
	// maxBuckets bounds how many limits are remembered, one a route and channel.
	maxBuckets = 10_000
)

// Options are what a Client works with.
type Options struct {
	Transport http.RoundTripper
	URL       string // "" is [DefaultURL]
	Wait      func(ctx context.Context, d time.Duration) error
}

// Client sends requests for one bot.
type Client struct {
	session *discordgo.Session
	base    string
	token   string
	wait    func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex // guards what follows
	limits  *discordgo.RateLimiter
	buckets map[string]bool
	slot    time.Time // of the next request
}

// New returns a client. It asks nothing yet.
func New(o Options, token store.Secret) *Client {
	s, _ := discordgo.New("Bot " + token.Reveal()) // fails never
	s.Client = &http.Client{Transport: o.Transport, Timeout: callTime}
	s.UserAgent = "DiscordBot (nize, 1)"
	base := o.URL
	if base == "" {
		base = DefaultURL
	}
	if o.Wait == nil {
		o.Wait = queue.Sleep
	}
	return &Client{
		session: s, base: strings.TrimSuffix(base, "/") + "/" + version, token: token.Reveal(), wait: o.Wait,
		limits: discordgo.NewRatelimiter(), buckets: map[string]bool{},
	}
}

// Wait waits for d, or until ctx ends.
func (c *Client) Wait(ctx context.Context, d time.Duration) error { return c.wait(ctx, d) }

// Request is one of the API.
type Request struct {
	Method, Path string // what follows the version
	Body         any
	Files        []File
	Into         any // what the answer is decoded into; nil leaves it
	// Once says that it must not be done twice: it is not repeated where nobody
	// knows whether it was done.
	Once bool
	// Hook is for the paths of interactions, which carry a token of their own and
	// don't count against the bot's limit.
	Hook bool
}

// File goes with a message.
type File struct {
	Name string
	Data []byte
}

// Do sends a request, waits for limits, and repeats what may be repeated.
func (c *Client) Do(ctx context.Context, r Request) error {
	contentType, body, err := r.encode()
	if err != nil {
		return fmt.Errorf("encoding a request: %w", err)
	}
	var answer []byte
	waited := time.Duration(0)
	for try := 1; ; try++ {
		answer, err = c.send(ctx, r, contentType, body)
		if err == nil || ctx.Err() != nil {
			break
		}
		pause := 250 * time.Millisecond << try
		if after, limited := LimitOf(err); limited {
			pause = after + 50*time.Millisecond
			if waited += pause; waited > maxWait {
				break
			}
			try--
		} else if r.Once || try >= maxTries || !Unsure(err) {
			break
		}
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.Method, r.route(), err)
	}
	if r.Into == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, r.Into); err != nil {
		return fmt.Errorf("reading Discord's answer to %s: %w", r.route(), err)
	}
	return nil
}

// send sends it once, when its limits allow.
func (c *Client) send(ctx context.Context, r Request, contentType string, body []byte) (answer []byte, err error) {
	b, err := c.bucket(ctx, r)
	if err != nil {
		return nil, err
	}
	answer, err = c.session.RequestWithLockedBucket(r.Method, c.base+r.Path, contentType, body, b, 0,
		discordgo.WithContext(ctx), discordgo.WithRestRetries(0), discordgo.WithRetryOnRatelimit(false))
	return answer, plain(err)
}

// bucket takes one of what a request's bucket still allows, and locks it: the
// answer unlocks it. An interaction has its own, which is thrown away: there is
// no second request of its kind.
func (c *Client) bucket(ctx context.Context, r Request) (*discordgo.Bucket, error) {
	if r.Hook {
		return discordgo.NewRatelimiter().LockBucket(""), nil
	}
	limits, b := c.bucketOf(r)
	for {
		b.Lock()
		pause := limits.GetWaitTime(b, 1)
		if pause == 0 {
			// The lock is held meanwhile: nobody else may take what this one waits for.
			if err := c.waitForSlot(ctx); err != nil {
				b.Unlock()
				return nil, err
			}
			if pause = limits.GetWaitTime(b, 1); pause == 0 { // Discord may have asked all to wait
				b.Remaining--
				return b, nil
			}
		}
		b.Unlock()
		if pause > maxWait {
			return nil, &limited{after: pause}
		}
		if err := c.wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// waitForSlot spreads all requests together: a few at once, and no more than Discord
// takes in any second.
func (c *Client) waitForSlot(ctx context.Context) error {
	const gap = time.Second / maxPerSecond
	c.mu.Lock()
	now := time.Now()
	if earliest := now.Add(-(maxAtOnce - 1) * gap); c.slot.Before(earliest) {
		c.slot = earliest
	}
	pause := c.slot.Sub(now)
	c.slot = c.slot.Add(gap)
	c.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	return queue.Sleep(ctx, pause)
}

// bucketOf finds a request's bucket.
func (c *Client) bucketOf(r Request) (*discordgo.RateLimiter, *discordgo.Bucket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buckets) >= maxBuckets {
		c.limits, c.buckets = discordgo.NewRatelimiter(), map[string]bool{}
	}
	key := r.Method + " " + r.route()
	c.buckets[key] = true
	return c.limits, c.limits.GetBucket(key)
}

// route is the path with the ids that its limit does not tell apart left out; a
// token in it is left out too.
func (r Request) route() string {
	path, _, _ := strings.Cut(r.Path, "?")
	parts := strings.Split(path, "/")
	for i := 2; i < len(parts); i++ {
		if r.Hook && i == 2 || parts[i] != "" && strings.Trim(parts[i], "0123456789") == "" {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

func (r Request) encode() (contentType string, body []byte, err error) {
	switch {
	case r.Body == nil:
		return "", nil, nil
	case len(r.Files) == 0:
		body, err = json.Marshal(r.Body)
		return "application/json", body, err
	}
	var files []*discordgo.File
	for _, f := range r.Files {
		files = append(files, &discordgo.File{Name: f.Name, Reader: bytes.NewReader(f.Data)})
	}
	return discordgo.MultipartBodyWithJSON(r.Body, files)
}

// plain takes out of an error what must not be logged: the address may hold the
// token of an interaction.
func plain(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		return &unsure{store.NetworkError(asked.Err)}
	}
	var rest *discordgo.RESTError
	var many *discordgo.RateLimitError
	switch {
	case errors.As(err, &rest):
		return refusalOf(rest)
	case errors.As(err, &many):
		return &limited{after: many.RetryAfter}
	case err != nil:
		return &unsure{err} // a fault of Discord's, or an answer that ended early
	}
	return nil
}
