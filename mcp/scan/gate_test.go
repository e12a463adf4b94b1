package scan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/store"
	"nize/store/printable"
)

// chain is n schemas, each of which applies the next one twice by keyword.
func chain(n int, each string) string {
	var defs strings.Builder
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, i+1)
		fmt.Fprintf(&defs, `"a%d":%s,`, i, strings.ReplaceAll(each, "NEXT", next))
	}
	return fmt.Sprintf(`{"type":"object","$ref":"#/$defs/a0","$defs":{%s"a%d":{}}}`, defs.String(), n)
}

// bombs are schemas that stop, blow up or mislead a validator.
var bombs = map[string]struct{ schema, why string }{
	"self reference":      {`{"type":"object","$ref":"#"}`, "cycle"},
	"mutual references":   {`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "cycle"},
	"cycle through not":   {`{"type":"object","not":{"if":{"then":{"$ref":"#"}}}}`, "cycle"},
	"cycle by anchor":     {`{"type":"object","$anchor":"x","anyOf":[{"$ref":"#x"}]}`, "cycle"},
	"dynamic cycle":       {`{"type":"object","$dynamicAnchor":"x","oneOf":[{"$dynamicRef":"#x"}]}`, "cycle"},
	"recursiveRef cycle":  {`{"type":"object","$recursiveAnchor":true,"allOf":[{"$recursiveRef":"#"}]}`, "cycle"},
	"cycle by dependency": {`{"type":"object","dependentSchemas":{"a":{"$ref":"#"}}}`, "cycle"},
	"old dependency":      {`{"type":"object","dependencies":{"a":{"$ref":"#"}}}`, "cycle"},
	"cycle in a property": {`{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/properties/a"}]}}}`, "cycle"},
	"cycle out of sight":  {`{"type":"object","x":{"y":{"$ref":"#/x/y"}},"properties":{"a":{"$ref":"#/x/y"}}}`, "cycle"},
	"cycle in a resource": {`{"type":"object","properties":{"a":{"$id":"http://example.com/a","allOf":[{"$ref":"#"}]}}}`, "cycle"},
	"allOf doubling":      {chain(27, `{"allOf":[NEXT,NEXT]}`), "10000 steps"},
	"allOf doubling more": {chain(60, `{"allOf":[NEXT,NEXT]}`), "10000 steps"},
	"anyOf doubling":      {chain(40, `{"anyOf":[NEXT,NEXT]}`), "10000 steps"},
	"if then doubling":    {chain(40, `{"if":NEXT,"then":NEXT,"else":NEXT}`), "10000 steps"},
	"dependency doubling": {chain(40, `{"dependentSchemas":{"a":NEXT,"b":NEXT}}`), "10000 steps"},
	"nested not":          {`{"type":"object","not":` + strings.Repeat(`{"not":`, 4600) + `{}` + strings.Repeat(`}`, 4601), "nested deeper"},
	"nested arrays":       {`{"type":"object","x":` + strings.Repeat(`[`, 30000) + strings.Repeat(`]`, 30000) + `}`, "nested deeper"},
	"many nodes":          {`{"type":"object","allOf":[` + strings.Repeat(`{},`, 2000) + `{}]}`, "more than 2000 nodes"},
	"large":               {`{"type":"object","description":"` + strings.Repeat("x", maxBytes) + `"}`, "over the limit"},
	"file reference":      {`{"type":"object","properties":{"a":{"$ref":"file:///etc/hosts"}}}`, "leaves the document"},
	"network reference":   {`{"type":"object","properties":{"a":{"items":{"$ref":"http://127.0.0.1:1/a"}}}}`, "leaves the document"},
	"relative reference":  {`{"type":"object","properties":{"a":{"$ref":"other.json#/a"}}}`, "leaves the document"},
	"dynamic abroad":      {`{"type":"object","properties":{"a":{"$dynamicRef":"http://example.com/a"}}}`, "leaves the document"},
	"cycle without type":  {`{"allOf":[{"$ref":"#"}]}`, "cycle"},
	"cycle by $id":        {`{"$id":"https://example.com/x","anyOf":[{"$ref":"https://example.com/x"}]}`, "cycle"},
	"network by $id":      {`{"$id":"https://example.com/x","properties":{"a":{"$ref":"https://example.com/y"}}}`, "leaves the document"},
	"huge exponent":       {`{"type":"object","properties":{"a":{"maximum":1e999999999}}}`, "exponent"},
	"twice the same key":  {`{"type":"object","properties":{},"properties":{"a":{}}}`, "twice"},
	"not JSON":            {`{"type":"object"`, "unexpected EOF"},
	"two values":          {`{"type":"object"}{}`, "more than one value"},
	"not UTF-8":           {"{\"type\":\"object\",\"x\":\"\xff\"}", "UTF-8"},
}

// least is the time for which f computes at its best: of up to 20 tries, one
// within enough ends them. What the machine does beside it does not count, but for
// what is collected after others.
func least(enough time.Duration, f func()) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range 20 {
		start := cpuTime()
		f()
		if best = min(best, cpuTime()-start); best <= enough {
			break
		}
	}
	return best
}

// cpuTime is the time for which this process has computed, which is no longer on a
// busy machine, as the clock's is.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestBombs(t *testing.T) {
	for name, bomb := range bombs {
		tool := store.Tool{Name: "t", InputSchema: json.RawMessage(bomb.schema)}
		var err error
		if took := least(50*time.Millisecond, func() { err = Gate{}.Check(tool) }); took > 50*time.Millisecond {
			t.Errorf("%s: took %v", name, took)
		}
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), bomb.why) {
			t.Errorf("%s: %v, want it to say %q", name, err, bomb.why)
		}
		const scan = 5 * time.Second // a slow machine and the race detector's time included
		if took := least(scan, func() { Gate{}.Pin(store.Server{}, "", tool) }); took > scan {
			t.Errorf("%s: the scan took %v", name, took)
		}
	}
	good := json.RawMessage(`{"type":"object"}`)
	err := Gate{}.Check(store.Tool{InputSchema: good, OutputSchema: json.RawMessage(`{"$ref":"#"}`)})
	if err == nil || !strings.Contains(err.Error(), "output schema") {
		t.Errorf("got %v, want the output schema named", err)
	}
}

func TestGatePasses(t *testing.T) {
	for name, raw := range map[string]string{
		"plain":                   `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
		"recursion by property":   `{"type":"object","properties":{"next":{"$ref":"#"},"kids":{"type":"array","items":{"$ref":"#/$defs/k"}}},"$defs":{"k":{"properties":{"k":{"$ref":"#/$defs/k"}}}}}`,
		"escaped pointer":         `{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{}}}`,
		"anchors":                 `{"type":"object","properties":{"a":{"$ref":"#x"},"b":{"$dynamicRef":"#y"}},"$defs":{"x":{"$anchor":"x"},"y":{"$dynamicAnchor":"y"}}}`,
		"old anchors":             `{"type":"object","properties":{"a":{"$ref":"#x"},"b":{"$ref":"#y"}},"definitions":{"x":{"$id":"#x"},"y":{"id":"#y"}}}`,
		"a resource inside":       `{"type":"object","properties":{"a":{"$id":"http://example.com/a","$ref":"#/$defs/b","$defs":{"b":{}}}}}`,
		"a property named $ref":   `{"type":"object","properties":{"$ref":{"type":"string"},"enum":{"type":"string"}}}`,
		"data that looks like it": `{"type":"object","properties":{"a":{"const":{"$ref":"http://example.com"},"default":{"$ref":"x"},"enum":[{"$ref":"y"}]}}}`,
		"a small diamond":         chain(9, `{"allOf":[NEXT,NEXT]}`),
		"boolean schemas":         `{"type":"object","properties":{"a":true,"b":{"not":false}},"additionalProperties":false}`,
		"reference to a boolean":  `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":true}}`,
		"nothing":                 ``,
		"empty":                   `{}`,
		"null":                    `null`,
		"true":                    `true`,
		"array":                   `[]`,
		"no type":                 `{"properties":{"a":{}},"required":["a"]}`,
		"only $schema":            `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
		"list of types":           `{"type":["object","null"]}`,
		"type of a string":        `{"type":"string"}`,
		"unknown type":            `{"type":"strng"}`,
		"null keywords":           `{"type":"object","properties":null,"required":null,"allOf":null,"$defs":null}`,
		"root anyOf":              `{"anyOf":[{"properties":{"a":{}}},{"type":"null"}]}`,
		"root reference":          `{"$ref":"#/definitions/X","definitions":{"X":{"type":"object"}}}`,
		"reference by $id":        `{"$id":"https://example.com/x#","properties":{"a":{"$ref":"https://example.com/x#/$defs/b"}},"$defs":{"b":{"$id":"b"},"c":{"$ref":"b"}}}`,
		"dangling":                `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}}}`,
		"dangling anchor":         `{"type":"object","properties":{"a":{"$ref":"#a"}}}`,
		"reference to text":       `{"type":"object","title":"x","properties":{"a":{"$ref":"#/title"}}}`,
		"reference no string":     `{"type":"object","allOf":[{"$ref":{"$ref":"#"}}]}`,
		"bad escape":              `{"type":"object","allOf":[{"$ref":"#/%zz"}]}`,
		"draft-04":                `{"properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
		"depth 32":                `{"type":"object","x":` + strings.Repeat(`[`, 31) + strings.Repeat(`]`, 31) + `}`,
	} {
		if err := (Gate{}).Check(store.Tool{InputSchema: json.RawMessage(raw), OutputSchema: json.RawMessage(`{"properties":{"a":{}}}`)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// How long it may take is TestBombs' business: Go's fuzzer calls an input that
// takes ten seconds a failure, and less says nothing on a busy machine.
func FuzzGate(f *testing.F) {
	for _, bomb := range bombs {
		if len(bomb.schema) < 4000 {
			f.Add(bomb.schema)
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		tool := store.Tool{Name: "t", Description: raw, InputSchema: json.RawMessage(raw), OutputSchema: json.RawMessage(raw)}
		_ = Gate{}.Check(tool)
		pin, findings := Gate{}.Pin(store.Server{}, raw, tool)
		again, same := Gate{}.Pin(store.Server{}, raw, tool)
		if pin != again || fmt.Sprint(findings) != fmt.Sprint(same) {
			t.Error("not the same twice")
		}
		for _, s := range findings {
			if printable.EscapeLines(s) != s {
				t.Errorf("finding %q is not plain", s)
			}
		}
	})
}
