package chat

import (
	"unicode/utf8"
)

// key is one key press, or one pasted text.
type key struct {
	r    rune   // a character, or one of the key… constants
	text string // of a paste
}

// Keys that are not characters; above Unicode's last code point.
const (
	keyNone rune = utf8.MaxRune + 1 + iota
	keyUp
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyDelete
	keyWordLeft
	keyWordRight
	keyNewline // Alt-Enter: a line break within the message
	keyEscape
	keyPaste
)

const (
	ctrlA, ctrlB, ctrlC, ctrlD, ctrlE, ctrlF = 1, 2, 3, 4, 5, 6
	ctrlH, tab, ctrlJ, ctrlK, ctrlL, enter   = 8, 9, 10, 11, 12, 13
	ctrlN, ctrlP, ctrlU, ctrlW, ctrlY, del   = 14, 16, 21, 23, 25, 127
)

// maxPaste limits one paste; the daemon accepts no longer messages either.
const maxPaste = 64 << 10

// decoder converts bytes of a terminal into keys. Sequences may be split anywhere between
// two reads.
type decoder struct {
	buf   []byte
	paste []byte
	in    bool // within a bracketed paste
}

// feed decodes input and returns the keys in it.
func (d *decoder) feed(b []byte) []key {
	d.buf = append(d.buf, b...)
	var out []key
	for len(d.buf) > 0 {
		if d.in {
			k, ok := d.feedPaste()
			if !ok {
				return out
			}
			out = append(out, k)
			continue
		}
		k, n := next(d.buf)
		if n == 0 {
			return out
		}
		d.buf = d.buf[n:]
		switch k.r {
		case keyPaste:
			d.in = true
		case keyNone:
		default:
			out = append(out, k)
		}
	}
	return out
}

// flush returns a pending Escape.
func (d *decoder) flush() []key {
	if len(d.buf) > 0 && d.buf[0] == 0x1b && !d.in {
		d.buf = nil
		return []key{{r: keyEscape}}
	}
	return nil
}

const pasteEnd = "\x1b[201~"

func (d *decoder) feedPaste() (key, bool) {
	end := indexOf(d.buf, pasteEnd)
	take := end
	if end < 0 {
		take = max(len(d.buf)-len(pasteEnd)+1, 0) // the end marker may be split
	}
	if left := maxPaste - len(d.paste); left > 0 {
		d.paste = append(d.paste, d.buf[:min(take, left)]...)
	}
	if end < 0 {
		d.buf = d.buf[take:]
		return key{}, false
	}
	k := key{r: keyPaste, text: string(d.paste)}
	d.buf, d.paste, d.in = d.buf[end+len(pasteEnd):], nil, false
	return k, true
}

func indexOf(b []byte, s string) int {
	for i := 0; i+len(s) <= len(b); i++ {
		if string(b[i:i+len(s)]) == s {
			return i
		}
	}
	return -1
}

// next returns the first key of b and its length in bytes; 0 if more is needed.
func next(b []byte) (key, int) {
	if b[0] != 0x1b {
		if !utf8.FullRune(b) {
			return key{}, 0
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return key{r: keyNone}, 1
		}
		return key{r: r}, n
	}
	if len(b) == 1 {
		return key{}, 0
	}
	switch b[1] {
	case '[', 'O':
		return sequence(b)
	case 'b':
		return key{r: keyWordLeft}, 2
	case 'f':
		return key{r: keyWordRight}, 2
	case enter, ctrlJ:
		return key{r: keyNewline}, 2
	case 0x1b:
		return key{r: keyEscape}, 1
	}
	return key{r: keyNone}, 2
}

// sequences are the supported control sequences.
var sequences = map[string]rune{
	"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd,
	"1~": keyHome, "4~": keyEnd, "7~": keyHome, "8~": keyEnd, "3~": keyDelete,
	"1;5C": keyWordRight, "1;5D": keyWordLeft, "1;3C": keyWordRight, "1;3D": keyWordLeft,
	"200~": keyPaste, "13;2u": keyNewline,
}

// sequence reads ESC [ parameters final, and ESC O final.
func sequence(b []byte) (key, int) {
	for i := 2; i < len(b); i++ {
		if b[i] < 0x40 && i < 32 {
			continue // a parameter
		}
		if r, ok := sequences[string(b[2:i+1])]; ok {
			return key{r: r}, i + 1
		}
		return key{r: keyNone}, i + 1
	}
	if len(b) >= 32 {
		return key{r: keyNone}, len(b)
	}
	return key{}, 0
}
