package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

// The rule of this file: the words of a tool and the words of a request are produced by the
// same splitter, so that CreatePullRequest, create_pull_request and "create a pull request"
// match.

const (
	maxWord    = 40 // letters per word; longer runs are blobs (base64, hashes) without meaning
	maxShort   = 4  // a run of letters and digits up to this length is one word: s3, ec2, k8s, mp3
	minJoined  = 5  // letters of a camel-case word that is also kept whole
	maxJoined  = 14
	minStemmed = 4
)

// splitter splits text into lower-case words and calls word with each. Parts of an
// identifier are passed separately; joined also gets a camel-case word of two parts as a
// whole, because prose writes GitHub for a name that contains github.
type splitter struct {
	word   func(w string)
	joined func(w string, parts int) // called after the parts; may be nil
	cjk    func(run string)          // called with a whole run of Chinese, Japanese or Korean, after its pairs; may be nil
	buf    []byte
}

// split splits s. It never calls word with an empty string.
func (sp *splitter) split(s string) {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !alnum(c) {
				i++
				continue
			}
			end := i + 1
			for end < len(s) && s[end] < utf8.RuneSelf && alnum(s[end]) {
				end++
			}
			if end == len(s) || s[end] < utf8.RuneSelf {
				sp.run(s[i:end])
				i = end
				if i+1 < len(s) && s[i] == '\'' { // Alice's, don't: drop the suffix
					for i++; i < len(s) && s[i] < utf8.RuneSelf && alnum(s[i]); i++ {
					}
				}
				continue
			}
		}
		i = sp.wide(s, i)
	}
}

// wide splits the run at s[i:] that contains letters beyond ASCII, and returns its end: CJK
// is split into pairs of characters, Latin letters lose their accents.
func (sp *splitter) wide(s string, i int) int {
	buf := sp.buf[:0]
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if isCJK(r) {
			if len(buf) > 0 {
				break
			}
			return sp.pairs(s, i)
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			if len(buf) == 0 {
				return i + n
			}
			break
		}
		i += n
		if !unicode.IsMark(r) {
			buf = appendFolded(buf, r)
		}
	}
	sp.buf = buf
	if len(buf) > 0 {
		sp.run(string(buf))
	}
	return i
}

// pairs passes on the two-character words of a CJK run, or its single character, and
// returns the run's end. Pairs find most words without a dictionary.
func (sp *splitter) pairs(s string, i int) int {
	start, prev, single := i, -1, true
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isCJK(r) {
			break
		}
		if prev >= 0 {
			sp.word(s[prev : i+n])
			single = false
		}
		prev = i
		i += n
	}
	if single && prev >= 0 {
		sp.word(s[prev:i])
	}
	if sp.cjk != nil {
		sp.cjk(s[start:i])
	}
	return i
}

// run splits one run of letters and digits at its inner borders: camelCase, HTTPServer,
// VMs, page2.
func (sp *splitter) run(s string) {
	if len(s) > 4*maxWord {
		return
	}
	if len(s) <= maxShort && mixed(s) {
		sp.word(strings.ToLower(s))
		return
	}
	parts, start := 0, 0
	for i := 1; i <= len(s); i++ {
		if i < len(s) && !border(s, i) {
			continue
		}
		if i-start <= maxWord {
			sp.word(strings.ToLower(s[start:i]))
			parts++
		}
		start = i
	}
	if parts == 2 && sp.joined != nil && len(s) >= minJoined && len(s) <= maxJoined && !hasDigit(s) {
		sp.joined(strings.ToLower(s), parts)
	}
}

// border reports whether a new word starts at s[i].
func border(s string, i int) bool {
	a, b := s[i-1], s[i]
	switch {
	case digit(a) != digit(b):
		return true
	case lower(a) && upper(b):
		return true
	case upper(a) && upper(b) && i+1 < len(s) && lower(s[i+1]):
		// The end of an acronym (HTTPServer), unless only a plural s follows (VMs, URLs).
		plural := s[i+1] == 's' && (i+2 == len(s) || !lower(s[i+2]))
		return !plural
	}
	return false
}

func alnum(c byte) bool { return lower(c) || upper(c) || digit(c) }
func lower(c byte) bool { return c >= 'a' && c <= 'z' }
func upper(c byte) bool { return c >= 'A' && c <= 'Z' }
func digit(c byte) bool { return c >= '0' && c <= '9' }

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// mixed reports whether s has both letters and digits.
func mixed(s string) bool {
	digits := 0
	for i := range len(s) {
		if digit(s[i]) {
			digits++
		}
	}
	return digits > 0 && digits < len(s)
}

func isCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// folds maps the accented letters of Latin-1 and of Latin Extended-A, from U+00C0 on, to
// plain letters; '.' marks characters without one.
const folds = "AAAAAAACEEEEIIIIDNOOOOO.OUUUUYTsaaaaaaaceeeeiiiidnooooo.ouuuuyty" +
	"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuUuUuWwYyYZzZzZzs"

// appendFolded appends r in lower case and without its accent.
func appendFolded(buf []byte, r rune) []byte {
	if r >= 0xC0 && int(r-0xC0) < len(folds) && folds[r-0xC0] != '.' {
		return append(buf, folds[r-0xC0])
	}
	if r < utf8.RuneSelf {
		return append(buf, byte(r))
	}
	return utf8.AppendRune(buf, unicode.ToLower(r))
}

// stem returns the word without its English ending (Porter2); other scripts and short words
// are unchanged.
func stem(w string) string {
	if len(w) < minStemmed {
		return w
	}
	for i := range len(w) {
		if !lower(w[i]) {
			return w
		}
	}
	if s := english.Stem(w, true); s != w {
		return s
	}
	return w // avoid a copy
}
