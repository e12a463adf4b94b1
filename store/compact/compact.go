// Package compact makes the bytes of records short before they are stored, and back.
//
// Most records are small JSON documents that consist of the same few keys, of ids,
// digests and times. A general compressor finds little in a single one of them, so Encode
// replaces what it knows: frequent words (see words.go) become one or two bytes, an id 17,
// the hex digits of a digest half of them, a time a few bytes. Longer texts, such as
// results of tools, are compressed with Zstandard if that is shorter.
//
// The form is lossless for any bytes, since the audit trail hashes what is encoded.
package compact

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"nize/store"
)

// ErrDamaged is returned for bytes that Encode did not make.
var ErrDamaged = errors.New("damaged compact text")

// The first byte of an encoded text.
const (
	kindPlain = iota // the text itself
	kindWords        // codes, see below
	kindZstd         // a Zstandard frame
)

const (
	// zstdFrom is the length from which a text is compressed: below it a frame is
	// hardly ever shorter.
	zstdFrom = 256
	// mostText bounds what Decode makes, since a frame can promise any length.
	mostText = 1 << 30
)

// Codes are bytes that text in UTF-8 rarely or never has. Each other byte stands for
// itself.
const (
	codeByte  = iota // the next byte stands for itself
	codeHex          // length in bytes, that many bytes: lower-case hex digits
	codeID           // 16 bytes: a ULID
	codeTime         // signed nanoseconds since the time before, or that of the own id: RFC 3339
	codeOwn          // the own id
	codeWord         // the next byte says which word
	firstWord        // from here on a code is a word
)

// codes are the bytes with a meaning, in the order above.
var codes = func() (list []byte) {
	for b := range 0x20 {
		list = append(list, byte(b))
	}
	return append(list, 0x7f, 0xc0, 0xc1, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff)
}()

// table is what is derived from words, for encoding and decoding.
type table struct {
	code  [256]int // of a byte, -1 for one that stands for itself
	heads [256][]word
}

type word struct {
	text []byte
	code []byte
}

var known = sync.OnceValue(func() *table {
	t := &table{}
	for i := range t.code {
		t.code[i] = -1
	}
	for i, b := range codes {
		t.code[b] = i
	}
	for i, text := range words {
		w := word{text: []byte(text)}
		if single := firstWord + i; single < len(codes) {
			w.code = []byte{codes[single]}
		} else {
			w.code = []byte{codes[codeWord], byte(single - len(codes))}
		}
		t.heads[text[0]] = append(t.heads[text[0]], w)
	}
	for i := range t.heads {
		slices.SortFunc(t.heads[i], func(a, b word) int { return len(b.text) - len(a.text) })
	}
	return t
})

// Encode returns the short form of a text. own is the id of the record that the text is
// in; Decode needs it again.
func Encode(text []byte, own string) []byte {
	short := encodeWords(append(make([]byte, 0, len(text)/2+16), kindWords), text, own)
	if len(text) >= zstdFrom && len(short) > len(text)/2 {
		if frame := encoder().EncodeAll(text, append(make([]byte, 0, len(text)/2+32), kindZstd)); len(frame) < len(short) {
			short = frame
		}
	}
	if len(short) > len(text) {
		short = append(append(short[:0], kindPlain), text...)
	}
	return short
}

// Decode returns the text that Encode made short.
func Decode(short []byte, own string) ([]byte, error) {
	if len(short) == 0 {
		return nil, ErrDamaged
	}
	switch body := short[1:]; short[0] {
	case kindPlain:
		return bytes.Clone(body), nil
	case kindWords:
		return decodeWords(make([]byte, 0, 3*len(body)), body, own)
	case kindZstd:
		text, err := decoder().DecodeAll(body, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return text, nil
	}
	return nil, fmt.Errorf("%w: unknown form %d", ErrDamaged, short[0])
}

// AppendWords appends the short form of a name or an id to b, without a general
// compressor and without a length. DecodeWords is the way back.
func AppendWords(b, text []byte, own string) []byte { return encodeWords(b, text, own) }

// AppendText appends the text of which AppendWords made the short form. What b holds is
// kept also if it fails.
func AppendText(b, short []byte, own string) ([]byte, error) { return decodeWords(b, short, own) }

func encodeWords(b, text []byte, own string) []byte {
	t := known()
	last := startTime(own)
	for i := 0; i < len(text); {
		c := text[i]
		if fresh := i == 0 || !isAlnum(text[i-1]); fresh && isAlnum(c) {
			if own != "" && bytes.HasPrefix(text[i:], []byte(own)) {
				b, i = append(b, codes[codeOwn]), i+len(own)
				continue
			}
			if n := hexRun(text[i:]); n >= 16 {
				n -= n % 2
				b = binary.AppendUvarint(append(b, codes[codeHex]), uint64(n/2))
				b, _ = hex.AppendDecode(b, text[i:i+n]) // they are hex digits
				i += n
				continue
			}
			if id, ok := parseID(text[i:]); ok {
				b, i = append(append(b, codes[codeID]), id[:]...), i+26
				continue
			}
			if at, n, ok := parseTime(text[i:]); ok {
				b = binary.AppendVarint(append(b, codes[codeTime]), at-last)
				last, i = at, i+n
				continue
			}
		}
		if w := t.find(text[i:]); w != nil {
			b, i = append(b, w.code...), i+len(w.text)
			continue
		}
		if t.code[c] >= 0 {
			b = append(b, codes[codeByte])
		}
		b, i = append(b, c), i+1
	}
	return b
}

// find returns the longest word with which text begins, or nil.
func (t *table) find(text []byte) *word {
	list := t.heads[text[0]]
	for i := range list {
		if bytes.HasPrefix(text, list[i].text) {
			return &list[i]
		}
	}
	return nil
}

func decodeWords(text, b []byte, own string) ([]byte, error) {
	t := known()
	last := startTime(own)
	for i := 0; i < len(b); {
		c := t.code[b[i]]
		if c < 0 {
			text, i = append(text, b[i]), i+1
			continue
		}
		i++
		rest := b[i:]
		switch c {
		case codeByte:
			if len(rest) == 0 {
				return text, ErrDamaged
			}
			text, i = append(text, rest[0]), i+1
		case codeHex:
			n, w := binary.Uvarint(rest)
			if w <= 0 || n > uint64(len(rest)-w) {
				return text, ErrDamaged
			}
			text, i = hex.AppendEncode(text, rest[w:w+int(n)]), i+w+int(n)
		case codeID:
			if len(rest) < 16 {
				return text, ErrDamaged
			}
			text, i = appendID(text, [16]byte(rest[:16])), i+16
		case codeTime:
			since, w := binary.Varint(rest)
			if w <= 0 {
				return text, ErrDamaged
			}
			last += since
			text, i = time.Unix(0, last).UTC().AppendFormat(text, time.RFC3339Nano), i+w
		case codeOwn:
			text = append(text, own...)
		case codeWord:
			if len(rest) == 0 || int(rest[0])+len(codes)-firstWord >= len(words) {
				return text, ErrDamaged
			}
			text, i = append(text, words[int(rest[0])+len(codes)-firstWord]...), i+1
		default:
			if c-firstWord >= len(words) {
				return text, ErrDamaged
			}
			text = append(text, words[c-firstWord]...)
		}
	}
	return text, nil
}

// startTime is the time that the first time of a record is written as the difference to.
func startTime(own string) int64 {
	if at := store.IDTime(own); !at.IsZero() {
		return at.UnixNano()
	}
	return 0
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func hexRun(text []byte) int {
	for i, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return i
		}
	}
	return len(text)
}

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // the alphabet of ULIDs

var digits = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte(crockford) {
		t[c] = int8(i)
	}
	return t
}()

// parseID reads the 26 digits of a ULID, of 128 bits.
func parseID(text []byte) (id [16]byte, ok bool) {
	if len(text) < 26 || text[0] > '7' {
		return id, false
	}
	var hi, lo uint64
	for _, c := range text[:26] {
		d := digits[c]
		if d < 0 {
			return id, false
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(d)
	}
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, true
}

func appendID(text []byte, id [16]byte) []byte {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(text, out[:]...)
}

// parseTime reads a time as encoding/json writes it, in UTC. ok is false for one that
// would be written in another way.
func parseTime(text []byte) (at int64, n int, ok bool) {
	const shortest, longest = len("2006-01-02T15:04:05Z"), len("2006-01-02T15:04:05.999999999Z")
	if len(text) < shortest || text[4] != '-' || text[10] != 'T' {
		return 0, 0, false
	}
	n = bytes.IndexByte(text[:min(len(text), longest)], 'Z') + 1
	if n == 0 {
		return 0, 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(text[:n]))
	if err != nil || t.Year() < 1970 || t.Year() > 2200 { // whose nanoseconds fit
		return 0, 0, false
	}
	var buf [longest]byte
	return t.UnixNano(), n, bytes.Equal(t.UTC().AppendFormat(buf[:0], time.RFC3339Nano), text[:n])
}

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostText))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
})
