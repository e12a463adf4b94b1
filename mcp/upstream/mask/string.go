package mask

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// stringEnd returns the end of the JSON string that begins at i: its closing quote, or the
// end of b.
func stringEnd(b []byte, i int) (end int, escapes bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i, escapes
		case '\\':
			escapes = true
			i++
		}
	}
	return len(b), escapes
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// findIn is find for the content of a JSON string. If it contains escapes, the unescaped
// text is searched, and the ranges are those of its source.
func (s *set) findIn(b []byte, escapes bool, f func(from, to int)) {
	if !escapes {
		s.find(b, f)
		return
	}
	said := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		n, c := unescape(b[i:])
		said = append(said, c...)
		i += n
	}
	at, i := 0, 0 // position in the unescaped text, and in its source
	place := func(to int) int {
		for at < to && i < len(b) {
			n, c := unescape(b[i:])
			at += len(c)
			i += n
		}
		return i
	}
	s.find(said, func(from, to int) {
		begin := place(from)
		f(begin, place(to))
	})
}

// unescape reads one character of a string, and returns the length of its source and its
// bytes. A character that is not an escape represents itself.
func unescape(b []byte) (n int, said []byte) {
	if b[0] != '\\' || len(b) < 2 {
		return 1, b[:1]
	}
	switch b[1] {
	case 'u':
		r, ok := hex4(b)
		if !ok {
			return 1, b[:1]
		}
		if low, ok := hex4(b[6:]); ok && utf16.IsSurrogate(r) {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return 12, utf8.AppendRune(nil, both)
			}
		}
		return 6, utf8.AppendRune(nil, r)
	case 'b':
		return 2, []byte{'\b'}
	case 'f':
		return 2, []byte{'\f'}
	case 'n':
		return 2, []byte{'\n'}
	case 'r':
		return 2, []byte{'\r'}
	case 't':
		return 2, []byte{'\t'}
	}
	return 2, b[1:2]
}

// hex4 parses a \uXXXX escape.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 32)
	return rune(n), err == nil
}
