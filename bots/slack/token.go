package slack

import (
	"context"
	"errors"
	"time"

	"nize/bots/queue"
	"nize/bots/slack/wire"
)

// Monitoring of the bot token. A Socket Mode link only depends on the app-level token: it
// stays up after the app was uninstalled, although nize can't post any more. So the
// responses to requests with the bot token count too.

// proveEvery is how often the token is tested if there are no other requests.
const proveEvery = 10 * time.Minute

// checkAnswer evaluates the result of a request with the bot token.
func (l *live) checkAnswer(err error) {
	gone := ""
	switch c := wire.Code(err); {
	case wire.TokenGone[c] != "":
		gone = c + ": " + wire.TokenGone[c]
	case err != nil:
		return // this error concerns only that request
	}
	switch changed := l.b.SetFault(l, gone); {
	case changed && gone != "":
		l.log.Error("Slack refuses the bot token", "err", err, "cure", wire.TokenGone[wire.Code(err)])
	case changed:
		l.log.Info("Slack takes the bot token again")
	}
}

// keepTestingToken tests the token periodically until ctx ends.
func (l *live) keepTestingToken(ctx context.Context) {
	for {
		if err := l.wire.TestToken(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			l.log.Debug("trying the bot token", "err", err)
		}
		if queue.Sleep(ctx, proveEvery) != nil {
			return
		}
	}
}
