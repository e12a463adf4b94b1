package chat

import (
	"strings"

	"nize/store"
	"nize/store/printable"
)

// transcript records which part of each message was shown.
type transcript struct {
	seen  map[string]store.Message
	prose map[string]*printable.Stream // of texts that aren't final
}

func (t *transcript) clear() {
	t.seen, t.prose = map[string]store.Message{}, map[string]*printable.Stream{}
}

// fresh returns the part of a text that was not shown yet, without characters that control
// a terminal. again reports that the text started over, so that the part shown before is
// void.
func (t *transcript) fresh(m store.Message) (more string, again, changed bool) {
	old, known := t.seen[m.ID]
	if known && old.Final {
		return "", false, false
	}
	t.seen[m.ID] = m
	more, goesOn := strings.CutPrefix(m.Text, old.Text)
	prose := t.prose[m.ID]
	if prose == nil || !goesOn {
		prose = &printable.Stream{}
		t.prose[m.ID] = prose
	}
	if m.Final {
		delete(t.prose, m.ID)
	}
	return prose.Next(more), !goesOn, !goesOn || more != "" || m.Final
}

// changed reports whether a message other than text differs from what was shown.
func (t *transcript) changed(m store.Message) bool {
	old, known := t.seen[m.ID]
	t.seen[m.ID] = m
	return !known || !sameMessage(old, m)
}

// carded reports whether the call of a tool's line has a card, which then shows everything
// that the line could, except the progress of a running call.
func (t *transcript) carded(line store.Message) bool {
	id, ok := strings.CutPrefix(line.ID, "tool/")
	card, seen := t.seen[id]
	if seen && line.Tool != nil && line.Tool.State == store.Running && card.Card != nil && card.Card.State == store.Running {
		return false
	}
	return ok && seen
}

func sameMessage(a, b store.Message) bool {
	if a.Kind != b.Kind || a.Text != b.Text || a.Final != b.Final {
		return false
	}
	if a.Tool != nil && b.Tool != nil && *a.Tool != *b.Tool {
		return false
	}
	if a.Card != nil && b.Card != nil {
		return a.Card.State == b.Card.State && a.Card.Approved == b.Card.Approved && a.Card.Outcome == b.Card.Outcome &&
			a.Card.Gone == b.Card.Gone && len(a.Card.Yes) == len(b.Card.Yes)
	}
	return true
}
