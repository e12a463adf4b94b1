package store

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Secret is a string that cannot be printed: every verb of fmt, slog and JSON shows dots.
// Only Reveal returns the text, so a search for Reveal finds every use of a secret in the
// clear.
//
// The text is behind a pointer, because fmt calls no method for an unexported field or %p:
// it then prints an address instead of the text. So two Secrets of the same text are not
// ==.
type Secret struct{ text *string }

const dots = "••••"

// NewSecret wraps text. NewSecret("") is the zero Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether s is empty.
func (s Secret) IsZero() bool { return s.text == nil }

func (s Secret) String() string               { return dots }
func (s Secret) GoString() string             { return dots }
func (s Secret) Format(f fmt.State, _ rune)   { fmt.Fprint(f, dots) }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(dots) }
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(dots) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(dots), nil }

// UnmarshalJSON reads a plain string, so that a request can carry a secret in. MarshalJSON
// never writes one.
func (s *Secret) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	*s = NewSecret(text)
	return nil
}
