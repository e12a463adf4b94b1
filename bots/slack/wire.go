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
	// maxPause bounds what Slack may ask to wait for.
	maxPause = 2 * time.Minute
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
		slackgo.OptionHTTPClient(&http.Client{Transport: o.Transport, Timeout: callTime}),
		slackgo.OptionLog(log.New(io.Discard, "", 0)), // it would log in a form of its own
		slackgo.OptionAppLevelToken(app.Reveal()),
	}
	if base := o.Config.Get("", "slack.api_url"); base != "" {
		options = append(options, slackgo.OptionAPIURL(strings.TrimSuffix(base, "/")+"/"))
	}
	return &wire{api: slackgo.New(bot.Reveal(), options...), bare: newBare(o, bot), pause: o.testOnlyWait}
}

// call makes one request with the bot token, see repeat.
func (w *wire) call(ctx context.Context, do func(ctx context.Context) error) error {
	err := w.repeat(ctx, do)
	if w.heard != nil {
		w.heard(err)
	}
	return err
}

// repeat makes one request, again after each pause that Slack asks for: what
// was limited was not done.
func (w *wire) repeat(ctx context.Context, do func(ctx context.Context) error) error {
	for try := 1; ; try++ {
		err := do(ctx)
		var limited *slackgo.RateLimitedError
		if !errors.As(err, &limited) || try == maxLimited {
			return told(err)
		}
		if err := w.pause(ctx, min(max(limited.RetryAfter, 100*time.Millisecond), maxPause)); err != nil {
			return err
		}
	}
}

// told gives errors of Slack's that are expected the sentinel they mean.
func told(err error) error {
	switch code(err) {
	case "message_not_found", "thread_not_found", "channel_not_found":
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	case "is_archived", "not_in_channel", "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "restricted_action_non_threadable_channel":
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

// unsure says whether nobody knows if a request was done: its answer is
// missing.
func unsure(err error) bool {
	var limited *slackgo.RateLimitedError
	switch code(err) {
	case "":
		return err != nil && !errors.As(err, &limited)
	case "internal_error", "fatal_error", "request_timeout", "service_unavailable":
		return true // Slack says so itself
	}
	return false
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
