package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"nize/store"
)

// Digest is the note of what a card says where it stands, kept with its call as a
// digest. Platforms take few edits a minute, and a restart looks at each card that
// waits, a change of a server's at each of its cards: those that would not change
// are left alone, so that what people wait for is not held up by hundreds of edits
// that nobody sees.
type Digest struct {
	Store interface {
		GetPlace(ctx context.Context, owner, name string) (store.Address, error)
		PutPlace(ctx context.Context, owner, name string, at store.Address) error
		MovePlace(ctx context.Context, owner, from, to string, at store.Address) error
	}
	Log  *slog.Logger
	Call string
	At   store.Address
}

func (d Digest) name() string { return "drawn/" + d.At.Channel + "/" + d.At.Thread }

// Is says whether that stands there already. What is noted is forgotten before
// something else is sent, since a crash must not leave a note of what was there.
func (d Digest) Is(ctx context.Context, content ...any) (bool, error) {
	if d.At.Message == "" {
		return false, nil
	}
	noted, err := d.Store.GetPlace(ctx, d.Call, d.name())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading what a card says: %w", err)
	}
	sum, err := sumOf(d.At.Message, content)
	if err != nil || noted.Message == sum {
		return err == nil, err
	}
	if err := d.Store.MovePlace(ctx, d.Call, d.name(), "", store.Address{}); err != nil {
		return false, fmt.Errorf("forgetting what a card said: %w", err)
	}
	return false, nil
}

// Put notes that it stands in that message. Without the note it is sent once
// more. ctx may have ended.
func (d Digest) Put(ctx context.Context, message string, content ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	sum, err := sumOf(message, content)
	if err == nil {
		// No channel: it is no place where a card stands.
		err = d.Store.PutPlace(ctx, d.Call, d.name(), store.Address{Surface: d.At.Surface, Message: sum})
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the call was erased meanwhile
		d.Log.Warn("noting what a card says", "call", d.Call, "err", err)
	}
}

// sumOf is the digest of a card's message.
func sumOf(message string, content []any) (string, error) {
	raw, err := json.Marshal(append([]any{message}, content...))
	if err != nil {
		return "", fmt.Errorf("encoding a card: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
