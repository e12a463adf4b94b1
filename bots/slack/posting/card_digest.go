package posting

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"nize/bots/slack/view"
	"nize/store"
)

// cardDigest is the note of what a card says where it stands, kept with its call as a
// digest. Slack takes some 50 edits a minute for a whole workspace (tier 3). A
// restart looks at each card that waits, and a change of a server's at each of
// its cards: those that would not change are left alone, so that what people wait
// for is not held up by hundreds of edits that nobody sees.
type cardDigest struct {
	store Store
	log   *slog.Logger
	call  string
	at    store.Address
}

func (n cardDigest) name() string { return "drawn/" + n.at.Channel + "/" + n.at.Thread }

// is says whether that stands there already. What is noted is forgotten before
// something else is sent, since a crash must not leave a note of what was there.
func (n cardDigest) is(ctx context.Context, c view.CardContent) (bool, error) {
	if n.at.Message == "" {
		return false, nil
	}
	noted, err := n.store.GetPlace(ctx, n.call, n.name())
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
	if err := n.store.MovePlace(ctx, n.call, n.name(), "", store.Address{}); err != nil {
		return false, fmt.Errorf("forgetting what a card said: %w", err)
	}
	return false, nil
}

// put notes that it stands at ts. Without the note it is sent once more.
func (n cardDigest) put(ctx context.Context, ts string, c view.CardContent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	sum, err := sumOf(ts, c)
	if err == nil {
		// No channel: it is no place where a card stands.
		err = n.store.PutPlace(ctx, n.call, n.name(), store.Address{Surface: store.OnSlack, Message: sum})
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the call was erased meanwhile
		n.log.Warn("noting what a card says", "call", n.call, "err", err)
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
