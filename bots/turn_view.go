package bots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// turnView translates the progress of one Work to messages.
type turnView struct {
	c     *Conversation
	s     *outbox.Screen
	whole bool // texts are shown only when complete

	mu                sync.Mutex // guards the fields below; several goroutines call tell
	answeredPrivately int        // position, plus one, of the message that is answered privately
	texts             map[string]*strings.Builder
	only              map[string]string // the only readers of private texts
	open              []string          // ids of texts that are not yet final
	failed            bool
	noticed           bool
	ended             bool
}

func newTurnView(c *Conversation, s *outbox.Screen, whole bool) *turnView {
	return &turnView{c: c, s: s, whole: whole, texts: map[string]*strings.Builder{}, only: map[string]string{}}
}

// tell is passed to Agent.Work.
func (v *turnView) tell(p store.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return // ignore an agent that reports progress after its end
	}
	only := v.onlyLocked(p)
	switch p.Kind {
	case "text":
		v.only[p.Turn] = only
		v.textLocked(p.Turn, p.Delta)
	case "turn":
		v.only[p.Turn] = only
		v.turnLocked(p)
		v.offerLocked(p, only)
	case "tool":
		if p.Tool != nil {
			line := *p.Tool
			if line.Private && v.s.Shared() {
				line.Brief = store.Text{}
			}
			v.s.Put(store.Message{ID: "tool/" + p.ID, Kind: store.ToolMessage, Tool: &line, Final: line.State.Final()})
		}
	case "call":
		if p.Call != nil {
			v.s.Decided(*p.Call)
		}
		if p.Call != nil && (p.Call.Waiting() || v.s.Knows(p.Call.ID)) {
			v.s.Card(p.Call.ID)
		}
		if p.Call != nil {
			results{v.c.o.Calls, v.c.o.ViewLink}.show(v.s, *p.Call)
		}
	case "error":
		v.failed = true
		v.s.Say(store.Message{ID: p.Stored, Kind: store.ErrorMessage, Text: v.s.Words().Text(p.Said), Only: only})
	case "notice", "limit":
		v.noticed = true
		v.s.Say(store.Message{ID: p.Stored, Kind: store.NoticeMessage, Text: v.s.Words().Text(p.Said), Only: only, Limit: p.Kind == "limit"})
	}
}

func (v *turnView) textLocked(id, delta string) {
	b := v.texts[id]
	if b == nil {
		b = &strings.Builder{}
		v.texts[id] = b
		v.open = append(v.open, id)
	}
	if b.Len() > outbox.MaxText {
		return
	}
	b.WriteString(delta)
	if b.Len() > outbox.MaxText {
		b.WriteString(v.s.Words().Say(phrases.Cut))
	}
	if !v.whole && hasWords(b.String()) {
		v.s.Put(store.Message{ID: id, Kind: store.TextMessage, Text: b.String(), Only: v.only[id]})
	}
}

func (v *turnView) turnLocked(p store.Progress) {
	id, text := p.Turn, p.Text
	streamed := v.texts[id]
	delete(v.texts, id)
	if len(text) > outbox.MaxText {
		text = strings.ToValidUTF8(text[:outbox.MaxText], "") + v.s.Words().Say(phrases.Cut)
	}
	if text == "" && streamed != nil {
		text = streamed.String()
	}
	remark, finish := v.s.Words().Text(p.Said), p.Finish
	if p.Ends {
		finish = cmp.Or(finish, store.FinishStop)
	}
	if text = store.WithRemark(text, remark); hasWords(text) {
		v.s.PutStored(store.Message{ID: id, Kind: store.TextMessage, Text: text, Finish: finish, Remark: remark, Only: v.only[id], Final: true}, p.Stored)
		if p.Ends {
			v.s.Answered(cmp.Or(p.Stored, id), v.only[id])
		}
	}
}

// end finalizes what was streamed but never stored, and reports whether an error or a
// notice was shown.
func (v *turnView) end() (failed, noticed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	for _, id := range v.open {
		if b := v.texts[id]; b != nil && hasWords(b.String()) {
			v.s.Put(store.Message{ID: id, Kind: store.TextMessage, Text: b.String(), Only: v.only[id], Final: true})
		}
	}
	return v.failed, v.noticed
}

// hasWords reports whether a text has visible content. Some models begin with blanks;
// platforms don't post a message of blanks only, so it would have no place to record.
func hasWords(text string) bool { return strings.TrimSpace(text) != "" }

// results shows call results in a chat.
type results struct {
	calls Calls
	link  func(store.Call) string // see [Options].ViewLink
}

// show posts the images and files of a call's result to the readers of its answer:
// everybody there, or only the requester. If no renderer shows the result, it posts the
// link to the tool's view, if there is one.
func (r results) show(s *outbox.Screen, call store.Call) {
	if !call.State.Final() {
		return
	}
	found := ImagesOf(call)
	if found.View == nil && r.link != nil && s.Platform.Surface() != store.OnWeb { // the web page shows the view itself
		found.Link = r.link(call)
	}
	if found.Empty() {
		return
	}
	m := store.Message{ID: outbox.ImagesOf(call.ID), Kind: store.ImagesMessage, Link: found.Link, Final: true}
	if p, ok := s.Platform.(outbox.ImagePoster); !ok || !p.PostsImages() {
		if m.Text = found.InTerminal(s.Words()); m.Text == "" {
			return
		}
	}
	if call.Private || call.InPrivateTurn {
		m.Only = call.By
	}
	s.Put(m)
}

// showOf posts the images and files of a call that an answer is based on, or of the call
// that replaced it.
func (r results) showOf(ctx context.Context, s *outbox.Screen, id string) error {
	for id != "" {
		call, err := r.calls.GetCall(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil // it was never made, or was deleted
		}
		if err != nil {
			return fmt.Errorf("reading the images of call %s: %w", id, err)
		}
		r.show(s, call)
		id = call.Successor
	}
	return nil
}
