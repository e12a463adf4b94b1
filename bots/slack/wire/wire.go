// Package wire makes requests to Slack's Web API, with rate limits and retries. It maps errors
// to sentinels.
//
// A [Client] uses the bot token through slack-go; a [Raw] call is one that slack-go doesn't
// make as needed. Downloading files and opening Socket Mode links are here too.
package wire

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots/queue"
	"nize/store"
	"nize/store/backoff"
)

const (
	// callTime limits one request to Slack.
	callTime = 30 * time.Second
	// maxLimited is how often one request may be rate-limited.
	maxLimited = 20
	// maxPause limits how long nize waits on Slack's request. It is far above the usual
	// values, because a request made too early is refused again and counts.
	maxPause = time.Hour
	// unsaidPause is the pause if Slack doesn't say how long to wait.
	unsaidPause = 5 * time.Second
)

// Client makes Web API requests and waits when Slack asks for it.
type Client struct {
	API      *slackgo.Client
	Raw      *Raw
	Wait     func(ctx context.Context, d time.Duration) error
	OnAnswer func(error) // gets the result of each request with the bot token; may be nil
}

// Options configure a [Client].
type Options struct {
	Transport http.RoundTripper // nil means the standard library's
	URL       string            // of the Web API; "" means Slack's
	// Wait waits for Slack's limits until ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
}

// New returns a Client for a bot token; app is the app-level token, or "".
func New(o Options, bot, app store.Secret) *Client {
	options := []slackgo.Option{
		slackgo.OptionHTTPClient(&http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // it would log in its own format
		slackgo.OptionAppLevelToken(app.Reveal()),
	}
	if o.URL != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(o.URL, "/")+"/"))
	}
	return &Client{API: slackgo.New(bot.Reveal(), options...), Raw: newRaw(o, bot), Wait: o.Wait}
}

// stay follows no redirects: slack-go's forms contain the token, and Slack's methods don't
// move.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call makes one request with the bot token, see repeat.
func (w *Client) Call(ctx context.Context, do func(ctx context.Context) error) error {
	err := w.repeat(ctx, do)
	if w.OnAnswer != nil {
		w.OnAnswer(err)
	}
	return err
}

// repeat makes one request, and repeats it after each pause that Slack asks for: a limited
// request was not carried out. It returns instead of starting a pause that exceeds ctx's
// deadline.
func (w *Client) repeat(ctx context.Context, do func(ctx context.Context) error) error {
	for try := 1; ; try++ {
		err := do(ctx)
		after, limited := LimitOf(err)
		if !limited || try == maxLimited {
			return sentinel(err)
		}
		after = min(max(after, 100*time.Millisecond), maxPause)
		if end, ok := ctx.Deadline(); ok && time.Until(end) < after {
			return err
		}
		if err := w.Wait(ctx, after); err != nil {
			return err
		}
	}
}

// Post posts a message and returns its ts.
func (w *Client) Post(ctx context.Context, channel string, options ...slackgo.MsgOption) (ts string, err error) {
	err = w.Call(ctx, func(ctx context.Context) (err error) {
		_, ts, err = w.API.PostMessageContext(ctx, channel, options...)
		return err
	})
	return ts, err
}

// Edit replaces a message.
func (w *Client) Edit(ctx context.Context, channel, ts string, options ...slackgo.MsgOption) error {
	return w.Call(ctx, func(ctx context.Context) error {
		_, _, _, err := w.API.UpdateMessageContext(ctx, channel, ts, options...)
		return err
	})
}

// Ephemeral shows a message to one person in a channel.
func (w *Client) Ephemeral(ctx context.Context, channel, user string, options ...slackgo.MsgOption) error {
	return w.Call(ctx, func(ctx context.Context) error {
		_, err := w.API.PostEphemeralContext(ctx, channel, user, options...)
		return err
	})
}

// TestToken tests the bot token; OnAnswer gets the result.
func (w *Client) TestToken(ctx context.Context) error {
	err := w.Call(ctx, func(ctx context.Context) error {
		_, err := w.API.AuthTestContext(ctx)
		return err
	})
	if TokenGone[Code(err)] != "" {
		return nil // OnAnswer got it
	}
	return err
}

// OpenView opens a dialog; its trigger expires after three seconds.
func (w *Client) OpenView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (opened *slackgo.ViewResponse, err error) {
	err = w.Call(ctx, func(ctx context.Context) (err error) {
		opened, err = w.API.OpenViewContext(ctx, trigger, view)
		return err
	})
	return opened, err
}

// UpdateView replaces a dialog; hash identifies the expected state, "" for any.
func (w *Client) UpdateView(ctx context.Context, id, hash string, view slackgo.ModalViewRequest) error {
	return w.Call(ctx, func(ctx context.Context) error {
		_, err := w.API.UpdateViewContext(ctx, view, "", hash, id)
		return err
	})
}

// Work is tried workTries times, with pauses of at most workPause: acknowledged work
// survives a Slack outage of a quarter of an hour, but is not retried forever.
const (
	workTries = 20
	workPause = time.Minute
)

// Retry calls do and retries temporary errors.
func (w *Client) Retry(ctx context.Context, do func(context.Context) error) error {
	pause := backoff.Exponential{First: time.Second, Most: workPause}
	for try := 1; ; try++ {
		err := queue.Guard(func() error { return do(ctx) })
		if err == nil || Lasting(err) || try == workTries || ctx.Err() != nil {
			return err
		}
		if err := w.Wait(ctx, pause.After(try)); err != nil {
			return err
		}
	}
}
