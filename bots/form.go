package bots

import "context"

// Form is what a command asks for at once, where its surface has dialogs. The
// texts are in the reader's language.
type Form struct {
	Title  string
	About  string // above the fields; "" is nothing
	Fields []Field
}

// Field is one of a Form.
type Field struct {
	Name    string
	Label   string
	Hint    string
	Value   []string // what stands in it
	Options []Option // to choose from; nil lets people write
	Many    bool     // several of the options may be chosen
}

// Option is one of a Field.
type Option struct{ Value, Label string }

// Filler is a command's part in filling a Form in.
type Filler interface {
	// Form returns what is asked, nil where the person is shown the command's
	// answer instead: they may not change anything. It is asked again whenever
	// what was filled in is looked at.
	Form(ctx context.Context, a Asked) (*Form, error)
	// Check says what is wrong with values, by field; it only looks, and quickly.
	Check(ctx context.Context, a Asked, values map[string][]string) map[string]string
	// Fill does what the values ask for, if the person still may: only what
	// they changed is among them.
	Fill(ctx context.Context, a Asked, values map[string][]string) (Answer, error)
}
