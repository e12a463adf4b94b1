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

// Digest records the content that a posted card shows, as a digest kept with its call.
// Platforms allow few edits per minute, while a restart checks every waiting card and a
// change of a server checks all of its cards. Skipping the cards that would not change
// keeps hundreds of invisible edits from delaying the messages that people wait for.
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

// Is reports whether the card already shows this content. If it doesn't, Is deletes the
// record before the caller sends the new content, since a crash must not leave a record of
// the old one.
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

// Put records that a message shows this content. If the record can't be written, the
// content is sent once more. ctx may have ended.
func (d Digest) Put(ctx context.Context, message string, content ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	sum, err := sumOf(message, content)
	if err == nil {
		// No channel: this address is not the place of a card.
		err = d.Store.PutPlace(ctx, d.Call, d.name(), store.Address{Surface: d.At.Surface, Message: sum})
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the call was erased in the meantime
		d.Log.Warn("noting what a card says", "call", d.Call, "err", err)
	}
}

// sumOf returns the digest of a card's message.
func sumOf(message string, content []any) (string, error) {
	raw, err := json.Marshal(append([]any{message}, content...))
	if err != nil {
		return "", fmt.Errorf("encoding a card: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
