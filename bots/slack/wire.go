package slack

import (
	"context"
	"errors"
	"fmt"
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

// newWire returns a wire for a bot's token; app is the app-level one, or "".
func newWire(o *Options, bot, app store.Secret) *wire {
	options := []slackgo.Option{
		slackgo.OptionHTTPClient(&http.Client{Transport: o.Transport, Timeout: callTime, CheckRedirect: stay}),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // it would log in a form of its own
		slackgo.OptionAppLevelToken(app.Reveal()),
	}
	if base := o.Config.Get("", "slack.api_url"); base != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(base, "/")+"/"))
	}
	return &wire{api: slackgo.New(bot.Reveal(), options...), bare: newBare(o, bot), pause: o.testOnlyWait}
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

// limitOf says whether an error means that it was too much at once, and how
// long Slack asks to wait.
func limitOf(err error) (after time.Duration, limited bool) {
	if l, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return l.RetryAfter, true
	}
	if s, ok := errors.AsType[slackgo.StatusCodeError](err); ok && s.Code == http.StatusTooManyRequests {
		return unsaidPause, true // without the header that says how long
	}
	switch code(err) {
	case "ratelimited", "rate_limited": // without the status that says so
		return unsaidPause, true
	}
	return 0, false
}

// told gives errors of Slack's that are expected the sentinel they mean.
func told(err error) error {
	switch code(err) {
	case "message_not_found", "thread_not_found", "channel_not_found":
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	if shut[code(err)] {
		return fmt.Errorf("%w: %w", store.ErrRefused, err) // until somebody changes the channel
	}
	return err
}

// code is what Slack calls an error, "" for one that is not Slack's.
func code(err error) string {
	var answer slackgo.SlackErrorResponse
	if errors.As(err, &answer) {
		return answer.Err
	}
	return ""
}

// faulty are Slack's answers where something went wrong on its side.
var faulty = map[string]bool{"internal_error": true, "fatal_error": true, "request_timeout": true, "service_unavailable": true, "messaging_processing_failed": true, "update_failed": true}

// moving are Slack's answers while a workspace or a channel is being moved, by
// themselves over after hours at most.
var moving = map[string]bool{"team_added_to_org": true, "org_login_required": true, "external_channel_migrating": true}

// passes says whether what Slack answered may be over after a while: a fault of
// its own, too much at once, a workspace that is being moved.
func passes(err error) bool {
	c := code(err)
	_, limited := limitOf(err)
	return c == "" || faulty[c] || limited || moving[c]
}

// unsure says whether nobody knows if a request was done: its answer is
// missing.
func unsure(err error) bool {
	if c := code(err); c != "" {
		return faulty[c] // Slack says so itself
	}
	_, limited := limitOf(err)
	return err != nil && !limited
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

// whisper shows text to one person in a channel.
func (w *wire) whisper(ctx context.Context, channel, thread, user, text string) error {
	options := []slackgo.MsgOption{slackgo.MsgOptionText(fallback(text, maxFallback), false), slackgo.MsgOptionBlocks(wordsBlocks(text)...), slackgo.MsgOptionDisableLinkUnfurl()}
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	return w.call(ctx, func(ctx context.Context) error {
		_, err := w.api.PostEphemeralContext(ctx, channel, user, options...)
		return err
	})
}
