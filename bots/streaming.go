package bots

import (
	"context"

	"nize/store"
)

// whole reports whether answers are shown only when complete, instead of while they are
// written: as set for the conversation, else as its owner prefers. Answers are streamed if
// the setting can't be read.
func (c *Conversation) whole(ctx context.Context, thread string) bool {
	th, err := c.o.Threads.GetThread(ctx, thread)
	switch {
	case err != nil:
		return false
	case th.Streaming != "":
		return th.Streaming == store.StreamingOff
	}
	return c.o.Config != nil && !store.GetBool(c.o.Config, th.User, "streaming")
}
