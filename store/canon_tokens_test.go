package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"
	"unicode/utf8"
)

// slowCanonical is Canonical by encoding/json's tokens: slower, and simple
// enough to compare with.
func slowCanonical(raw []byte) (json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, ErrInvalid
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	if err := canonValue(dec, &out, 0); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, ErrInvalid
	}
	return out.Bytes(), nil
}

// FuzzCanonicalAgainstTokens compares the two.
func FuzzCanonicalAgainstTokens(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"b":1,"a":[true,null,{"x":"\u0041\n\ud800"}],"c":" \u2028 é "}`, ` [ 1 , 2.50e+10 ] `, `{"a":1,"\u0061":2}`, `"x" "y"`, `{"a":{"b":{"c":[[[]]]}}}`, `-0`, `"\/<>&"`, `{"":""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want, wantErr := slowCanonical(raw)
		got, err := Canonical(raw)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%q: %v, by tokens %v", raw, err, wantErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q: %s, by tokens %s", raw, got, want)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	raw := []byte(`{"title":"shopping","text":"milk and eggs","tags":["home","food"],"n":9007199254740993,"deep":{"a":{"b":true}}}`)
	for b.Loop() {
		if _, err := Canonical(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func canonValue(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	return canonToken(dec, tok, out, depth)
}

func canonToken(dec *json.Decoder, tok json.Token, out *bytes.Buffer, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '{' {
			return canonObject(dec, out, depth)
		}
		out.WriteByte('[')
		for i := 0; dec.More(); i++ {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := canonValue(dec, out, depth+1); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		_, err := dec.Token()
		return err
	case json.Number:
		out.WriteString(t.String())
	case string:
		writeString(out, t)
	case bool:
		if t {
			out.WriteString("true")
		} else {
			out.WriteString("false")
		}
	case nil:
		out.WriteString("null")
	}
	return nil
}

func canonObject(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	type member struct {
		key        string
		start, end int
	}
	var members []member
	var values bytes.Buffer
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		m := member{key: tok.(string), start: values.Len()} // the decoder lets only strings be keys
		if err := canonValue(dec, &values, depth+1); err != nil {
			return err
		}
		m.end = values.Len()
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			if members[i-1].key == m.key {
				return fmt.Errorf("duplicate key %q", m.key)
			}
			out.WriteByte(',')
		}
		writeString(out, m.key)
		out.WriteByte(':')
		out.Write(values.Bytes()[m.start:m.end])
	}
	out.WriteByte('}')
	return nil
}

// writeString escapes only what JSON demands, so that the bytes sent are those
// that a person would write; what must not be seen raw is escaped by the card.
func writeString(out *bytes.Buffer, s string) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)           // a string always encodes
	out.Truncate(out.Len() - 1) // Encode ends with a newline
}
