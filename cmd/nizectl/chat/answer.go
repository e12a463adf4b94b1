package chat

import (
	"fmt"
	"io"
	"strings"

	"nize/store"
)

// textOut prints the assistant's text as it arrives; the transcript has made it safe to
// print.
type textOut struct {
	w io.Writer
	// whole prints a text only once it is final. In a pipe, for example, nothing can be
	// taken back, so a text that starts over would be printed twice.
	whole bool
	held  *store.Message // the text that is not final yet, if whole is set

	id   string // of the message that is being printed
	open bool   // its last line has not ended
}

func (t *textOut) show(script *transcript, m store.Message) error {
	if t.whole {
		if t.held = nil; !m.Final {
			t.held = &m
			return nil
		}
	}
	return t.print(script, m)
}

// rest prints a text that ended without becoming final.
func (t *textOut) rest(script *transcript) error {
	if t.held == nil {
		return nil
	}
	m := *t.held
	t.held = nil
	return t.print(script, m)
}

func (t *textOut) print(script *transcript, m store.Message) error {
	more, again, changed := script.fresh(m)
	if !changed {
		return nil
	}
	if t.id != m.ID || again {
		if err := t.end(); err != nil {
			return err
		}
		t.id = m.ID
	}
	if _, err := io.WriteString(t.w, more); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if more != "" {
		t.open = !strings.HasSuffix(more, "\n")
	}
	if m.Final {
		return t.end()
	}
	return nil
}

// end ends an unfinished line.
func (t *textOut) end() error {
	if !t.open {
		return nil
	}
	t.open = false
	if _, err := io.WriteString(t.w, "\n"); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}
