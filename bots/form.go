package bots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

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
	Long    bool     // people write several lines
	Fixed   bool     // nothing can be changed here, Hint says why; no dialog has it
}

// Option is one of a Field.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Note  string `json:"note,omitempty"` // what else is to be known of it
}

// FieldLimits are those of a surface's dialogs.
type FieldLimits struct {
	Options int // of one list
	Option  int // characters of an option
	Input   int // characters that people write
}

// Chooses says whether the options of a field fit into a list; where they don't,
// people write.
func (f Field) Chooses(l FieldLimits) bool {
	return len(f.Options) > 0 && len(f.Options) <= l.Options && !slices.ContainsFunc(f.Options, func(o Option) bool {
		return utf8.RuneCountInString(o.Value) > l.Option || o.Value == ""
	})
}

// Written is what stands in a field in which people write.
func (f Field) Written(l FieldLimits) string {
	text := strings.TrimSpace(strings.Join(f.Value, ", "))
	if r := []rune(text); len(r) > l.Input {
		return string(r[:l.Input-1]) + "…"
	}
	return text
}

// Mark tells what a field comes back with if nobody touches it from anything
// else, see [MarkOf].
func (f Field) Mark(l FieldLimits) string { return MarkOf(f.Shown(l)) }

// Shown is what a field comes back with if nobody touches it.
func (f Field) Shown(l FieldLimits) []string {
	if f.Chooses(l) {
		return slices.DeleteFunc(slices.Clone(f.Value), func(v string) bool {
			return !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == v })
		})
	}
	if text := f.Written(l); text != "" {
		return []string{text}
	}
	return nil
}

// MarkOf tells some values from others, in whatever order, without holding them:
// it travels in a dialog, so that only what its author changed is set.
func MarkOf(values []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(values)), "\x00")))
	return hex.EncodeToString(sum[:4])
}

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
