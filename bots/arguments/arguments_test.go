package arguments

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store/printable"
)

var update = flag.Bool("update", false, "write the golden files")

func TestRows(t *testing.T) {
	var out strings.Builder
	for _, test := range []struct {
		name, args string
		fields     []string
	}{
		{"in the schema's order, the rest by name", `{"a":1,"b":"x","c":true,"z":null}`, []string{"b", "gone", "z"}},
		{"texts that would pass for other types", `{"number":"5","bool":"true","null":"null","list":"[1]","object":"{}","quoted":"\"x\"","empty":"","blank":" x","tab":"a\tb","word":"five"}`, nil},
		{"numbers as they are written", `{"big":9007199254740993,"exp":1e3,"price":1234567890.12345678901234567890}`, nil},
		{"lists and objects", `{"tags":["red","green"],"none":[],"deep":{"list":[1,2,{"a":"` + strings.Repeat("x", 80) + `"}]}}`, nil},
		{"several lines", `{"body":"Dear Bob,\n\n  see you\nAnn\n","files":[{"path":"a.txt","content":"one\ntwo"},{"path":"b.txt","content":"x"}],"meta":{"n":1,"text":"a\nb"}}`, nil},
		{"an edit", `{"file_path":"/a","old_string":"one\ntwo\nthree","new_string":"one\n2\nthree\nfour","replace_all":false}`, []string{"file_path", "old_string", "new_string"}},
		{"a list of edits", `{"edits":[{"oldText":"a","newText":"b"},{"oldText":"c\nd","newText":""}],"path":"x"}`, nil},
		{"no edit: the new text is none", `{"old":"a","new":5}`, nil},
		{"a patch", `{"patch":"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}`, nil},
		{"what agents call a patch", `{"input":"*** Begin Patch\n*** Update File: x\n-a\n+b\n*** End Patch"}`, nil},
		{"hidden characters", `{"bidi":"pay \u202eeno","zero":"a\u200bb","na\u202eme":"x","lines":"a\r\nb\u2028c","look":"аpple"}`, nil},
		{"what only looks like an escape", `{"literal":"\\u202e","both":"\\u202e \u202e","before":"\\\u202e","hex":"\\x41","path":"C:\\users\\new"}`, nil},
		{"names that would pass for others", `{"a.b":1,"c[1]":2,"":3,"d: e":4,"f\ng":5}`, nil},
	} {
		rows, ok := Rows(json.RawMessage(test.args), test.fields)
		if !ok {
			t.Errorf("%s: not read", test.name)
		}
		out.WriteString("# " + test.name + "\n" + strings.Join(Plain(rows), "\n") + "\n\n")
	}
	const path = "testdata/rows.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestRowsOfNoObject(t *testing.T) {
	for _, args := range []string{"", "null", "5", `[1]`, `{"a":`, "{\"a\":\"\xff\"}"} {
		if rows, ok := Rows(json.RawMessage(args), nil); ok {
			t.Errorf("%q has the rows %v", args, rows)
		}
	}
}

// unescape reverses the escapes in a row's text that isn't in quotes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n] == '\\' {
			n++
		}
		rest := s[i+n:]
		isEscape := len(rest) >= 5 && rest[0] == 'u' && isHex(rest[1:5])
		switch {
		case n == 0:
			b.WriteByte(s[i])
			i++
		case isEscape || len(rest) >= 3 && rest[0] == 'x' && isHex(rest[1:3]):
			b.WriteString(strings.Repeat(`\`, n/2))
			i += n
			if n%2 == 1 && isEscape {
				var text string
				end := 5
				for strings.HasPrefix(rest[end:], `\u`) && len(rest) >= end+6 && isHex(rest[end+2:end+6]) && strings.ContainsRune("dD", rune(rest[1])) {
					end += 6
				}
				if json.Unmarshal([]byte(`"\`+rest[:end]+`"`), &text) != nil {
					return "?"
				}
				b.WriteString(text)
				i += end
			}
		default:
			b.WriteString(s[i : i+n])
			i += n
		}
	}
	return b.String()
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// A row shows exactly what runs: the argument can be read back from its text, and different
// arguments have different texts.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{"", "a\nb", `\u202e`, "\\\u202e", "\u202e", `\\u202e`, "\U000E0041", "x\u0301\u0301\u0301\u0301\u0301\u0301", " 5", "5", "a\tb\nc", `\x41`, "\\\r\n", "```"} {
		f.Add(seed, "new\ntext")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		raw, err := json.Marshal(map[string]string{"text": text, "old": text, "new": other})
		if err != nil {
			t.Skip()
		}
		var given map[string]string
		if json.Unmarshal(raw, &given) != nil {
			t.Skip()
		}
		rows, ok := Rows(raw, []string{"text", "old"})
		if !ok || len(rows) != 2 {
			t.Fatalf("%q: %v", raw, rows)
		}
		for _, line := range Plain(rows) {
			if got := strings.ReplaceAll(line, "\t", ""); printable.Escape(got) != got {
				t.Fatalf("%q can't be seen", line)
			}
		}
		if row := rows[0]; row.Kind == Text {
			if got := unescape(row.Text); got != given["text"] {
				t.Fatalf("%q reads back as %q", row.Text, got)
			}
		} else if row.Kind == Value && strings.HasPrefix(row.Text, `"`) {
			var got string
			if json.Unmarshal([]byte(row.Text), &got) != nil || got != given["text"] {
				t.Fatalf("%q reads back as %q", row.Text, got)
			}
		} else if row.Kind == Value {
			if got := unescape(row.Text); got != given["text"] {
				t.Fatalf("%q reads back as %q", row.Text, got)
			}
		}
		var was, becomes []string
		for _, l := range rows[1].Lines {
			if l.Op != "+" {
				was = append(was, unescape(l.Text))
			}
			if l.Op != "-" {
				becomes = append(becomes, unescape(l.Text))
			}
		}
		if strings.Join(was, "\n") != given["text"] || strings.Join(becomes, "\n") != given["new"] {
			t.Fatalf("the diff reads back as %q and %q", was, becomes)
		}
	})
}
