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

// PersonMessage is the kind of what a person wrote.
const PersonMessage store.MessageKind = "person"

// Message is what the page shows: a message as every platform shows it, and what
// the page needs of it in words.
type Message struct {
	store.Message
	By   string    `json:"by,omitempty"` // who wrote it, of a person's
	At   time.Time `json:"at,omitzero"`
	Call string    `json:"call,omitempty"` // that a line, a card or images tell of
	// Words are a card in the reader's language.
	Words *bots.CardParts `json:"words,omitempty"`
	Line  *Line           `json:"line,omitempty"`
	View  bool            `json:"view,omitempty"`  // the call has one to be opened
	Files []File          `json:"files,omitempty"` // that came with a person's
	// Offer is the place of an answer that its reader alone reads, where others read
	// along with whom it can be shared.
	Offer int `json:"share,omitempty"`
	// Cut is set if an answer is not whole: it was stopped, or broke off.
	Cut bool `json:"cut,omitempty"`
	// Pictures is how many pictures a call returned, and Rendered how a renderer shows
	// its result: of a message about those, to who may read it.
	Pictures int            `json:"pictures,omitempty"`
	Rendered *bots.Rendered `json:"rendered,omitempty"`
}

// File is one that came with a message.
type File struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Kind store.FileKind `json:"kind"`
	Size int64          `json:"size,omitempty"`
	Note string         `json:"note,omitempty"` // why it was not read, in the reader's language
	Turn string         `json:"turn,omitempty"` // the stored turn that has it
	why  store.File
}

// Line tells of a tool in the reader's language.
type Line struct {
	Title string `json:"title"`
	State string `json:"state"` // in a word
	Brief string `json:"brief,omitempty"`
	Took  int64  `json:"took_ms,omitempty"`
	Opens bool   `json:"opens,omitempty"` // there is a call to look at
}

// Worded completes a message with what its reader needs in words.
func Worded(m Message, r bots.Reader) Message {
	words := phrases.For(r.Locale)
	m.Files = slices.Clone(m.Files) // each reader has their own
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

// Returned completes a message about what a call returned with what there is to show of
// that: the call is as its reader may read it.
func Returned(m Message, call store.Call, r bots.Reader) Message {
	found := bots.ImagesOf(call)
	if m.Pictures = len(found.List); found.View != nil {
		rendered := bots.RenderedView(*found.View, phrases.For(r.Locale))
		m.Rendered = &rendered
	}
	return m
}

// Record is a conversation as the store has it, for one reader: its turns as they
// may read them, its calls, the cards of those that were put to people, and what
// was said and is no turn as yet.
type Record struct {
	Turns  []store.Turn
	Calls  []store.Call
	Cards  map[string]store.Card
	Queued []store.Inbound
	Reader string // who reads
}

// Asked says whether a call was put to people, so that it has a card.
func Asked(c store.Call) bool { return !c.Expires.IsZero() }

// History is what a conversation says, oldest first. A card tells all that a
// tool's line could, so there is one or the other.
func History(rec Record, r bots.Reader) []Message {
	calls := map[string]store.Call{}
	for _, c := range rec.Calls {
		calls[c.ID] = c
	}
	results := map[string]store.Turn{} // by call
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
		given := slices.ContainsFunc(rec.Queued, func(o store.Inbound) bool { return o.Instead == in.Key }) // to another one
		if !given && !slices.ContainsFunc(rec.Turns, func(t store.Turn) bool { return t.Role == store.FromUser && t.Key == in.Key }) {
			add(said(in, "", time.Time{}))
		}
	}
	return list
}

// Said is what a person has just written.
func Said(in store.Inbound, at time.Time) Message { return said(in, "", at) }

// QueuedIn is a message that waits for its turn in a conversation.
func QueuedIn(item store.Item, thread string) (in store.Inbound, ok bool) {
	ok = item.Kind == "message" && json.Unmarshal(item.Payload, &in) == nil && in.Thread == thread
	return in, ok
}

// CountMessages is about how many messages a turn makes.
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

// wentOn says whether the conversation went on after a step, so that calls of it that
// have no result will not get one.
func wentOn(later []store.Turn, step store.Turn) bool {
	return slices.ContainsFunc(later, func(t store.Turn) bool {
		return t.In == step.In && (t.Role == store.FromModel || t.Role == store.FromNize && t.Final)
	})
}

// unrecorded is the line of a call without a record: a lookup, or one that was never
// made. While it has no result, the store doesn't know whether it runs: what runs is
// told live, in the place of this line.
func unrecorded(asked store.ToolCall, result store.Turn, answered, stopped bool) Message {
	line := store.ToolLine{Name: asked.Name, State: store.Planned, Unmade: true}
	if _, lookup := bots.Lookup(asked.Name, phrases.For("")); !lookup {
		var args struct {
			Tool string `json:"tool_id"`
		}
		if json.Unmarshal([]byte(asked.Args), &args) == nil && strings.Contains(args.Tool, ":") {
			line.Name = store.Brief(args.Tool) // execute_tool is no name for people
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

// addCall adds what a call that the model asked for came to, and what was made in
// its place.
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
