package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

type textArgs struct {
	Text string `json:"text"`
}

type statsOut struct {
	Characters int `json:"characters"`
	NoSpaces   int `json:"characters_without_spaces"`
	Bytes      int `json:"bytes"`
	Words      int `json:"words"`
	Lines      int `json:"lines"`
	Sentences  int `json:"sentences"`
	Paragraphs int `json:"paragraphs"`
	Reading    int `json:"reading_seconds"`
}

func textStats(in textArgs) (statsOut, string, error) {
	out := statsOut{Characters: utf8.RuneCountInString(in.Text), Bytes: len(in.Text), Words: len(strings.Fields(in.Text))}
	ended := true // no sentence is open
	for _, r := range in.Text {
		if !unicode.IsSpace(r) {
			out.NoSpaces++
		}
		switch {
		case strings.ContainsRune(".!?。！？", r):
			if !ended {
				out.Sentences++
			}
			ended = true
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			ended = false
		}
	}
	if !ended {
		out.Sentences++
	}
	blank := true
	for line := range strings.Lines(in.Text) {
		out.Lines++
		empty := strings.TrimSpace(line) == ""
		if blank && !empty {
			out.Paragraphs++
		}
		blank = empty
	}
	out.Reading = (out.Words*60 + 237) / 238 // 238 words a minute, silent reading of English
	return out, fmt.Sprintf("%s (%d without spaces), %s, %s, %s, %s, %s; about %d s to read",
		count(out.Characters, "character"), out.NoSpaces, count(out.Bytes, "byte"), count(out.Words, "word"), count(out.Lines, "line"),
		count(out.Sentences, "sentence"), count(out.Paragraphs, "paragraph"), out.Reading), nil
}

type caseArgs struct {
	Text string `json:"text"`
	Case string `json:"case"`
}

type textOut struct {
	Text string `json:"text"`
}

func changeCase(in caseArgs) (textOut, string, error) {
	var s string
	switch in.Case {
	case "upper":
		s = strings.ToUpper(in.Text)
	case "lower":
		s = strings.ToLower(in.Text)
	case "title":
		s = capitals(in.Text, func(prev rune) bool {
			return !unicode.IsLetter(prev) && !unicode.IsDigit(prev) && prev != '\'' && prev != '’'
		})
	case "sentence":
		start := true
		s = strings.Map(func(r rune) rune {
			switch {
			case strings.ContainsRune(".!?", r):
				start = true
			case unicode.IsLetter(r) || unicode.IsDigit(r):
				if start {
					start = false
					return unicode.ToUpper(r)
				}
				return unicode.ToLower(r)
			}
			return r
		}, in.Text)
	case "camel", "pascal":
		for i, w := range wordsOf(in.Text) {
			if i > 0 || in.Case == "pascal" {
				w = capitals(w, func(prev rune) bool { return prev == 0 })
			}
			s += w
		}
	case "snake":
		s = strings.Join(wordsOf(in.Text), "_")
	case "constant":
		s = strings.ToUpper(strings.Join(wordsOf(in.Text), "_"))
	case "kebab":
		s = strings.Join(wordsOf(in.Text), "-")
	default:
		return textOut{}, "", fmt.Errorf("unknown case %q", shorten(in.Case))
	}
	return textOut{s}, s, nil
}

// capitals makes upper case what starts, and lower case the rest.
func capitals(s string, starts func(prev rune) bool) string {
	prev := rune(0)
	return strings.Map(func(r rune) rune {
		p := prev
		prev = r
		if starts(p) {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// wordsOf cuts prose and identifiers into lower-case words: "parseHTTPBody 2"
// is parse, http, body, 2.
func wordsOf(s string) []string {
	var words []string
	var word []rune
	runes := []rune(s)
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	for i, r := range runes {
		if r == '\'' || r == '’' {
			continue // don't is one word
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && len(word) > 0 {
			last := word[len(word)-1]
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(last) || next {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return words
}

type encodeArgs struct {
	Text      string `json:"text"`
	Encoding  string `json:"encoding"`
	Direction string `json:"direction"`
}

func encodeText(in encodeArgs) (textOut, string, error) {
	var s string
	var err error
	decode := in.Direction == "decode"
	switch in.Encoding {
	case "base64", "base64url":
		s, err = base(in.Text, in.Encoding == "base64url", decode)
	case "url":
		if decode {
			s, err = url.QueryUnescape(in.Text)
		} else {
			s = strings.ReplaceAll(url.QueryEscape(in.Text), "+", "%20")
		}
	case "hex":
		if decode {
			var b []byte
			b, err = hex.DecodeString(strings.Join(strings.Fields(in.Text), ""))
			s = string(b)
		} else {
			s = hex.EncodeToString([]byte(in.Text))
		}
	default:
		return textOut{}, "", fmt.Errorf("unknown encoding %q", shorten(in.Encoding))
	}
	if err != nil {
		return textOut{}, "", fmt.Errorf("that is not %s: %w", in.Encoding, err)
	}
	if !utf8.ValidString(s) {
		return textOut{}, "", fmt.Errorf("what it decodes to is not text: %d bytes, in hex %s", len(s), shorten(hex.EncodeToString([]byte(s))))
	}
	return textOut{s}, s, nil
}

// base reads base64 with and without padding and in either alphabet.
func base(s string, forURL, decode bool) (string, error) {
	if !decode {
		if forURL {
			return base64.RawURLEncoding.EncodeToString([]byte(s)), nil
		}
		return base64.StdEncoding.EncodeToString([]byte(s)), nil
	}
	s = strings.TrimRight(strings.Join(strings.Fields(s), ""), "=")
	b, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("-", "+", "_", "/").Replace(s))
	return string(b), err
}

type hashArgs struct {
	Text      string `json:"text"`
	Algorithm string `json:"algorithm"`
}

type hashOut struct {
	Algorithm string `json:"algorithm"`
	Hash      string `json:"hash"`
}

func hashText(in hashArgs) (hashOut, string, error) {
	if in.Algorithm == "" {
		in.Algorithm = "sha256"
	}
	text := []byte(in.Text)
	var sum []byte
	switch in.Algorithm {
	case "md5":
		h := md5.Sum(text)
		sum = h[:]
	case "sha1":
		h := sha1.Sum(text)
		sum = h[:]
	case "sha256":
		h := sha256.Sum256(text)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(text)
		sum = h[:]
	case "crc32":
		sum = fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(text))
		return hashOut{in.Algorithm, string(sum)}, in.Algorithm + ": " + string(sum), nil
	default:
		return hashOut{}, "", fmt.Errorf("unknown algorithm %q", shorten(in.Algorithm))
	}
	out := hashOut{in.Algorithm, hex.EncodeToString(sum)}
	return out, out.Algorithm + ": " + out.Hash, nil
}
