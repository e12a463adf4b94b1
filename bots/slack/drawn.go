package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"nize/bots/slack/view"
	"nize/store"
)

// cardNote is the note of what a card says where it stands, kept with its call as a
// digest. Slack takes some 50 edits a minute for a whole workspace (tier 3). A
// restart looks at each card that waits, and a change of a server's at each of
// its cards: those that would not change are left alone, so that what people wait
// for is not held up by hundreds of edits that nobody sees.
type cardNote struct {
	l    *live
	call string
	at   store.Address
}

func (l *live) noteOf(call string, at store.Address) cardNote { return cardNote{l, call, at} }

func (n cardNote) name() string { return "drawn/" + n.at.Channel + "/" + n.at.Thread }

// is says whether that stands there already. What is noted is forgotten before
// something else is sent, since a crash must not leave a note of what was there.
func (n cardNote) is(ctx context.Context, c view.CardContent) (bool, error) {
	if n.at.Message == "" {
		return false, nil
	}
	noted, err := n.l.b.o.Store.GetPlace(ctx, n.call, n.name())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading what a card says: %w", err)
	}
	sum, err := sumOf(n.at.Message, c)
	if err != nil || noted.Message == sum {
		return err == nil, err
	}
	if err := n.l.b.o.Store.MovePlace(ctx, n.call, n.name(), "", store.Address{}); err != nil {
		return false, fmt.Errorf("forgetting what a card said: %w", err)
	}
	return false, nil
}

// put notes that it stands at ts. Without the note it is sent once more.
func (n cardNote) put(ctx context.Context, ts string, c view.CardContent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTime)
	defer cancel()
	sum, err := sumOf(ts, c)
	if err == nil {
		// No channel: it is no place where a card stands.
		err = n.l.b.o.Store.PutPlace(ctx, n.call, n.name(), store.Address{Surface: store.OnSlack, Message: sum})
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the call was erased meanwhile
		n.l.log.Warn("noting what a card says", "call", n.call, "err", err)
	}
}

// sumOf is the digest of a card's message.
func sumOf(ts string, c view.CardContent) (string, error) {
	raw, err := json.Marshal([]any{ts, c.Edited, c.Blocks})
	if err != nil {
		return "", fmt.Errorf("encoding a card: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// suspendedMark is the name under which it is noted that a conversation's session
// shows that it waits: like a card, that is not said again after a restart.
const suspendedMark = "suspended"

// suspended says whether that is noted.
func (l *live) suspended(ctx context.Context, thread string) (bool, error) {
	_, err := l.b.o.Store.GetPlace(ctx, thread, suspendedMark)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("reading what a session shows: %w", err)
	}
	return err == nil, nil
}

// noteSuspended notes it, or forgets it.
func (l *live) noteSuspended(ctx context.Context, thread string, yes bool) error {
	to := ""
	if yes {
		to = suspendedMark
	}
	if err := l.b.o.Store.MovePlace(ctx, thread, suspendedMark, to, store.Address{Surface: store.OnSlack}); err != nil {
		return fmt.Errorf("noting what a session shows: %w", err)
	}
	return nil
}
