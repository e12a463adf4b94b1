// Package wire makes requests to Discord and receives its events, with rate limits, retries and
// resumes.
//
// Requests use discordgo's rate-limit buckets. Unlike discordgo, waits end with the
// context, rate limits are handled here, and no request that may have been carried out is
// repeated automatically.
//
// The gateway is nize's own. With discordgo's session in its place, its raw events stored by a
// handler that it waits for and its reconnecting off, the bot passed TestDrops, TestPanics,
// TestMangledEvents and TestMissed, but not TestLinkEnds, since the session doesn't report a
// close code such as that of a revoked token, nor TestDeaf, since it resumes no link whose
// heartbeats were not acknowledged. TestLibraryGateway shows with the session alone what
// stands in the way: an event counts as received before its handler returns and can't be
// requested again, opening never returns if a session can't be resumed, no close code is
// reported, and a null frame ends the process.
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
	"nize/store/backoff"
)

// DefaultURL is the URL of Discord's API.
const DefaultURL = "https://discord.com/api/"

const (
	version  = "v9/"
	callTime = 30 * time.Second
	// maxTries is how often a repeatable request is tried.
	maxTries = 4
	// maxWait is how long a request waits for Discord's limits before it fails; the caller
	// decides what happens then.
	maxWait = 2 * time.Minute
	// maxPerSecond and maxAtOnce keep the total of all requests below Discord's 50 per
	// second.
	maxPerSecond = 40
	maxAtOnce    = 8
	// maxBuckets limits how many rate-limit buckets are kept, one per route and channel.
	maxBuckets = 10_000
)

// Options configure a [Client].
type Options struct {
	Transport http.RoundTripper
	URL       string // "" means [DefaultURL]
	Wait      func(ctx context.Context, d time.Duration) error
}

// Client sends requests for one bot.
type Client struct {
	session *discordgo.Session
	base    string
	token   string
	wait    func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex // guards the fields below
	limits  *discordgo.RateLimiter
	buckets map[string]bool
	slot    time.Time // earliest time of the next request
}

// New returns a client without making a request.
func New(o Options, token store.Secret) *Client {
	s, _ := discordgo.New("Bot " + token.Reveal()) // never fails
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

// Request is an API request.
type Request struct {
	Method, Path string // the path after the version
	Body         any
	Files        []File
	Into         any // receives the decoded response; nil discards it
	// Once marks a request that must not be carried out twice: it is not repeated if its
	// outcome is unknown.
	Once bool
	// Hook marks the paths of interactions, which contain their own token and don't count
	// against the bot's limit.
	Hook bool
}

// File is an attachment of a message.
type File struct {
	Name string
	Data []byte
}

// Do sends a request, waits for rate limits, and retries if the request may be repeated.
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
		pause := backoff.Exponential{First: 500 * time.Millisecond}.After(try)
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

// send sends a request once, when its limits allow.
func (c *Client) send(ctx context.Context, r Request, contentType string, body []byte) (answer []byte, err error) {
	b, err := c.bucket(ctx, r)
	if err != nil {
		return nil, err
	}
	answer, err = c.session.RequestWithLockedBucket(r.Method, c.base+r.Path, contentType, body, b, 0,
		discordgo.WithContext(ctx), discordgo.WithRestRetries(0), discordgo.WithRetryOnRatelimit(false))
	return answer, plain(err)
}

// bucket takes one request from the bucket of r's route and locks the bucket; the response
// unlocks it. An interaction gets its own temporary bucket, because there is no second
// request of its kind.
func (c *Client) bucket(ctx context.Context, r Request) (*discordgo.Bucket, error) {
	if r.Hook {
		return discordgo.NewRatelimiter().LockBucket(""), nil
	}
	limits, b := c.bucketOf(r)
	for {
		b.Lock()
		pause := limits.GetWaitTime(b, 1)
		if pause == 0 {
			// The lock is held meanwhile, so that no other request takes the slot that this
			// one waits for.
			if err := c.waitForSlot(ctx); err != nil {
				b.Unlock()
				return nil, err
			}
			if pause = limits.GetWaitTime(b, 1); pause == 0 { // Discord may have asked all requests to wait
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

// waitForSlot spreads all requests: a few at once, and no more per second than Discord
// accepts.
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

// bucketOf returns a request's bucket.
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

// route returns the path without the ids that don't select a separate limit, and without
// tokens.
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

// plain removes from an error what must not be logged: the URL may contain the token of an
// interaction.
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
		return &unsure{err} // a failure on Discord's side, or a truncated response
	}
	return nil
}
