package slack

import (
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

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

// wire speaks to Slack's Web API and waits where Slack asks to.
type wire struct {
	api   *slackgo.Client
	bare  *bare
	pause func(ctx context.Context, d time.Duration) error
	heard func(error) // is told what each request with the bot token led to; nil: nobody
}

// wireOptions are what a wire works with.
type wireOptions struct {
	Transport http.RoundTripper // nil is the standard library's
	URL       string            // of the Web API; "" is Slack's
	// Wait waits for Slack's limits until ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
}

// newWire returns a wire for a bot's token; app is the app-level one, or "".
func newWire(o wireOptions, bot, app store.Secret) *wire {
	options := []slackgo.Option{
		slackgo.OptionHTTPClient(&http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // it would log in a form of its own
		slackgo.OptionAppLevelToken(app.Reveal()),
	}
	if o.URL != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(o.URL, "/")+"/"))
	}
	return &wire{api: slackgo.New(bot.Reveal(), options...), bare: newBare(o, bot), pause: o.Wait}
}

// stay follows no redirect: slack-go's forms hold the token, and Slack's methods
// don't move.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// call makes one request with the bot token, see repeat.
func (w *wire) call(ctx context.Context, do func(ctx context.Context) error) error {
	err := w.repeat(ctx, do)
	if w.heard != nil {
		w.heard(err)
	}
	return err
}

// repeat makes one request, again after each pause that Slack asks for: what
// was limited was not done. A pause that ctx would not outlive is not begun.
func (w *wire) repeat(ctx context.Context, do func(ctx context.Context) error) error {
	for try := 1; ; try++ {
		err := do(ctx)
		after, limited := limitOf(err)
		if !limited || try == maxLimited {
			return told(err)
		}
		after = min(max(after, 100*time.Millisecond), maxPause)
		if end, ok := ctx.Deadline(); ok && time.Until(end) < after {
			return err
		}
		if err := w.pause(ctx, after); err != nil {
			return err
		}
	}
}

// post makes a message and returns its ts.
func (w *wire) post(ctx context.Context, channel string, options ...slackgo.MsgOption) (ts string, err error) {
	err = w.call(ctx, func(ctx context.Context) (err error) {
		_, ts, err = w.api.PostMessageContext(ctx, channel, options...)
		return err
	})
	return ts, err
}

// edit replaces a message.
func (w *wire) edit(ctx context.Context, channel, ts string, options ...slackgo.MsgOption) error {
	return w.call(ctx, func(ctx context.Context) error {
		_, _, _, err := w.api.UpdateMessageContext(ctx, channel, ts, options...)
		return err
	})
}

// ephemeral shows a message to one person in a channel.
func (w *wire) ephemeral(ctx context.Context, channel, user string, options ...slackgo.MsgOption) error {
	return w.call(ctx, func(ctx context.Context) error {
		_, err := w.api.PostEphemeralContext(ctx, channel, user, options...)
		return err
	})
}
