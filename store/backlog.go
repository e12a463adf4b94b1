package store

import "context"

// Backlog remembers which conversations a chat may lag behind in, so that a
// start finds what the store has and the chat lacks without reading all of
// them. A conversation is noted by [Threads.Append], and by a change of a call
// that was ever put to people, in the same transaction; what is shown nowhere
// that lasts (a terminal, HTTP) never is.
type Backlog interface {
	// Behind returns the conversations that are noted, with the place of the
	// first turn that may lack in the chat.
	LaggingThreads(ctx context.Context) (map[string]int, error)
	// Shown notes that the chat has all of a conversation before turn next.
	// Unless it has more turns by now, or is open, it is not behind any more.
	RecordShown(ctx context.Context, thread string, next int) error
}
