package filetext

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
)

// The tokens in the content of a page or in a character table: numbers (float64), strings,
// names, arrays ([]any) and operators. A dictionary is nil.
type (
	pdfName     string
	pdfOperator string
)

// pdfLexer reads tokens. It skips invalid input.
type pdfLexer struct {
	in    *bufio.Reader
	depth int
}

func newPDFLexer(r io.Reader) *pdfLexer { return &pdfLexer{in: bufio.NewReaderSize(r, 16<<10)} }

// pdfEnd ends an array or a dictionary.
type pdfEnd string

const (
	pdfSpaces     = " \t\r\n\f\x00"
	pdfDelimiters = "()<>[]{}/%"
)

// next returns the next operand or operator.
func (l *pdfLexer) next() (any, bool) {
	for {
		token, ok := l.token()
		if _, stray := token.(pdfEnd); !stray || !ok {
			return token, ok
		}
	}
}

func (l *pdfLexer) token() (any, bool) {
	c, err := l.in.ReadByte()
	for err == nil && (bytes.IndexByte([]byte(pdfSpaces), c) >= 0 || c == '%') {
		for c == '%' && err == nil {
			if c, err = l.in.ReadByte(); c != '\n' && c != '\r' {
				c = '%'
			}
		}
		c, err = l.in.ReadByte()
	}
	if err != nil {
		return nil, false
	}
	switch c {
	case '/':
		return pdfName(l.name()), true
	case '(':
		return l.text(), true
	case '[':
		return l.list("]"), true
	case '<':
		if l.follows('<') {
			l.list(">>")
			return nil, true
		}
		return l.hex(), true
	case '>':
		l.follows('>')
		return pdfEnd(">>"), true
	case ']', ')', '{', '}':
		return pdfEnd(c), true
	}
	word := string(c) + l.word()
	if n, err := strconv.ParseFloat(word, 64); err == nil && (c <= '9') {
		return n, true
	}
	if word == "ID" {
		l.skipImage()
	}
	return pdfOperator(word), true
}

func (l *pdfLexer) follows(c byte) bool {
	next, err := l.in.Peek(1)
	if err != nil || next[0] != c {
		return false
	}
	_, err = l.in.Discard(1)
	return err == nil
}

// word reads up to a space or delimiter.
func (l *pdfLexer) word() string {
	var word []byte
	for {
		c, err := l.in.ReadByte()
		if err != nil {
			return string(word)
		}
		if bytes.IndexByte([]byte(pdfSpaces+pdfDelimiters), c) >= 0 {
			_ = l.in.UnreadByte() // it was just read
			return string(word)
		}
		word = append(word, c)
	}
}

// name reads a name, in which #20 is a space.
func (l *pdfLexer) name() string {
	raw := []byte(l.word())
	out := raw[:0]
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) {
			if n, err := strconv.ParseUint(string(raw[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, raw[i])
	}
	return string(out)
}

// list returns the tokens up to that end. It leaves out tokens that are nested too deep.
func (l *pdfLexer) list(end pdfEnd) (list []any) {
	if l.depth++; l.depth > maxPDFDepth {
		l.depth--
		return nil
	}
	defer func() { l.depth-- }()
	for {
		token, ok := l.token()
		if !ok || token == end {
			return list
		}
		if _, stray := token.(pdfEnd); !stray {
			list = append(list, token)
		}
	}
}

// text reads a string in parentheses.
func (l *pdfLexer) text() string {
	var out []byte
	for depth := 1; ; {
		c, err := l.in.ReadByte()
		if err != nil {
			return string(out)
		}
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return string(out)
			}
		case '\\':
			out = l.escaped(out)
			continue
		}
		out = append(out, c)
	}
}

// escaped appends the character after a backslash.
func (l *pdfLexer) escaped(out []byte) []byte {
	c, err := l.in.ReadByte()
	if err != nil {
		return out
	}
	if i := bytes.IndexByte([]byte("nrtbf"), c); i >= 0 {
		return append(out, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\r':
		l.follows('\n')
		return out
	case c == '\n': // the line continues
		return out
	case c < '0' || c > '7':
		return append(out, c)
	}
	n := c - '0'
	for range 2 {
		next, err := l.in.Peek(1)
		if err != nil || next[0] < '0' || next[0] > '7' {
			break
		}
		n = n<<3 + next[0] - '0'
		_, _ = l.in.Discard(1) // it was peeked
	}
	return append(out, n)
}

// hex reads a string of hexadecimal digits.
func (l *pdfLexer) hex() string {
	var out []byte
	half, high := false, byte(0)
	for {
		c, err := l.in.ReadByte()
		if err != nil || c == '>' {
			if half {
				out = append(out, high)
			}
			return string(out)
		}
		n, err := strconv.ParseUint(string(c), 16, 8)
		switch {
		case err != nil:
			continue
		case half:
			out = append(out, high|byte(n))
		default:
			high = byte(n) << 4
		}
		half = !half
	}
}

// skipImage skips the bytes of an inline image, which ends with EI between spaces followed
// by text.
func (l *pdfLexer) skipImage() {
	before := byte(' ')
	for {
		c, err := l.in.ReadByte()
		if err != nil {
			return
		}
		if c == 'E' && bytes.IndexByte([]byte(pdfSpaces), before) >= 0 {
			next, _ := l.in.Peek(12) // fewer at the end
			if len(next) > 0 && next[0] == 'I' && isPlain(next[1:]) {
				_, _ = l.in.Discard(1)
				return
			}
		}
		before = c
	}
}

// isPlain reports whether these bytes may follow an image.
func isPlain(after []byte) bool {
	for i, c := range after {
		if i == 0 && bytes.IndexByte([]byte(pdfSpaces), c) < 0 || c > '~' || c < ' ' && bytes.IndexByte([]byte(pdfSpaces), c) < 0 {
			return false
		}
	}
	return true
}
