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
	// streamTime is when a stream is ended before Slack's five minutes do it.
	streamTime = 4 * time.Minute
	// longLimit is how long the beginning of an answer may wait for Slack, which
	// lets a workspace have some twenty streams a minute; above it the answer is
	// an ordinary message.
	longLimit = 5 * time.Second
)

// noStream are Slack's answers where a text can't be streamed to its reader.
var noStream = map[string]bool{
	"user_not_found": true, "team_not_found": true, "missing_recipient_user_id": true, "missing_recipient_team_id": true,
	"unknown_method": true, "not_allowed": true, "streaming_not_supported": true, "channel_type_not_supported": true,
	"method_not_supported_for_channel_type": true, "missing_scope": true, "access_denied": true,
}

// Slack's answers where a stream has ended: by itself, and by who reads it.
const (
	notStreaming = "message_not_in_streaming_state"
	stoppedThere = "stopped_by_user"
)

// blank is what nobody sees at the end of a text.
const blank = " \t\r\n"

// part is one message that holds a piece of a text.
type part struct {
	ts   string
	text string // as Slack has it, as far as we know, without what dress adds
	more bool   // it is closed for another one to follow
}

// writing is a text on its way into the chat. It is settled by one goroutine
// at a time, since a thread's messages are sent one after another.
type writing struct {
	id     string // of the message
	prefix string // who is mentioned
	parts  []part
	open   bool // the last part is being streamed
	began  time.Time
	plain  bool // the text is edited, not streamed
	dirty  bool // a request got no answer: only an edit of the whole makes sure
	fixed  bool // Slack does not let it be edited: what lacks comes when it is final
	sparse bool // so much is said at the time that it is edited once, when it is final
	last   time.Time
}

// texts are the answers of models, streamed where Slack streams.
type texts struct {
	messages *messages
	lines    *toolLines
	gap      time.Duration // between two pieces
	writing  outbox.Unfinished[writing]
}

// showText brings the chat up to what m says and returns the ts of its first
// message, also where only a part of it got there: what is missing comes with
// the next call for the same message.
func (tx *texts) showText(ctx context.Context, at store.Address, m store.Message) (string, error) {
	tx.lines.End(at.Channel + "/" + at.Thread)
	t := tx.writing.Get(m.ID)
	if t == nil {
		t = &writing{id: m.ID, prefix: view.Mention(m)}
		if at.Message != "" { // from before a restart: nobody knows how far it got
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
		text = strings.TrimSuffix(text, "<") // it may become what must be escaped
	}
	text = strings.TrimRight(text, blank) // Slack takes no piece that is nothing else
	err := tx.sendText(ctx, at, m, t, t.prefix+text)
	if err != nil && t.dirty && ctx.Err() == nil && tx.writing.Get(m.ID) == t { // else it begins again
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

// partID names the nth message of a text while it is posted.
func partID(text string, n int) string { return fmt.Sprintf("%s/%d", text, n) }

func (t *writing) text() string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// sendText makes the chat say text.
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
		gap *= 2 // edits are counted more strictly than pieces
	}
	if left := gap - tx.messages.now().Sub(t.last); !final && !t.last.IsZero() && left > 0 {
		if err := queue.Sleep(ctx, left); err != nil {
			return err
		}
	}
	t.last = tx.messages.now()
	return nil
}

// appendPiece streams the next piece of rest, in a new message where there is none
// or the last is full or old.
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
			t.open = false // Slack ended it; the text goes on in a new message
			// A young one was ended by who reads it, with Slack's Stop: what
			// else there is to say is put into the message that they stopped.
			t.plain = wire.Code(err) == stoppedThere || tx.messages.now().Sub(t.began) < streamTime
			return nil
		case wire.Unsure(err):
			t.dirty = true
		case errors.Is(err, store.ErrNotFound):
			t.open, t.dirty, t.plain = false, true, true
		case wire.Code(err) != "":
			t.dirty, t.plain = true, true // whatever it has against it
		}
		return err
	}
	piece := view.FirstPart(rest)
	options := []slackgo.MsgOption{slackgo.MsgOptionMarkdownText(view.Dress(t.text(), piece, false))}
	if at.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(at.Thread))
	}
	if user := view.SlackID(m.For); user != "" { // needed in channels, and by some accounts in private, too
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
	if found { // what it says is not known
		tx.messages.sent.Settle(at, id, ts)
		t.dirty = true
		return tx.rewrite(ctx, at, m, t, t.text())
	}
	return nil
}

// closeStream ends the stream of the last part. One that has ended is fine.
// more says that another part follows.
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
		// The reader can't be streamed to after all, or it is gone there.
		t.open, t.dirty, t.plain = false, true, true
	}
	return err
}

// rewrite makes every part say what it should by edits, which may be repeated
// without harm, and adds or takes away parts.
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
			// Somebody deleted it there, or it can't be edited: it goes on with a
			// new one, in order.
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

// again is why a text must be posted again whose first message is gone: as
// ErrNotFound where its caller believes that it stands, and where the caller is
// posting it as an error that has it try again.
func anew(at store.Address, err error) error {
	if at.Message != "" {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	return fmt.Errorf("the message that was begun is gone: %s", err)
}
