package web

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// PersonMessage is the kind of a person's message.
const PersonMessage store.MessageKind = "person"

// Message is a message of the page: a platform message with the texts that the page needs.
type Message struct {
	store.Message
	By   string    `json:"by,omitempty"` // author of a person's message
	At   time.Time `json:"at,omitzero"`
	Call string    `json:"call,omitempty"` // the call of a line, a card or images
	// Words is a card in the reader's language.
	Words *bots.CardParts `json:"words,omitempty"`
	Line  *Line           `json:"line,omitempty"`
	View  bool            `json:"view,omitempty"`  // the call has a view to open
	Files []File          `json:"files,omitempty"` // attached to a person's message
	// Offer is the position of an answer that only its reader can read and can share with
	// the conversation's other readers.
	Offer int `json:"share,omitempty"`
	// Cut is set if an answer is incomplete: it was stopped or interrupted.
	Cut bool `json:"cut,omitempty"`
	// For a message about a call's result: Pictures is the number of pictures, and Rendered
	// is a renderer's view, for people who may read it.
	Pictures int            `json:"pictures,omitempty"`
	Rendered *bots.Rendered `json:"rendered,omitempty"`
}

// File is a file attached to a message.
type File struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Kind store.FileKind `json:"kind"`
	Size int64          `json:"size,omitempty"`
	Note string         `json:"note,omitempty"` // why it was not read, in the reader's language
	Turn string         `json:"turn,omitempty"` // the stored turn that has it
	why  store.File
}

// Line describes a tool call in the reader's language.
type Line struct {
	Title string `json:"title"`
	State string `json:"state"` // in one word
	Brief string `json:"brief,omitempty"`
	Took  int64  `json:"took_ms,omitempty"`
	Opens bool   `json:"opens,omitempty"` // there is a call to open
}

// Worded adds the texts in its reader's language to a message.
func Worded(m Message, r bots.Reader) Message {
	words := phrases.For(r.Locale)
	m.Files = slices.Clone(m.Files) // each reader gets a copy
	for i := range m.Files {
		m.Files[i].Note = bots.UnreadLine(words, []store.File{m.Files[i].why})
	}
	switch {
	case m.Card != nil:
		parts := bots.PartsOf(*m.Card, r)
		m.Words, m.Call = &parts, m.Card.ID
	case m.Tool != nil:
		line := Line{Title: m.Tool.Name, State: words.Text(bots.LineState(m.Tool.State)), Brief: bots.Escape(words.Text(m.Tool.Brief))}
		if title, ok := bots.Lookup(m.Tool.Name, words); ok {
			line.Title = title
		}
		if m.Line != nil {
			line.Took, line.Opens = m.Line.Took, m.Line.Opens
		}
		m.Line, m.Call = &line, strings.TrimPrefix(m.ID, "tool/")
		line.Title = bots.Escape(line.Title)
		line.Opens = !m.Tool.Unmade && (line.Opens || m.Tool.State.Final() && strings.Contains(m.Tool.Name, ":"))
	case m.Kind == store.ImagesMessage:
		m.Call, _ = outbox.CallOfImages(m.ID)
	}
	return m
}

// Returned adds what can be shown of a call's result to a message; the call is already
// limited to what its reader may read.
func Returned(m Message, call store.Call, r bots.Reader) Message {
	found := bots.ImagesOf(call)
	if m.Pictures = len(found.List); found.View != nil {
		rendered := bots.RenderedView(*found.View, phrases.For(r.Locale))
		m.Rendered = &rendered
	}
	return m
}

// Record is a stored conversation for one reader: its turns and calls as far as they may
// read them, the cards of calls that needed approval, and the messages that are not turns
// yet.
type Record struct {
	Turns  []store.Turn
	Calls  []store.Call
	Cards  map[string]store.Card
	Queued []store.Inbound
	Reader string // the reader
}

// Asked reports whether a call needed approval, so that it has a card.
func Asked(c store.Call) bool { return !c.Expires.IsZero() }

// History returns a conversation's messages, oldest first. A call has either a card or a
// line, because its card contains everything the line would.
func History(rec Record, r bots.Reader) []Message {
	calls := map[string]store.Call{}
	for _, c := range rec.Calls {
		calls[c.ID] = c
	}
	results := map[string]store.Turn{} // keyed by call
	for _, t := range rec.Turns {
		if t.Role == store.FromTool {
			results[t.CallID] = t
		}
	}
	list := []Message{} // null is no list to the page
	add := func(m Message) { list = append(list, Worded(m, r)) }
	text := func(t store.Turn) string {
		said := phrases.For(r.Locale).Text(t.Said)
		switch {
		case t.Role == store.FromModel:
			return store.WithRemark(t.Text, said)
		case said != "":
			return said
		}
		return t.Text
	}
	for i, t := range rec.Turns {
		id := store.TurnID(t.Thread, t.N)
		switch t.Role {
		case store.FromUser:
			add(said(store.Inbound{Key: t.Key, Text: t.Text, By: t.By, Files: t.Files}, id, t.At))
		case store.FromNize:
			add(Message{Message: store.Message{ID: id, Kind: store.NoticeMessage, Text: text(t), Final: true}, At: t.At, Cut: t.Said.String() == string(phrases.TurnStopped)})
		case store.FromModel:
			if strings.TrimSpace(text(t)) != "" {
				m := Message{Message: store.Message{ID: id, Kind: store.TextMessage, Text: text(t), Final: true, Turn: id}, At: t.At, Cut: t.Finish == store.FinishCut || t.Finish == store.FinishLength}
				if t.For != "" && t.For == rec.Reader && t.SharedBy == "" && len(t.Calls) == 0 && r.At.Shared() {
					m.Offer = t.N
				}
				add(m)
			}
			for _, asked := range t.Calls {
				if _, made := calls[asked.ID]; made {
					addCall(add, asked.ID, calls, rec.Cards)
					continue
				}
				result, answered := results[asked.ID]
				add(unrecorded(asked, result, answered, wentOn(rec.Turns[i+1:], t)))
			}
		}
	}
	for _, in := range rec.Queued {
		given := slices.ContainsFunc(rec.Queued, func(o store.Inbound) bool { return o.Instead == in.Key }) // replaced by another message
		if !given && !slices.ContainsFunc(rec.Turns, func(t store.Turn) bool { return t.Role == store.FromUser && t.Key == in.Key }) {
			add(said(in, "", time.Time{}))
		}
	}
	return list
}

// Said returns the message that a person has just written.
func Said(in store.Inbound, at time.Time) Message { return said(in, "", at) }

// QueuedIn returns a message that waits for its turn in a conversation.
func QueuedIn(item store.Item, thread string) (in store.Inbound, ok bool) {
	ok = item.Kind == "message" && json.Unmarshal(item.Payload, &in) == nil && in.Thread == thread
	return in, ok
}

// CountMessages estimates the number of messages of a turn.
func CountMessages(t store.Turn) int {
	switch t.Role {
	case store.FromUser, store.FromNize:
		return 1
	case store.FromModel:
		return 1 + len(t.Calls)
	}
	return 0
}

func said(in store.Inbound, turn string, at time.Time) Message {
	m := Message{Message: store.Message{ID: turn, Kind: PersonMessage, Text: in.Text, Final: true}, By: in.By.Name, At: at}
	if in.Key != "" {
		m.ID = "said/" + in.Key
	}
	for _, f := range in.Files {
		m.Files = append(m.Files, File{ID: f.ID, Name: bots.Escape(f.Name), Kind: f.Kind, Size: f.Size, Turn: turn, why: f})
	}
	return m
}

// wentOn reports whether the conversation continued after a step, so that the step's calls
// without a result will never get one.
func wentOn(later []store.Turn, step store.Turn) bool {
	return slices.ContainsFunc(later, func(t store.Turn) bool {
		return t.In == step.In && (t.Role == store.FromModel || t.Role == store.FromNize && t.Final)
	})
}

// unrecorded returns the line of a call without a record: a lookup, or a call that was
// never made. Without a result, the store doesn't know whether it runs; a running one is
// shown live, in place of this line.
func unrecorded(asked store.ToolCall, result store.Turn, answered, stopped bool) Message {
	line := store.ToolLine{Name: asked.Name, State: store.Planned, Unmade: true}
	if _, lookup := bots.Lookup(asked.Name, phrases.For("")); !lookup {
		var args struct {
			Tool string `json:"tool_id"`
		}
		if json.Unmarshal([]byte(asked.Args), &args) == nil && strings.Contains(args.Tool, ":") {
			line.Name = store.Brief(args.Tool) // people should not see the name execute_tool
		}
	}
	switch {
	case answered:
		if line.State = result.Outcome(); line.State != store.Done {
			line.Brief = store.BriefText(result.Said)
		}
	case stopped:
		line.State = store.Cancelled
	}
	return Message{Message: store.Message{ID: "tool/" + asked.ID, Kind: store.ToolMessage, Tool: &line, Final: line.State.Final()}}
}

// addCall adds the outcome of a call requested by the model, and the call that replaced it.
func addCall(add func(Message), id string, calls map[string]store.Call, cards map[string]store.Card) {
	call, made := calls[id]
	for n := 0; made && n <= len(calls); n++ {
		if card, ok := cards[call.ID]; ok {
			add(Message{Message: store.Message{ID: call.ID, Kind: store.CardMessage, Card: &card, Final: card.State.Final()}, At: call.Created})
		} else {
			m := Message{Message: store.Message{ID: "tool/" + call.ID, Kind: store.ToolMessage, Tool: &store.ToolLine{Name: call.ToolID(), State: call.State}, Final: call.State.Final()}, At: call.Created}
			m.Line = &Line{Opens: call.State.Final()}
			if !call.Started.IsZero() && !call.Finished.IsZero() {
				m.Line.Took = call.Finished.Sub(call.Started).Milliseconds()
			}
			add(m)
		}
		if shown := bots.ImagesOf(call); (len(shown.List) > 0 || shown.View != nil) && call.State.Final() {
			add(Message{Message: store.Message{ID: outbox.ImagesOf(call.ID), Kind: store.ImagesMessage, Final: true}})
		}
		call, made = calls[call.Successor]
	}
}
