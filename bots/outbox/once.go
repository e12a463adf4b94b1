package outbox

import (
	"context"
	"strings"
	"time"

	"nize/store"
)

// What is in no conversation, words to one person or a file, has no place that is
// noted before it is posted. It carries a mark, by which it is found again, and is
// about something that began at a known time: what began in this run, no earlier
// one can have answered.

// Prefixes of the ids of such messages.
const (
	saidPrefix = "said/"
	filePrefix = "file/"
)

// SaidID is the id of words that answer what somebody did.
func SaidID(act, words string) string { return saidPrefix + act + "/" + words }

// SaidWords are the words of such an id.
func SaidWords(id string) (words string, ok bool) {
	rest, ok := strings.CutPrefix(id, saidPrefix)
	_, words, _ = strings.Cut(rest, "/")
	return words, ok
}

// FileID is the id of a file of that name; the name is its mark.
func FileID(about, name string) string { return filePrefix + about + "/" + name }

// FileName is the name of the file that a message of that id is.
func FileName(id string) (name string, ok bool) {
	return id[strings.LastIndexByte(id, '/')+1:], isFile(id)
}

// fileTime is how long a platform may look at a file before it stands there, which
// is after the answer.
const fileTime = 3 * time.Second

func isFile(id string) bool { return strings.HasPrefix(id, filePrefix) }

// patience is how long a message of that id may be on its way.
func (s *Sent) patience(id string) time.Duration {
	if isFile(id) {
		return max(s.Patience, fileTime)
	}
	return s.Patience
}

// carriesMark says whether only a mark tells a message of that id.
func carriesMark(id string) bool {
	return strings.HasPrefix(id, saidPrefix) || isFile(id)
}

// PostOnce makes a message that carries its mark, once: an earlier run may have
// posted it if what it is about began before this one, and this run if the answer
// was lost. As with [Sent.Post] the error may be that it is on its way still.
func (s *Sent) PostOnce(ctx context.Context, at store.Address, id string, since time.Time, post func(context.Context) (string, error), unsure func(error) bool) (message string, err error) {
	at.Message = ""
	if since.Before(s.began) {
		// By any clock that is right to a minute.
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
