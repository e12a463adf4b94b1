package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show writes a request as its words: a ' before values, = before what a word
// would be joined with the next, / between sentences.
func show(r request) string {
	var b strings.Builder
	last := uint32(1)
	for _, a := range r.words {
		if a.sentences > last && b.Len() > 0 {
			b.WriteString("/ ")
		}
		last = max(last, a.sentences)
		if a.literal {
			b.WriteByte('\'')
		}
		b.WriteString(a.word)
		if a.joined != "" && !a.literal {
			b.WriteString("=" + a.joined)
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"create a pull request":                       "create pull=pullrequest request",
		"Please could you show me the weather?":       "show weather",
		"what is it":                                  "what=whatis is=isit it", // stop words only: better those than nothing
		`send "hello big world" to Bob`:               "send 'big 'world bob",
		"open /data/sales_2024.xlsx":                  "open 'data 'sales '2024 'xlsx 'file",
		"fetch https://example.com/page":              "fetch 'example 'com 'page 'url",
		"write to bob.smith@example.com now":          "write 'bob 'smith 'example 'com 'email now",
		"get account 001gK000003DIn0QAG":              "get=getaccount account 'id",
		"list vms in <resource-group>":                "list=listvms vms 'resource 'group",
		`call it with {"city": "Paris"}`:              "call 'city 'paris",
		"GitHub issues":                               "git=github hub=hubissues issues",
		"translate this. Then email it to my manager": "translate / email manager",
		"read report.pdf, then sum":                   "read 'report 'pdf 'file sum",
		"file file file":                              "file=filefile",
		"'unclosed quote":                             "unclosed=unclosedquote quote",
		"\"unclosed":                                  "unclosed",
		"{ unclosed {":                                "'unclosed",
		"":                                            "",
	} {
		got := show(parse(in))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("parse(%q): -want +got\n%s", in, diff)
		}
	}
}

func TestParseAction(t *testing.T) {
	for in, want := range map[string]action{
		"please delete the file":        actDelete,
		"I'd like to create an issue":   actCreate,
		`the text "delete me", show it`: actRead,
		"weather in Paris":              actUnknown,
		"删除文件":                          actDelete,
		"send it and delete the draft":  actSend,
	} {
		if got := parse(in).action; got != want {
			t.Errorf("action of %q = %d, want %d", in, got, want)
		}
	}
}

func TestParseBounds(t *testing.T) {
	long := strings.Repeat("word"+strings.Repeat("é", 3)+" ", 10_000)
	if n := len(parse(long).words); n > maxRequest {
		t.Errorf("%d words of a long request", n)
	}
	many := strings.Repeat("One thing. ", 500)
	for _, a := range parse(many).words {
		if a.sentences == 0 {
			t.Errorf("%q stands in no sentence", a.word)
		}
	}
}

func TestReadParams(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + "1" + strings.Repeat("}}", 5000)
	for in, want := range map[string]string{
		``:                                     "",
		`null`:                                 "",
		`[1,2]`:                                "",
		`{"type":"object","properties":{}}`:    "",
		`{"properties":{"city":{"type":"s"}}}`: "city",
		`{"properties":{"city":{"description":"where \"to\" look"},"unit":{"enum":["C","F",1]}},"required":["city"]}`:      `city: where "to" look; unit: C F`,
		`{"description":"not a parameter's","properties":{"a":{"items":{"description":"each","properties":{"b":{}}}}}}`:    "a: each; b",
		`{"properties":{"a":true,"b":{"anyOf":[{"description":"x"},{"type":"null"}],"default":{"properties":{"no":{}}}}}}`: "a; b: x",
		`{"$defs":{"P":{"properties":{"street":{"description":"name"}}}},"properties":{"home":{"$ref":"#/$defs/P"}}}`:      "street: name; home",
		`{"properties":{"a":{"examples":["teal","navy",3]},"b":{"const":"on"}}}`:                                           "a: teal navy; b: on",
		`{"properties":{"a":{"description":"x"`: "a: x",
		`{"properties":{"a"`:                    "",
		`{"properties":"a","x":[`:               "",
		deep:                                    strings.TrimSuffix(strings.Repeat("a; ", 9), "; "),
	} {
		var parts []string
		for _, p := range readParams([]byte(in)) {
			s := p.name
			if len(p.texts) > 0 {
				s += ": " + strings.Join(p.texts, " ")
			}
			parts = append(parts, s)
		}
		if diff := cmp.Diff(want, strings.Join(parts, "; ")); diff != "" {
			t.Errorf("readParams(%.60s): -want +got\n%s", in, diff)
		}
	}
}

func FuzzReadParams(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"description":"x","enum":["b",1,null,{"c":[]}]}},"anyOf":[{}]}`))
	f.Add([]byte(`{"a":}`))
	f.Add([]byte(`[,]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(readParams(b)); n > maxParams {
			t.Fatalf("%d parameters", n)
		}
	})
}

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"calendar", "calendar", 1, 0}, {"calnedar", "calendar", 1, 1}, {"calendr", "calendar", 1, 1},
		{"calenddar", "calendar", 1, 1}, {"kalendar", "calendar", 1, 1}, {"calxxdar", "calendar", 1, 2},
		{"repostiory", "repository", 2, 1}, {"reopsitroy", "repository", 2, 2}, {"abcdefghij", "jihgfedcba", 2, 3},
		{"", "a", 1, 1}, {"a", "", 1, 1}, {"ab", "ba", 1, 1},
	} {
		if got := edits(tt.a, tt.b, tt.limit); got != tt.want {
			t.Errorf("edits(%q, %q, %d) = %d, want %d", tt.a, tt.b, tt.limit, got, tt.want)
		}
		if got := edits(tt.a, tt.b, 2); tt.limit == 1 && (got <= 1) != (tt.want <= 1) {
			t.Errorf("edits(%q, %q): one edit and two disagree", tt.a, tt.b)
		}
	}
}

func TestLexicon(t *testing.T) {
	l := loadLexicon()
	for w, verb := range actions {
		if verb == actUnknown || w == "" {
			t.Errorf("action of %q", w)
		}
	}
	for line := range strings.Lines(zh) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "=") {
			t.Errorf("no = in %q", line)
		}
	}
	if len(l.chinese) < 300 || len(l.synonyms) < 400 {
		t.Errorf("lexicon of %d Chinese and %d English words", len(l.chinese), len(l.synonyms))
	}
}
