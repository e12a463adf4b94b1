package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text is a message from nize to people: an English format and its arguments. It is created
// where the message arises and printed for its reader, in the reader's language: the format
// is the key in every catalogue. As a string and as JSON it is English. Texts are
// comparable; the zero Text is empty.
type Text struct {
	form string // the format, or the form that [StoredText] writes, after a NUL
}

// Textf returns a Text. Its verbs take the arguments in order; Texts, errors, durations,
// [Span] and [Moment] among them are printed in the reader's language as well. A sentinel
// error becomes a part of the format, so that each sentence is translated as a whole.
// Without arguments the format is printed as it is.
func Textf(format string, args ...any) Text {
	if false {
		_ = fmt.Errorf(format, args...) // makes go vet check the format
	}
	return textf(format, args...)
}

func textf(format string, args ...any) Text {
	parts := make([]any, 1, len(args)+1)
	for _, arg := range args {
		if s, ok := arg.(sentinel); ok {
			format = strings.Replace(format, "%w", string(s), 1)
			continue
		}
		parts = append(parts, storedArg(arg))
	}
	if parts[0] = format; len(parts) == 1 {
		return Text{format}
	}
	b, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("store.Textf(%q): %v", format, err)) // can't happen: storedArg returns only encodable values
	}
	return Text{"\x00" + string(b)}
}

// Plain returns a Text of words that are not nize's own; it is the same in every language.
func Plain(words string) Text {
	if words == "" {
		return Text{}
	}
	return textf("%s", words)
}

// Keyed returns a Text of words that may be one of nize's own messages without arguments.
func Keyed(words string) Text { return Text{strings.TrimLeft(words, "\x00")} }

// TextOf returns the message of an error: the Text that it was created from, or plain
// English.
func TextOf(err error) Text {
	if m, ok := err.(*markedError); ok {
		return TextOf(m.err)
	}
	if t, ok := err.(interface{ Text() Text }); ok {
		return t.Text()
	}
	return Plain(err.Error())
}

// textError is an error whose message is a Text.
type textError struct {
	error  // of [fmt.Errorf]
	format string
	args   []any
}

func (e *textError) Unwrap() error { return e.error }

// Text returns the message.
func (e *textError) Text() Text { return textf(e.format, e.args...) }

// Mark returns err so that it also matches kind, without adding kind to its message.
func Mark(err, kind error) error { return &markedError{err, kind} }

type markedError struct{ err, kind error }

func (m *markedError) Error() string   { return m.err.Error() }
func (m *markedError) Unwrap() []error { return []error{m.err, m.kind} }

// Errorf is [fmt.Errorf] for errors that people read; see [Textf].
func Errorf(format string, args ...any) error {
	return &textError{fmt.Errorf(format, args...), format, args}
}

// Equal reports whether t == u.
func (t Text) Equal(u Text) bool { return t == u }

// Parts returns the format and its arguments: strings, numbers, booleans, [Span], [Moment]
// and Texts.
func (t Text) Parts() (format string, args []any) {
	stored, ok := strings.CutPrefix(t.form, "\x00")
	if !ok {
		return t.form, nil
	}
	dec := json.NewDecoder(strings.NewReader(stored))
	dec.UseNumber()
	var parts []any
	if err := dec.Decode(&parts); err != nil || len(parts) == 0 {
		return "", nil // can't happen: [StoredText.UnmarshalJSON] refuses it
	}
	for _, part := range parts[1:] {
		args = append(args, argOf(part))
	}
	format, _ = parts[0].(string)
	return format, args
}

// String returns the text in English.
func (t Text) String() string { return Print(t.Parts()) }

// Print formats a format, which may be translated, with the arguments of [Text.Parts].
func Print(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(strings.ReplaceAll(format, "%w", "%v"), args...)
}

// MarshalJSON writes the text in English.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads words that are the same in every language.
func (t *Text) UnmarshalJSON(b []byte) error {
	var words string
	err := json.Unmarshal(b, &words)
	*t = Plain(words)
	return err
}

// StoredText is a Text in the form in which records store it: its format, or an array of
// the format and the arguments, in which a nested array is a Text.
type StoredText struct{ Text }

// MarshalJSON implements [json.Marshaler].
func (t StoredText) MarshalJSON() ([]byte, error) {
	if stored, ok := strings.CutPrefix(t.form, "\x00"); ok {
		return []byte(stored), nil
	}
	return json.Marshal(t.form)
}

// UnmarshalJSON implements [json.Unmarshaler]. Texts stored before texts had arguments are
// strings, too.
func (t *StoredText) UnmarshalJSON(b []byte) error {
	var words string
	if err := json.Unmarshal(b, &words); err == nil {
		t.Text = Keyed(words)
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) == 0 || json.Unmarshal(parts[0], &words) != nil {
		return fmt.Errorf("%w text: it lacks its format", ErrInvalid)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return err
	}
	t.form = "\x00" + compact.String()
	return nil
}

// Span is a duration in the form used by settings, 90d or 4m25s.
type Span string

// Moment is a time of day on a date, formatted for people.
type Moment struct{ time.Time }

const storedMoment = "2006-01-02T15:04" // the zone is stored beside it

func (m Moment) String() string { return m.Format("Monday, 2 January, 15:04") }

// storedArg returns the JSON form of an argument.
func storedArg(arg any) any {
	switch arg := arg.(type) {
	case Text:
		if !strings.HasPrefix(arg.form, "\x00") {
			return []string{arg.form}
		}
		return StoredText{arg}
	case error:
		return storedArg(TextOf(arg))
	case time.Duration:
		return map[string]string{"span": arg.String()}
	case Span:
		return map[string]string{"span": string(arg)}
	case Moment:
		return map[string]string{"moment": arg.Format(storedMoment)}
	case fmt.Stringer:
		return arg.String()
	}
	switch v := reflect.ValueOf(arg); {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return json.RawMessage(strconv.FormatFloat(v.Float(), 'e', -1, 64)) // a form that no integer has
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return fmt.Sprint(arg)
}

// argOf is the inverse of storedArg.
func argOf(part any) any {
	switch part := part.(type) {
	case json.Number:
		if n, err := part.Int64(); err == nil {
			return n
		}
		f, _ := part.Float64()
		return f
	case []any:
		b, err := json.Marshal(part)
		if err != nil || len(part) == 0 {
			return ""
		}
		if format, ok := part[0].(string); ok && len(part) == 1 {
			return Text{format}
		}
		return Text{"\x00" + string(b)}
	case map[string]any:
		if s, ok := part["span"].(string); ok {
			return Span(s)
		}
		s, _ := part["moment"].(string)
		at, _ := time.Parse(storedMoment, s)
		return Moment{at}
	}
	return part
}

// abbreviations end in a dot that does not end a sentence.
var abbreviations = []string{"e.g", "i.e", "etc", "vs", "cf", "approx", "incl", "excl", "fig", "ca", "resp", "esp", "dr", "mr", "mrs", "ms", "st", "a.k.a"}

// FirstSentence returns the first sentence of a one-line text, with its dot. A sentence
// ends with a dot, question or exclamation mark before a blank, except a dot after an
// abbreviation or an initial, or before a lower-case letter.
func FirstSentence(text string) string {
	for i := 0; i+1 < len(text); i++ {
		if text[i+1] != ' ' || text[i] != '.' && text[i] != '!' && text[i] != '?' || i == 0 {
			continue
		}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[i+1:], " "))
		word := text[strings.LastIndexAny(text[:i], " (")+1 : i]
		if unicode.IsLower(next) || text[i] == '.' && (len(word) == 1 && unicode.IsUpper(rune(word[0])) || slices.Contains(abbreviations, strings.ToLower(word))) {
			continue
		}
		return text[:i+1]
	}
	return text
}
