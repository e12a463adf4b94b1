package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A rule says what a JSON value must be; what is wrong goes to the checker
// with the pointer of its place, in Slack's words. Rules are values, so that
// block.go reads like Slack's reference.
type rule func(c *checker, at string, raw json.RawMessage)

// checker gathers what is wrong with blocks, and what must be unique in them.
type checker struct {
	errors   []string
	blockIDs map[string]bool
	actions  map[string]bool // of the block at hand
	text     int             // characters of all text
	markdown int             // of all markdown blocks
	tables   int
	kinds    []string // types of the blocks
}

const maxErrors = 20 // of one answer

func (c *checker) wrong(at, format string, args ...any) {
	if len(c.errors) < maxErrors {
		c.errors = append(c.errors, fmt.Sprintf(format, args...)+" [json-pointer:"+at+"]")
	}
}

func readString(c *checker, at string, raw json.RawMessage) (string, bool) {
	var v string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
		c.wrong(at, "must be a string")
		return "", false
	}
	return v, true
}

func readList(c *checker, at string, raw json.RawMessage, least, most int) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		c.wrong(at, "must be an array")
		return nil
	}
	if len(list) < least {
		c.wrong(at, "no fewer than %d items allowed", least)
	}
	if len(list) > most {
		c.wrong(at, "no more than %d items allowed", most)
		return nil
	}
	return list
}

// length is a string of so many characters.
func length(least, most int) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		v, ok := readString(c, at, raw)
		if !ok {
			return
		}
		n := utf8.RuneCountInString(v)
		if n < least {
			c.wrong(at, "must be more than %d characters", least-1)
		}
		if n > most {
			c.wrong(at, "must be less than %d characters", most+1)
		}
	}
}

func word(words ...string) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		if v, ok := readString(c, at, raw); ok && !slices.Contains(words, v) {
			c.wrong(at, "must be one of: %s", strings.Join(words, ", "))
		}
	}
}

func matching(pattern string) rule {
	re := regexp.MustCompile(pattern)
	return func(c *checker, at string, raw json.RawMessage) {
		if v, ok := readString(c, at, raw); ok && !re.MatchString(v) {
			c.wrong(at, "must match %s", pattern)
		}
	}
}

func address(most int) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		v, ok := readString(c, at, raw)
		if !ok {
			return
		}
		u, err := url.Parse(v)
		if err != nil || !slices.Contains([]string{"http", "https", "mailto", "slack"}, u.Scheme) || u.Host == "" && u.Opaque == "" {
			c.wrong(at, "must be a valid URL")
		}
		if utf8.RuneCountInString(v) > most {
			c.wrong(at, "must be less than %d characters", most+1)
		}
	}
}

func boolean(c *checker, at string, raw json.RawMessage) {
	if s := string(raw); s != "true" && s != "false" {
		c.wrong(at, "must be a boolean")
	}
}

func integer(least, most int) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		var v int
		if json.Unmarshal(raw, &v) != nil || len(raw) == 0 || raw[0] == 'n' {
			c.wrong(at, "must be an integer")
		} else if v < least || v > most {
			c.wrong(at, "must be between %d and %d", least, most)
		}
	}
}

func list(least, most int, of rule) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		for i, item := range readList(c, at, raw, least, most) {
			of(c, fmt.Sprintf("%s/%d", at, i), item)
		}
	}
}

// object is what has these fields; those whose name ends in ! must be there.
func object(fields map[string]rule) rule {
	return func(c *checker, at string, raw json.RawMessage) { fieldsOf(c, at, raw, fields) }
}

// fieldsOf checks an object and returns its fields, nil if it is none.
func fieldsOf(c *checker, at string, raw json.RawMessage, fields map[string]rule) map[string]json.RawMessage {
	var got map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &got) != nil {
		c.wrong(at, "must be an object")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		check := fields[name]
		if check == nil {
			check = fields[name+"!"]
		}
		if check == nil {
			c.wrong(at, "invalid additional property: %s", name)
			continue
		}
		check(c, at+"/"+name, got[name])
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if must, ok := strings.CutSuffix(name, "!"); ok && got[must] == nil {
			c.wrong(at, "missing required field: %s", must)
		}
	}
	return got
}

// one is an object whose type chooses among these; each also has its type.
func one(kinds map[string]rule) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		var got struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &got) != nil || got.Type == "" {
			c.wrong(at, "missing required field: type")
			return
		}
		check := kinds[got.Type]
		if check == nil {
			c.wrong(at+"/type", "unsupported type: %.60s", got.Type)
			return
		}
		check(c, at, raw)
	}
}

func anything(*checker, string, json.RawMessage) {}

// together runs several rules over one value.
func together(rules ...rule) rule {
	return func(c *checker, at string, raw json.RawMessage) {
		for _, r := range rules {
			r(c, at, raw)
		}
	}
}
