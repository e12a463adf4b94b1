package posting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/queue"
	"nize/bots/slack/incoming"
	"nize/bots/slack/view"
	"nize/bots/slack/wire"
	"nize/store"
)

const (
	// streamTime is when a stream is ended, before Slack's limit of five minutes.
	streamTime = 4 * time.Minute
	// longLimit is how long the beginning of an answer may wait for Slack's limit of about
	// twenty streams a minute per workspace; after that, the answer is an ordinary message.
	longLimit = 5 * time.Second
)

// noStream are Slack's error codes for a text that can't be streamed to its reader.
var noStream = map[string]bool{
	"user_not_found": true, "team_not_found": true, "missing_recipient_user_id": true, "missing_recipient_team_id": true,
	"unknown_method": true, "not_allowed": true, "streaming_not_supported": true, "channel_type_not_supported": true,
	"method_not_supported_for_channel_type": true, "missing_scope": true, "access_denied": true,
}

// Slack's error codes for a stream that has ended: by itself, and by its reader.
const (
	notStreaming = "message_not_in_streaming_state"
	stoppedThere = "stopped_by_user"
)

// blank are the invisible characters at the end of a text.
const blank = " \t\r\n"

// part is one message with a part of a text.
type part struct {
	ts   string
	text string // its content on Slack as far as known, without what Dress adds
	more bool   // closed, because another part follows
}

// writing is a text that is being sent. One goroutine at a time uses it, since a thread's
// messages are sent one after another.
type writing struct {
	id     string // message id
	prefix string // the mention, if any
	parts  []part
	open   bool // the last part is being streamed
	began  time.Time
	plain  bool // edit the text instead of streaming it
	dirty  bool // a request got no response: only an edit of the whole message makes its content certain
	fixed  bool // Slack doesn't allow edits: the rest is posted when it is final
	sparse bool // there is so much traffic that it is edited only once, when it is final
	last   time.Time
}

// texts posts the answers of models, streamed if possible.
type texts struct {
	messages *messages
	lines    *toolLines
	gap      time.Duration // pause between two pieces
	writing  outbox.Unfinished[writing]
}

// showText updates the chat to m's content and returns the ts of its first message, even if
// only a part was sent: the next call for the same message sends the rest.
func (tx *texts) showText(ctx context.Context, at store.Address, m store.Message) (string, error) {
	tx.lines.End(at.Channel + "/" + at.Thread)
	t := tx.writing.Get(m.ID)
	if t == nil {
		t = &writing{id: m.ID, prefix: view.Mention(m)}
		if at.Message != "" { // from before a restart: its current content is unknown
			parts, err := tx.partsAt(ctx, at, m.ID)
			if err != nil {
				return at.Message, err
			}
			for _, p := range parts {
				tx.messages.sent.Know(p.ts)
			}
			t.parts, t.open, t.dirty, t.plain = parts, true, true, true
		}
		tx.writing.Put(m.ID, t)
	}
	text := incoming.Harmless(bots.Plain(m.Text))
	if !m.Final && len(text) > 1 {
		text = strings.TrimSuffix(text, "<") // it may begin something that must be escaped
	}
	text = strings.TrimRight(text, blank) // Slack rejects pieces that are only whitespace
	err := tx.sendText(ctx, at, m, t, t.prefix+text)
	if err != nil && t.dirty && ctx.Err() == nil && tx.writing.Get(m.ID) == t { // otherwise it is sent from the beginning
		err = tx.rewrite(ctx, at, m, t, t.prefix+text)
	}
	if err == nil && m.Final {
		tx.writing.Drop(m.ID)
	}
	if len(t.parts) == 0 {
		return "", err
	}
	return t.parts[0].ts, err
}

// partID returns the id of the nth message of a text while it is posted.
func partID(text string, n int) string { return fmt.Sprintf("%s/%d", text, n) }

func (t *writing) text() string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// sendText updates the chat to text.
func (tx *texts) sendText(ctx context.Context, at store.Address, m store.Message, t *writing, text string) error {
	if !m.Final && (t.fixed || t.sparse && len(t.parts) > 0) {
		return nil
	}
	if t.dirty || !strings.HasPrefix(text, t.text()) {
		return tx.rewrite(ctx, at, m, t, text)
	}
	for rest := text[len(t.text()):]; rest != ""; rest = text[len(t.text()):] {
		if err := tx.waitForPace(ctx, t, m.Final); err != nil {
			return err
		}
		if t.plain {
			return tx.rewrite(ctx, at, m, t, text)
		}
		err := tx.appendPiece(ctx, at, m, t, rest)
		if err != nil {
			return err
		}
	}
	if m.Final && t.open {
		return tx.closeStream(ctx, at, t, false)
	}
	return nil
}

// waitForPace waits until the next piece may be sent.
func (tx *texts) waitForPace(ctx context.Context, t *writing, final bool) error {
	gap := tx.gap
	if t.plain {
		gap *= 2 // Slack limits edits more strictly than pieces
	}
	if left := gap - tx.messages.now().Sub(t.last); !final && !t.last.IsZero() && left > 0 {
		if err := queue.Sleep(ctx, left); err != nil {
			return err
		}
	}
	t.last = tx.messages.now()
	return nil
}

// appendPiece streams the next piece of rest, in a new message if there is none or the last
// one is full or old.
func (tx *texts) appendPiece(ctx context.Context, at store.Address, m store.Message, t *writing, rest string) error {
	if t.open {
		last := &t.parts[len(t.parts)-1]
		piece := strings.TrimPrefix(view.FirstPart(last.text+rest), last.text)
		if strings.Trim(piece, blank) == "" || tx.messages.now().Sub(t.began) > streamTime {
			return tx.closeStream(ctx, at, t, true)
		}
		err := tx.messages.wire.Call(ctx, func(ctx context.Context) error {
			_, _, err := tx.messages.wire.API.AppendStreamContext(ctx, at.Channel, last.ts, slackgo.MsgOptionMarkdownText(piece))
			return err
		})
		switch {
		case err == nil:
			last.text += piece
		case wire.Code(err) == notStreaming, wire.Code(err) == stoppedThere:
			t.open = false // Slack ended it; the text continues in a new message
			// A recent stream was ended by its reader with Slack's Stop: the remaining text
			// is added to that message.
			t.plain = wire.Code(err) == stoppedThere || tx.messages.now().Sub(t.began) < streamTime
			return nil
		case wire.Unsure(err):
			t.dirty = true
		case errors.Is(err, store.ErrNotFound):
			t.open, t.dirty, t.plain = false, true, true
		case wire.Code(err) != "":
			t.dirty, t.plain = true, true // for any reason
		}
		return err
	}
	piece := view.FirstPart(rest)
	options := []slackgo.MsgOption{slackgo.MsgOptionMarkdownText(view.Dress(t.text(), piece, false))}
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	if user := view.SlackID(m.For); user != "" { // required in channels, and by some accounts in direct conversations too
		options = append(options, slackgo.MsgOptionRecipientUserID(user), slackgo.MsgOptionRecipientTeamID(tx.messages.team))
	}
	id := partID(m.ID, len(t.parts))
	tx.notePart(ctx, at, t, "")
	busy := false
	ts, found, err := tx.messages.sent.Post(ctx, at, id, func(ctx context.Context) (ts string, err error) {
		err = tx.messages.wire.Call(ctx, func(ctx context.Context) error {
			_, ts, err = tx.messages.wire.API.StartStreamContext(ctx, at.Channel, options...)
			if after, limited := wire.LimitOf(err); limited && after > longLimit {
				busy = true
				return nil
			}
			return err
		})
		return ts, err
	}, wire.Unsure)
	switch {
	case busy:
		t.plain, t.sparse = true, true
		return nil
	case noStream[wire.Code(err)]:
		t.plain = true
		return nil
	case err != nil:
		return err
	}
	tx.notePart(ctx, at, t, ts)
	t.parts, t.open, t.began = append(t.parts, part{ts: ts, text: piece}), true, tx.messages.now()
	if found { // its content is unknown
		tx.messages.sent.Settle(at, id, ts)
		t.dirty = true
		return tx.rewrite(ctx, at, m, t, t.text())
	}
	return nil
}

// closeStream ends the stream of the last part; it succeeds if the stream has already
// ended. more says that another part follows.
func (tx *texts) closeStream(ctx context.Context, at store.Address, t *writing, more bool) error {
	last := &t.parts[len(t.parts)-1]
	var options []slackgo.MsgOption
	if tail := view.TailOf(t.text()); more && tail != "" {
		options = append(options, slackgo.MsgOptionMarkdownText(tail))
	}
	err := tx.messages.wire.Call(ctx, func(ctx context.Context) error {
		_, _, err := tx.messages.wire.API.StopStreamContext(ctx, at.Channel, last.ts, options...)
		return err
	})
	switch {
	case err == nil:
		t.open, last.more = false, more
		return nil
	case wire.Code(err) == notStreaming, wire.Code(err) == stoppedThere:
		t.open = false
		return nil
	case noStream[wire.Code(err)], errors.Is(err, store.ErrNotFound):
		// The reader can't be streamed to, or the message no longer exists.
		t.open, t.dirty, t.plain = false, true, true
	}
	return err
}

// rewrite sets the content of each part by edits, which can safely be repeated, and adds or
// deletes parts.
func (tx *texts) rewrite(ctx context.Context, at store.Address, m store.Message, t *writing, text string) error {
	if t.open {
		if err := tx.closeStream(ctx, at, t, false); err != nil && wire.Code(err) == "" {
			return err
		}
		t.open = false
	}
	t.plain = true
	want := view.Split(text)
	before := ""
	for i, piece := range want {
		more := i < len(want)-1
		shown := slackgo.MsgOptionMarkdownText(view.Dress(before, piece, more))
		before += piece
		if i < len(t.parts) {
			have := &t.parts[i]
			if !t.dirty && have.text == piece && have.more == more {
				continue
			}
			err := tx.messages.edit(ctx, at.Channel, have.ts, shown)
			if err == nil {
				have.text, have.more = piece, more
				continue
			}
			t.dirty = true
			switch {
			case fixed[wire.Code(err)] && !m.Final:
				t.fixed = true
				return nil
			case !errors.Is(err, store.ErrNotFound) && !fixed[wire.Code(err)]:
				return err
			}
			// A user deleted it, or it can't be edited: continue with a new one, in order.
			if undone := tx.addLostPart(ctx, at, t); undone != nil {
				return undone
			}
			if undone := tx.deletePartsFrom(ctx, at, t, i); undone != nil || i == 0 {
				tx.writing.Drop(t.id)
				return cmp.Or(undone, anew(at, err))
			}
		}
		place := at
		place.Message = ""
		tx.notePart(ctx, at, t, "")
		ts, err := tx.messages.Put(ctx, place, partID(m.ID, i), view.Same(shown))
		if err != nil {
			return err
		}
		tx.notePart(ctx, at, t, ts)
		t.parts = append(t.parts, part{ts: ts, text: piece, more: more})
	}
	if err := tx.deletePartsFrom(ctx, at, t, max(len(want), 1)); err != nil {
		return err
	}
	t.dirty = false
	return nil
}

// anew returns the error for a text whose first message no longer exists: ErrNotFound if
// the caller is updating it, and an error that makes the caller retry if it is posting it.
func anew(at store.Address, err error) error {
	if at.Message != "" {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return fmt.Errorf("the message that was begun is gone: %s", err)
}
