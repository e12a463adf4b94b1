package bots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// Form is a command's dialog, on surfaces that have dialogs. Its texts are in the reader's
// language.
type Form struct {
	Title  string
	About  string // text above the fields; "" for none
	Fields []Field
}

// Field is a field of a Form.
type Field struct {
	Name    string
	Label   string
	Hint    string
	Value   []string // current content
	Options []Option // choices; nil for a text field
	Many    bool     // several options may be chosen
	Long    bool     // text with several lines
	Fixed   bool     // read-only, Hint says why; dialogs omit it
}

// Option is a choice of a Field.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Note  string `json:"note,omitempty"` // additional information
}

// FieldLimits are the limits of a surface's dialogs.
type FieldLimits struct {
	Options int // options per list
	Option  int // characters per option
	Input   int // characters per text field
}

// Chooses reports whether a field's options fit into a list; if not, the field is a text
// field.
func (f Field) Chooses(l FieldLimits) bool {
	return len(f.Options) > 0 && len(f.Options) <= l.Options && !slices.ContainsFunc(f.Options, func(o Option) bool {
		return utf8.RuneCountInString(o.Value) > l.Option || o.Value == ""
	})
}

// Written returns the initial content of a text field.
func (f Field) Written(l FieldLimits) string {
	text := strings.TrimSpace(strings.Join(f.Value, ", "))
	if r := []rune(text); len(r) > l.Input {
		return string(r[:l.Input-1]) + "…"
	}
	return text
}

// Mark returns the [MarkOf] the values that an untouched field submits.
func (f Field) Mark(l FieldLimits) string { return MarkOf(f.Shown(l)) }

// Shown returns the values that an untouched field submits.
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

// MarkOf returns a short hash of values, independent of their order. A dialog carries it,
// without the values themselves, so that only fields that its author changed are set.
func MarkOf(values []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(values)), "\x00")))
	return hex.EncodeToString(sum[:4])
}

// Filler provides a command's Form and applies it.
type Filler interface {
	// Form returns the dialog, or nil if the person may not change anything and gets the
	// command's answer instead. It is called again whenever submitted values are checked.
	Form(ctx context.Context, a Asked) (*Form, error)
	// Check returns the mistakes in values, by field. It has no side effects and returns
	// quickly.
	Check(ctx context.Context, a Asked, values map[string][]string) map[string]string
	// Fill applies values, if the person still may. values contains only the fields that
	// they changed.
	Fill(ctx context.Context, a Asked, values map[string][]string) (Answer, error)
}
