// Package wire makes requests of Slack's Web API: no faster than Slack wants,
// again where what went wrong passes by itself, and with errors that say what
// they mean to the rest of the house.
//
// A [Client] speaks with the bot token through slack-go; a [Raw] call is one
// that slack-go does not make as it should. A file is downloaded, and a link of
// Socket Mode opened, here too.
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
)

const (
	// callTime bounds one request to Slack.
	callTime = 30 * time.Second
	// maxLimited is how often one request may meet Slack's limits.
	maxLimited = 20
	// maxPause bounds what Slack may ask to wait for. It is far above what Slack
	// asks for: what comes before the time is over is refused again, and counts.
	maxPause = time.Hour
	// unsaidPause is the pause where Slack does not say how long to wait.
	unsaidPause = 5 * time.Second
)

// Client speaks to Slack's Web API and waits where Slack asks to.
type Client struct {
	API      *slackgo.Client
	Raw      *Raw
	Wait     func(ctx context.Context, d time.Duration) error
	OnAnswer func(error) // is told what each request with the bot token led to; nil: nobody
}

// Options are what a wire works with.
type Options struct {
	Transport http.RoundTripper // nil is the standard library's
	URL       string            // of the Web API; "" is Slack's
	// Wait waits for Slack's limits until ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
}

// New returns a wire for a bot's token; app is the app-level one, or "".
func New(o Options, bot, app store.Secret) *Client {
	options := []slackgo.Option{
		slackgo.OptionHTTPClient(&http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // it would log in a form of its own
		slackgo.OptionAppLevelToken(app.Reveal()),
	}
	if o.URL != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(o.URL, "/")+"/"))
	}
	return &Client{API: slackgo.New(bot.Reveal(), options...), Raw: newRaw(o, bot), Wait: o.Wait}
}

// stay follows no redirect: slack-go's forms hold the token, and Slack's methods
// don't move.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Call makes one request with the bot token, see repeat.
func (w *Client) Call(ctx context.Context, do func(ctx context.Context) error) error {
	err := w.repeat(ctx, do)
	if w.OnAnswer != nil {
		w.OnAnswer(err)
	}
	return err
}

// repeat makes one request, again after each pause that Slack asks for: what
// was limited was not done. A pause that ctx would not outlive is not begun.
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

// Post makes a message and returns its ts.
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

// TestToken tries the bot token; what Slack says goes to OnAnswer.
func (w *Client) TestToken(ctx context.Context) error {
	err := w.Call(ctx, func(ctx context.Context) error {
		_, err := w.API.AuthTestContext(ctx)
		return err
	})
	if TokenGone[Code(err)] != "" {
		return nil // OnAnswer has it
	}
	return err
}

// OpenView opens a dialog; its trigger lives for three seconds.
func (w *Client) OpenView(ctx context.Context, trigger string, view slackgo.ModalViewRequest) (opened *slackgo.ViewResponse, err error) {
	err = w.Call(ctx, func(ctx context.Context) (err error) {
		opened, err = w.API.OpenViewContext(ctx, trigger, view)
		return err
	})
	return opened, err
}

// UpdateView replaces a dialog; hash says which state of it was seen, "" for any.
func (w *Client) UpdateView(ctx context.Context, id, hash string, view slackgo.ModalViewRequest) error {
	return w.Call(ctx, func(ctx context.Context) error {
		_, err := w.API.UpdateViewContext(ctx, view, "", hash, id)
		return err
	})
}

// Work is tried workTries times before it is given up, with pauses of at most
// workPause: what was acknowledged outlives an outage of Slack of a quarter of an
// hour, and is not tried for ever.
const (
	workTries = 20
	workPause = time.Minute
)

// Retry does something, again after what may pass by itself.
func (w *Client) Retry(ctx context.Context, do func(context.Context) error) error {
	pause := time.Second
	for try := 1; ; try++ {
		err := queue.Guard(func() error { return do(ctx) })
		if err == nil || Lasting(err) || try == workTries || ctx.Err() != nil {
			return err
		}
		if err := w.Wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, workPause)
	}
}
