package posting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/discord/view"
	"nize/bots/queue"
	"nize/store"
)

// writing is a text that is being sent. One goroutine at a time uses it, since a thread's
// messages are sent one after another.
type writing struct {
	parts []part
	last  time.Time // of the last request
}

// part is one message of a text.
type part struct {
	id   string
	text string // its content on Discord, "" if unknown
	more bool   // another part follows
}

// showText updates the chat to m's content and returns the id of its first message, even if
// only a part was sent: the next call for the same message sends the rest.
func (po *Poster) showText(ctx context.Context, at store.Address, m store.Message) (string, error) {
	po.tools.End(channelOf(at))
	w := po.texts.Get(m.ID)
	if w == nil {
		w = &writing{}
		if at.Message != "" { // from before a restart: its current content is unknown
			ids, err := po.sent.Parts(ctx, at, m.ID)
			if err != nil {
				return at.Message, err
			}
			for _, id := range ids {
				w.parts = append(w.parts, part{id: id})
			}
			po.sent.Know(ids...)
		}
		po.texts.Put(m.ID, w)
	}
	text := strings.TrimRight(bots.Plain(m.Text), " \t\r\n")
	err := po.write(ctx, at, m, w, text)
	if err == nil && m.Final {
		po.texts.Drop(m.ID)
	}
	if len(w.parts) == 0 {
		return "", err
	}
	return w.parts[0].id, err
}

// write sets the content of a text's messages by edits, which can safely be repeated, and
// adds or deletes messages.
func (po *Poster) write(ctx context.Context, at store.Address, m store.Message, w *writing, text string) error {
	if len(w.parts) > 0 && !m.Final {
		if left := po.o.Pace - po.o.Now().Sub(w.last); left > 0 {
			if err := queue.Sleep(ctx, left); err != nil {
				return err
			}
		}
	}
	w.last = po.o.Now()
	want, before := view.Split(text), ""
	for i, body := range want {
		p := part{text: body, more: i < len(want)-1}
		shown := view.Part(before, body, p.more)
		before += body
		place := at
		place.Message = ""
		if i < len(w.parts) {
			if p.id = w.parts[i].id; w.parts[i] == p {
				continue
			}
			place.Message = p.id
			err := po.edit(ctx, place, shown)
			if errors.Is(err, store.ErrNotFound) { // a user deleted it: continue with a new one, in order
				if undone := po.dropParts(ctx, at, m.ID, w, i); undone != nil {
					return undone
				}
				if i == 0 {
					po.texts.Drop(m.ID)
					if at.Message == "" {
						return fmt.Errorf("the message that was begun is gone: %s", err)
					}
					return err
				}
				place.Message = ""
			} else if err != nil {
				w.parts[i].text = ""
				return err
			} else {
				w.parts[i] = p
				continue
			}
		}
		if i > 0 {
			po.sent.NotePart(ctx, place, m.ID, w.parts[0].id, i)
		}
		id, err := po.Put(ctx, place, fmt.Sprintf("%s/%d", m.ID, i), shown)
		if err != nil {
			return err
		}
		if p.id = id; i > 0 {
			place.Message = id
			po.sent.NotePart(ctx, place, m.ID, w.parts[0].id, i)
		}
		w.parts = append(w.parts, p)
	}
	return po.dropParts(ctx, at, m.ID, w, max(len(want), 1))
}

// dropParts deletes the messages of a text from the nth on, the last one first.
func (po *Poster) dropParts(ctx context.Context, at store.Address, text string, w *writing, n int) error {
	for len(w.parts) > n {
		last := len(w.parts) - 1
		if err := po.delete(ctx, at, w.parts[last].id); err != nil {
			return err
		}
		if last > 0 {
			if err := po.sent.DropPart(ctx, at, text, w.parts[0].id, last); err != nil {
				return fmt.Errorf("forgetting a part of an answer: %w", err)
			}
		}
		w.parts = w.parts[:last]
	}
	return nil
}

// Remove deletes a text, see [outbox.Remover].
func (po *Poster) Remove(ctx context.Context, at store.Address, m store.Message) error {
	ids, err := po.sent.Parts(ctx, at, m.ID)
	if err != nil {
		return err
	}
	w := &writing{}
	for _, id := range ids {
		w.parts = append(w.parts, part{id: id})
	}
	return po.dropParts(ctx, at, m.ID, w, 0)
}
