package slack

import (
	"context"
	"errors"
	"time"

	"nize/bots/queue"
	"nize/bots/slack/wire"
)

// Whether the bot's own token still works. A link of Socket Mode lives by the
// app-level token: it stays up when the app was uninstalled, and nothing that
// nize says gets through. So what Slack answers to the bot token counts too.

// proveEvery is how often the token is tried where nothing else tells of it.
const proveEvery = 10 * time.Minute

// checkAnswer takes what a request with the bot token led to.
func (l *live) checkAnswer(err error) {
	gone := ""
	switch c := wire.Code(err); {
	case wire.TokenGone[c] != "":
		gone = c + ": " + wire.TokenGone[c]
	case err != nil:
		return // of that request only
	}
	switch changed := l.b.SetFault(l, gone); {
	case changed && gone != "":
		l.log.Error("Slack refuses the bot token", "err", err, "cure", wire.TokenGone[wire.Code(err)])
	case changed:
		l.log.Info("Slack takes the bot token again")
	}
}

// keepTestingToken tries the token now and then until ctx ends.
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
