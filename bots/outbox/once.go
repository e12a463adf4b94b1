package outbox

import (
	"context"
	"strings"
	"time"

	"nize/store"
)

// A message outside conversations (a text for one person, or a file) has no place that
// could be recorded before it is posted. Instead it carries a mark by which it is found. It
// also refers to an event with a known time: if the event happened in this run, no earlier
// run can have posted the message.

// Prefixes of the ids of such messages.
const (
	saidPrefix = "said/"
	filePrefix = "file/"
)

// SaidID returns the id of a text that answers a person's action.
func SaidID(act, words string) string { return saidPrefix + act + "/" + words }

// SaidWords returns the text in such an id.
func SaidWords(id string) (words string, ok bool) {
	rest, ok := strings.CutPrefix(id, saidPrefix)
	_, words, _ = strings.Cut(rest, "/")
	return words, ok
}

// FileID returns the id of a file; its name is its mark.
func FileID(about, name string) string { return filePrefix + about + "/" + name }

// FileName returns the file name in such an id.
func FileName(id string) (name string, ok bool) {
	return id[strings.LastIndexByte(id, '/')+1:], isFile(id)
}

// fileTime is how long a platform may process a file before it appears, which is after the
// platform's response.
const fileTime = 3 * time.Second

func isFile(id string) bool { return strings.HasPrefix(id, filePrefix) }

// patience returns how long a message with that id may be in flight.
func (s *Sent) patience(id string) time.Duration {
	if isFile(id) {
		return max(s.Patience, fileTime)
	}
	return s.Patience
}

// carriesMark reports whether a message with that id can be identified only by its mark.
func carriesMark(id string) bool {
	return strings.HasPrefix(id, saidPrefix) || isFile(id)
}

// PostOnce posts a marked message once. It first looks for an earlier post: of an earlier
// run if the event is older than this run, and of this run if the response was lost. As
// with [Sent.Post], the error may mean that the message is still in flight.
func (s *Sent) PostOnce(ctx context.Context, at store.Address, id string, since time.Time, post func(context.Context) (string, error), unsure func(error) bool) (message string, err error) {
	at.Message = ""
	if since.Before(s.began) {
		// Allow for clocks that differ by up to a minute.
		message, err = s.findBefore(ctx, at, since.Add(-time.Minute), "", id, isMarked(id))
	}
	if err == nil && message == "" {
		message, _, err = s.Post(ctx, at, id, post, unsure)
	}
	if err == nil {
		s.Settle(at, id, message)
	}
	return message, err
}

func isMarked(id string) func(SentMessage) bool {
	m := store.Message{ID: id, Kind: store.NoticeMessage}
	return func(sent SentMessage) bool { return sent.Is(m) }
}
