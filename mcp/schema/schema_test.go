package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/store"
)

const convert = `{"type":"object","additionalProperties":false,"required":["to"],"properties":{
	"time":{"type":"string","description":"Clock time, as 15:04. Today is meant."},
	"from":{"type":"string","description":"source IANA zone"},
	"to":{"type":"string","description":"target IANA zone"},
	"style":{"enum":["short","long"]},
	"n":{"type":"integer","minimum":1,"maximum":10},
	"ratio":{"type":"number","exclusiveMinimum":0,"multipleOf":0.5},
	"tags":{"type":"array","items":{"type":"string","maxLength":3},"maxItems":2,"uniqueItems":true},
	"code":{"type":"string","pattern":"^[a-z]+$"},
	"api_key":{"type":"integer"},
	"nested":{"type":"object","properties":{"a/b":{"type":"boolean"}},"required":["a/b"]}}}`

func must(t testing.TB, raw string) *Validator {
	t.Helper()
	v, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("compiling %s: %v", raw, err)
	}
	return v
}

// said is what Check says after its fixed beginning, "" for a fit.
func said(t testing.TB, v *Validator, args string) string {
	t.Helper()
	err := v.Check(json.RawMessage(args))
	if err == nil {
		return ""
	}
	var bad *store.CallError
	if !errors.As(err, &bad) || bad.Code != store.CodeInvalid || bad.Retryable {
		t.Fatalf("Check(%s) = %#v, want a CallError with code invalid_arguments", args, err)
	}
	rest, ok := strings.CutPrefix(bad.Message.String(), "arguments don't fit the schema: ")
	if !ok {
		t.Fatalf("Check(%s): message %q", args, bad.Message)
	}
	return rest
}

func TestMessages(t *testing.T) {
	v := must(t, convert)
	for _, test := range []struct{ args, want string }{
		{`{"to":"Asia/Tokyo"}`, ""},
		{`{"to":"x","n":5.0,"ratio":1.5,"tags":["a","b"],"style":"long","code":"abc"}`, ""},
		{`{"tim":"12:00"}`, "/to is required (string: target IANA zone); /tim is not a parameter, did you mean /time?"},
		{``, "/to is required (string: target IANA zone)"},
		{`{"to":1}`, "/to must be a string, received 1"},
		{`{"to":null}`, "/to must be a string, received null"},
		{`[]`, "the arguments must be an object, received an array of 0"},
		{`{"to":"x","style":"shrt"}`, `/style must be one of "short", "long", received "shrt", did you mean "short"?`},
		{`{"to":"x","n":0}`, "/n must be at least 1, received 0"},
		{`{"to":"x","n":9007199254740993}`, "/n must be at most 10, received 9007199254740993"},
		{`{"to":"x","n":"3"}`, `/n must be an integer, received "3"`},
		{`{"to":"x","ratio":0}`, "/ratio must be greater than 0, received 0"},
		{`{"to":"x","ratio":0.7}`, "/ratio must be a multiple of 0.5, received 0.7"},
		{`{"to":"x","tags":["abcd"]}`, `/tags/0 must have at most 3 characters and has 4, received "abcd"`},
		{`{"to":"x","tags":["a","a"]}`, `/tags must not repeat an item (0 and 1 are equal), received an array of 2`},
		{`{"to":"x","code":"A1"}`, `/code must match the pattern ^[a-z]+$, received "A1"`},
		{`{"to":"x","nested":{}}`, "/nested/a~1b is required (boolean)"},
		{`{"to":"x","api_key":"sk-verysecretverysecret"}`, "/api_key must be an integer"},
		{`{"to":["sk-verysecretverysecret"],"n":"sk-verysecretverysecret"}`, `/n must be an integer, received "••••"; /to must be a string, received an array of 1`},
		{`{"to":"x","zzzzzz":1}`, "/zzzzzz is not a parameter; there are /api_key, /code, /from, /n, /nested, /ratio, /style, /tags, /time, /to"},
		{`{"n":0,"ratio":0,"style":1,"code":1,"time":1,"from":1}`,
			"/to is required (string: target IANA zone); /code must be a string, received 1; /from must be a string, received 1; " +
				"/n must be at least 1, received 0; /ratio must be greater than 0, received 0; and 2 more"},
	} {
		got := said(t, v, test.args)
		got = strings.ReplaceAll(got, store.RedactText("sk-verysecretverysecret"), "••••")
		if got != test.want {
			t.Errorf("Check(%s)\n got %s\nwant %s", test.args, got, test.want)
		}
	}
}

func TestAlternatives(t *testing.T) {
	v := must(t, `{"type":"object","properties":{
		"id":{"anyOf":[{"type":"string"},{"type":"integer"}]},
		"shape":{"oneOf":[
			{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"],"additionalProperties":false},
			{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]},
		"opt":{"anyOf":[{"$ref":"#/$defs/name"},{"type":"null"}]}},
		"$defs":{"name":{"type":"string","minLength":2}}}`)
	for _, test := range []struct{ args, want string }{
		{`{"id":1,"opt":null,"shape":{"kind":"circle","r":1}}`, ""},
		{`{"id":true}`, "/id must be an integer or a string, received true"},
		{`{"shape":{"kind":"circle"}}`, "/shape/r is required (number)"},
		{`{"shape":{"kind":"circle","r":1,"R":2}}`, "/shape/R is not a parameter, did you mean /shape/r?"},
		{`{"shape":{"kind":"line"}}`, `/shape/kind must be one of "circle", "square", received "line"`},
		{`{"shape":3}`, "/shape must be an object, received 3"},
		{`{"opt":"x"}`, `/opt must have at least 2 characters and has 1, received "x"`},
	} {
		if got := said(t, v, test.args); got != test.want {
			t.Errorf("Check(%s)\n got %s\nwant %s", test.args, got, test.want)
		}
	}
}

func TestDraftsAndOddities(t *testing.T) {
	for name, test := range map[string]struct{ schema, good, bad string }{
		"draft-07 without #":       {`{"$schema":"http://json-schema.org/draft-07/schema","type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		"draft-07 array items":     {`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":["x"]}`, `{"a":["x","y"]}`},
		"draft-04 exclusive":       {`{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"a":1}`, `{"a":0}`},
		"unknown $schema":          {`{"$schema":"https://example.com/meta","type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		"draft 2019-09":            {`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		"look-ahead is dropped":    {`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"},"pattern":{"type":"string"}}}`, `{"a":"x"}`, `{"pattern":1}`},
		"look-ahead in names":      {`{"type":"object","patternProperties":{"^(?!x)":{"type":"string"},"^n":{"type":"number"}},"additionalProperties":false}`, `{"q":7,"n":1}`, `{"n":"x"}`},
		"formats are not asserted": {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string","format":"date-time"}}}`, `{"a":"tomorrow"}`, `{"a":1}`},
		"recursion by properties":  {`{"type":"object","properties":{"v":{"type":"string"},"next":{"$ref":"#"}}}`, `{"next":{"next":{"v":"x"}}}`, `{"next":{"next":{"v":1}}}`},
		"local $defs and anchors":  {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#y"}},"$defs":{"x":{"type":"string"},"z":{"$anchor":"y","type":"integer"}}}`, `{"a":"x","b":1}`, `{"b":"x"}`},
		"$id elsewhere":            {`{"$id":"https://example.com/tool","type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		"unevaluatedProperties":    {`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":"x"}`, `{"aa":"x"}`},
		"no type":                  {`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`, `{}`},
		"list of one type":         {`{"type":["object"],"required":["a"]}`, `{"a":"x"}`, `{}`},
		"list of types":            {`{"type":["object","null"],"required":["a"]}`, `{"a":"x"}`, `{}`},
		"root anyOf":               {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, `{"c":1}`},
		"root oneOf with null":     {`{"oneOf":[{"type":"null"},{"type":"object","required":["a"]}]}`, `{"a":1}`, `{}`},
		"root allOf":               {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":1}`, `{"a":1}`},
		"root $ref":                {`{"$ref":"#/definitions/X","definitions":{"X":{"type":"object","required":["a"]}}}`, `{"a":1}`, `{}`},
		"nullable":                 {`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":null}`, `{"a":1}`},
		"nullable enum":            {`{"properties":{"a":{"type":"string","enum":["x"],"nullable":true}}}`, `{"a":null}`, `{"a":"y"}`},
		"nullable $ref":            {`{"properties":{"a":{"$ref":"#/$defs/s","nullable":true}},"$defs":{"s":{"type":"string"}}}`, `{"a":null}`, `{"a":1}`},
		"dangling $ref":            {`{"properties":{"a":{"$ref":"#/$defs/gone"},"b":{"type":"string"}}}`, `{"a":1,"b":"x"}`, `{"b":1}`},
		"null keywords":            {`{"type":"object","properties":{"a":{"type":"string","description":null,"enum":null}},"required":null}`, `{}`, `{"a":1}`},
		"null properties":          {`{"type":"object","properties":null,"required":["a"]}`, `{"a":1}`, `{}`},
		"unknown types":            {`{"properties":{"a":{"type":"any"},"b":{"type":"String"},"c":{"type":["float","string"]}}}`, `{"a":[],"b":"x","c":1.5}`, `{"b":1}`},
		"required of draft-03":     {`{"properties":{"a":{"type":"string","required":true}}}`, `{}`, `{"a":1}`},
		"$dynamicRef":              {`{"$dynamicAnchor":"n","type":"object","properties":{"v":{"type":"string"},"kids":{"type":"array","items":{"$dynamicRef":"#n"}}}}`, `{"kids":[{"v":"x"}]}`, `{"kids":[{"v":1}]}`},
	} {
		v, err := Compile(json.RawMessage(test.schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := said(t, v, test.good); got != "" {
			t.Errorf("%s: Check(%s) = %s, want a fit", name, test.good, got)
		}
		if said(t, v, test.bad) == "" {
			t.Errorf("%s: Check(%s) fits, want an error", name, test.bad)
		}
	}
}

// TestEverythingFits: of what says nothing about an object every object fits.
func TestEverythingFits(t *testing.T) {
	for _, raw := range []string{`{}`, `true`, `false`, `null`, `[]`, `7`, `"object"`, `{"type":"string"}`, `{"type":"strng"}`, `{"type":null}`, `{"enum":["a"]}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"$ref":"#/$defs/gone"}`, `{"properties":null}`} {
		v, err := Compile(json.RawMessage(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		for _, args := range []string{`{}`, `{"a":1}`} {
			if got := said(t, v, args); got != "" {
				t.Errorf("%s: Check(%s) = %s", raw, args, got)
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"self reference":    `{"$ref":"#"}`,
		"cycle":             `{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
		"dynamic cycle":     `{"type":"object","$dynamicAnchor":"x","allOf":[{"$dynamicRef":"#x"}]}`,
		"file":              `{"type":"object","properties":{"a":{"$ref":"file:///etc/hosts"}}}`,
		"network":           `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`,
		"not JSON":          `{"type":`,
		"huge exponent":     `{"type":"object","properties":{"a":{"type":"number","minimum":1e999999999}}}`,
		"deep":              strings.Repeat(`{"not":`, 3000) + `{}` + strings.Repeat(`}`, 3000),
		"large":             `{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`,
		"numbers of digits": `{"type":"object","maximum":1` + strings.Repeat("0", 2000) + `}`,
	} {
		v, err := Compile(json.RawMessage(raw))
		if !errors.Is(err, ErrUnchecked) || v != nil {
			t.Errorf("%s: Compile = %v, %v, want ErrUnchecked", name, v, err)
		}
	}
}

// TestHostileArguments has arguments that would take years, gigabytes or the
// stack without the meter and the survey: it would not end.
func TestHostileArguments(t *testing.T) {
	double := `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"properties":{"x":{"$ref":"#/$defs/n"}}},{"properties":{"x":{"$ref":"#/$defs/n"}}}]}}}`
	deep := strings.Repeat(`{"x":`, 60) + `{}` + strings.Repeat(`}`, 60)
	chain := `{"type":"object","properties":{"a":{"$ref":"#/$defs/a0"}},"$defs":{`
	for i := range 40 {
		chain += fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	chain += `"a40":{}}}`
	slow := `{"type":"object","properties":{"a":{"items":{"type":"string","pattern":"(x+x+){2,9}y"}}}}`
	many := `{"a":[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 3000) + `"x"]}`
	for name, test := range map[string]struct{ schema, args string }{
		"doubling at each level": {double, deep},
		"doubling in place":      {chain, `{"a":1}`},
		"slow pattern":           {slow, many},
	} {
		err := must(t, test.schema).Check(json.RawMessage(test.args))
		if !errors.Is(err, ErrUnchecked) {
			t.Errorf("%s: Check = %v, want ErrUnchecked", name, err)
		}
	}
	v := must(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":0}}}`)
	for _, args := range []string{
		`{"n":1e999999999}`, `{"n":` + strings.Repeat("9", 100_000) + `}`, `{"n":1`, `{"n":1}{}`, `{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		`{"x":"` + strings.Repeat("x", maxArgs) + `"}`,
	} {
		if err := v.Check(json.RawMessage(args)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Check(%.40s) = %v, want an invalid_arguments", args, err)
		} else if len(err.Error()) > 2000 {
			t.Errorf("Check(%.40s): a message of %d bytes", args, len(err.Error()))
		}
	}
}

func TestMessageIsBounded(t *testing.T) {
	v := must(t, `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`)
	args := `{"` + strings.Repeat("\\u202ex", 3000) + `":1,"a":"` + strings.Repeat("y", 10000) + `","b\n\u001b[31m":2}`
	got := said(t, v, args)
	if len(got) > 1500 || strings.ContainsAny(got, "\x1b\n\u202e") {
		t.Errorf("message of %d bytes: %q", len(got), got)
	}
}

func TestCache(t *testing.T) {
	c := &Cache{Max: 2}
	tool := store.Tool{Server: "toolbox", Name: "convert_time", InputSchema: json.RawMessage(convert), Pin: "p1"}
	err := c.Check(tool, json.RawMessage(`{"tim":"1"}`))
	want := "arguments don't fit toolbox:convert_time: /to is required (string: target IANA zone); /tim is not a parameter, did you mean /time?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	first, _ := c.Get(tool)
	if again, _ := c.Get(tool); again != first {
		t.Error("compiled twice")
	}
	tool.Name = "alias" // another server may have the same definition
	if err := c.Check(tool, nil); err == nil || !strings.HasPrefix(err.Error(), "arguments don't fit toolbox:alias: ") {
		t.Errorf("got %v, want the tool's own name", err)
	}
	bad := store.Tool{Server: "s", Name: "t", InputSchema: json.RawMessage(`{"$ref":"#"}`)}
	for range 2 {
		if err := c.Check(bad, json.RawMessage(`{}`)); !errors.Is(err, ErrUnchecked) {
			t.Errorf("got %v, want ErrUnchecked", err)
		}
	}
	c.Get(store.Tool{Pin: "p3", InputSchema: json.RawMessage(`{}`)})
	if diff := cmp.Diff(c.Len(), 2); diff != "" {
		t.Errorf("kept: %s", diff)
	}
	if again, _ := c.Get(store.Tool{Pin: "p1", InputSchema: tool.InputSchema}); again == first {
		t.Error("the one longest unused was kept")
	}
}

func TestCacheTogether(t *testing.T) {
	c := &Cache{Max: 4}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 50 {
				tool := store.Tool{Pin: fmt.Sprint((i + j) % 8), InputSchema: json.RawMessage(convert)}
				if err := c.Check(tool, json.RawMessage(`{"to":"x","n":11}`)); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// Go's fuzzer calls an input that takes ten seconds a failure; no meter lets one
// take half of one, on a machine that has nothing else to do.
func FuzzCheck(f *testing.F) {
	f.Add(convert, `{"to":"x"}`)
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"type":"object","patternProperties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1e9}}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		v, err := Compile(json.RawMessage(schema))
		if err != nil {
			if !errors.Is(err, ErrUnchecked) {
				t.Fatalf("Compile = %v, want ErrUnchecked", err)
			}
			return
		}
		if err := v.Check(json.RawMessage(args)); err != nil && !errors.Is(err, ErrUnchecked) && !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("Check = %v", err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	ten := `{"type":"object","additionalProperties":false,"required":["a","b"],"properties":{`
	args := `{`
	for i, name := range strings.Fields("a b c d e f g h i j") {
		if i > 0 {
			ten, args = ten+",", args+","
		}
		ten += `"` + name + `":{"type":["string","integer"],"description":"a field"}`
		args += fmt.Sprintf(`"%s":"value %d"`, name, i)
	}
	ten, args = ten+"}}", args+"}"
	for _, bench := range []struct{ name, schema, args string }{
		{"small", convert, `{"time":"12:00","from":"Europe/Zurich","to":"Asia/Tokyo"}`},
		{"ten", ten, args},
		{"misfit", convert, `{"tim":"12:00"}`},
	} {
		v := must(b, bench.schema)
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = v.Check(json.RawMessage(bench.args))
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			_ = must(b, convert)
		}
	})
}
