package bots

import (
	"context"

	"nize/store"
)

// whole says whether the answers of a conversation are shown when they are
// whole, and not while they are written: as was said for it, else as
// who began it likes it. What can't be read is streamed.
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
