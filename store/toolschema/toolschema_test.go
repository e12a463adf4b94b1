package toolschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"nize/store/toolschema"
)

func TestValid(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}}}`: `same`,
		`{ "type" : "object" }`:                                  `same`,
		`{}`:                                                     `{"type":"object"}`,
		`true`:                                                   `{"type":"object"}`,
		`null`:                                                   `{"type":"object"}`,
		``:                                                       `{"type":"object"}`,
		`[]`:                                                     `{"type":"object"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`:       `{"type":"object"}`,
		`{"properties":{"b":{},"a":{}},"required":["b"]}`:             `{"type":"object","properties":{"b":{},"a":{}},"required":["b"]}`,
		`{"type":["object"]}`:                                         `{"type":"object"}`,
		`{"type":["object","null"],"properties":{"a":true}}`:          `{"type":"object","properties":{"a":true}}`,
		`{"type":"Object","properties":null,"required":null}`:         `{"type":"object"}`,
		`{"type":"string","enum":["a"],"description":"d"}`:            `{"type":"object","description":"d"}`,
		`{"type":"object","properties":[],"required":true,"title":1}`: `{"type":"object"}`,
		`{"type":"object","required":["a",1,"a"]}`:                    `{"type":"object","required":["a"]}`,
		`{"$ref":"#/definitions/X","definitions":{"X":{"type":"object","properties":{"a":{"$ref":"#/definitions/Y"}}},"Y":{"type":"string"}}}`: `{"definitions":{"X":{"type":"object","properties":{"a":{"$ref":"#/definitions/Y"}}},"Y":{"type":"string"}},"type":"object","properties":{"a":{"$ref":"#/definitions/Y"}}}`,
		`{"$ref":"#"}`: `{"type":"object"}`,
		`{"type":"object","$ref":"#/$defs/gone"}`:   `{"type":"object"}`,
		`{"anyOf":[{"required":["a"]},{"type":7}]}`: `{"type":"object","anyOf":[{"required":["a"]},{}]}`,
	} {
		check(t, "Valid", raw, want, toolschema.Valid(json.RawMessage(raw)))
	}
	for raw, want := range map[string]string{ // of one property
		`{"type":"string","nullable":true}`:                                              `{"type":["string","null"]}`,
		`{"type":"string","nullable":true,"enum":["a"]}`:                                 `{"type":["string","null"],"enum":["a",null]}`,
		`{"$ref":"#/properties/b","nullable":true,"description":"d"}`:                    `{"description":"d","anyOf":[{"$ref":"#/properties/b"},{"type":"null"}]}`,
		`{"type":"string","nullable":false}`:                                             `{"type":"string"}`,
		`{"type":"any"}`:                                                                 `{}`,
		`{"type":["string","float"]}`:                                                    `{}`,
		`{"type":"STRING","format":null,"minLength":"3","maxLength":-1,"pattern":{}}`:    `{"type":"string"}`,
		`{"type":"number","minimum":0,"exclusiveMinimum":true,"exclusiveMaximum":false}`: `{"type":"number","exclusiveMinimum":0}`,
		`{"type":"number","multipleOf":0,"maximum":"9"}`:                                 `{"type":"number"}`,
		`{"type":"number","maximum":9007199254740993,"multipleOf":0.10}`:                 `{"type":"number","maximum":9007199254740993,"multipleOf":0.10}`,
		`{"items":[{"type":"string"},{}],"additionalItems":false}`:                       `{"prefixItems":[{"type":"string"},{}],"items":false}`,
		`{"items":null,"allOf":[],"anyOf":{},"enum":[],"not":1}`:                         `{}`,
		`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`:                            `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`,
		`{"$ref":"#/nowhere"}`:                                                           `{}`,
		`{"$ref":"#anchor"}`:                                                             `{}`,
		`{"$ref":7,"description":"d"}`:                                                   `{"description":"d"}`,
		`{"$ref":"https://example.com/a"}`:                                               `{"$ref":"https://example.com/a"}`,
		`{"default":null,"examples":[null],"x-order":1,"const":{"type":"strng"}}`:        `{"default":null,"examples":[null],"x-order":1,"const":{"type":"strng"}}`,
		`7`:    `{}`,
		`null`: `{}`,
	} {
		got := string(toolschema.Valid(json.RawMessage(`{"type":"object","properties":{"a":` + raw + `,"b":{}}}`)))
		if want := `{"type":"object","properties":{"a":` + want + `,"b":{}}}`; got != want {
			t.Errorf("Valid of a property %s\n got %s\nwant %s", raw, got, want)
		}
	}
}

func TestListed(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","properties":null}`: `same`, // clients take it or not, as from its server
		`{"type":["object"]}`:                 `{"type":"object"}`,
		`{}`:                                  `{"type":"object"}`,
		`true`:                                `{"type":"object"}`,
		`{"oneOf":[{"properties":{"a":{}}}]}`: `{"type":"object","oneOf":[{"properties":{"a":{}}}]}`,
	} {
		check(t, "Listed", raw, want, toolschema.Listed(json.RawMessage(raw)))
	}
}

func TestPlain(t *testing.T) {
	const ab = `{"properties":{"a":{"type":"string"}},"required":["a","x"]},{"properties":{"b":{"type":"integer"},"a":{"type":"number"}},"required":["b","x"]}`
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`: `same`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{},{"not":{}}]}}}`:    `same`,
		`{"type":"object"}`: `{"type":"object","properties":{}}`,
		`not JSON`:          `{"type":"object","properties":{}}`,
		`{"type":"object","oneOf":[` + ab + `],"properties":{"x":{}},"additionalProperties":false}`:                                                                          `{"type":"object","properties":{"x":{},"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"b":{"type":"integer"}},"required":["x"],"description":"Give one of these: a, x; or b, x."}`,
		`{"allOf":[` + ab + `],"description":"d"}`:                                                                                                                           `{"type":"object","description":"d","properties":{"a":{"allOf":[{"type":"string"},{"type":"number"}]},"b":{"type":"integer"}},"required":["a","x","b"]}`,
		`{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"null"}]}`:                                                                                                `{"type":"object","properties":{"a":{}}}`,
		`{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"properties":{"a":{}}},"b":{"properties":{"b":{}}}}}`:                                            `{"type":"object","$defs":{"a":{"properties":{"a":{}}},"b":{"properties":{"b":{}}}},"properties":{"a":{},"b":{}},"description":"Give one of these: a; or b."}`,
		`{"type":"object","properties":{"a":{}},"not":{"required":["b"]},"enum":[{}],"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"],"properties":{"b":{}}}}`: `{"type":"object","properties":{"a":{},"b":{}}}`,
		`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"],"prefixItems":[{}]},"c":{"items":{"type":"array"}}}}`:                              `{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"prefixItems":[{}]},"c":{"items":{"type":"array","items":{}}}}}`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a","title":"A"}}}`:                                                                                  `{"type":"object","properties":{"a":{"title":"A"}}}`,
		`{"type":"object","allOf":[{"$ref":"#"}]}`:                                                                                                                           `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"a b":{}}}`:                                                                                                                          `same`,
	} {
		check(t, "Plain", raw, want, toolschema.Plain(json.RawMessage(raw), false))
	}
	raw := `{"type":"object","properties":{"a b":{},"c":{}},"required":["a b","c"],"additionalProperties":false}`
	check(t, "Plain with keys", raw, `{"type":"object","properties":{"c":{}},"required":["c"],"description":"There is also the property \"a b\"."}`, toolschema.Plain(json.RawMessage(raw), true))
}

func TestNarrow(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                `same`,
		`{"type":"object","additionalProperties":{}}`:                                                                            `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{"$filter":{},"a":{"type":"object","properties":{"b c":{}}}},"required":["a","$filter"]}`: `{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"description":"There is also the property \"$filter\"."}`,
		`{"type":"object","properties":{"next":{"$ref":"#"},"v":{"type":"string"}}}`:                                             `{"type":"object","properties":{"next":{"type":"object"},"v":{"type":"string"}}}`,
	} {
		check(t, "Narrow", raw, want, toolschema.Narrow(json.RawMessage(raw)))
	}
	for raw, want := range map[string]string{ // of one property
		`{}`:   `{"type":"string"}`,
		`true`: `{"type":"string"}`,
		`{"type":["string","null"],"title":"T","default":"x","minLength":1}`: `{"type":"string","minLength":1,"nullable":true}`,
		`{"type":["string","integer"],"description":"d"}`:                    `{"anyOf":[{"type":"string"},{"type":"integer"}],"description":"d"}`,
		`{"anyOf":[{"type":"string"},{"type":"null"}],"description":"d"}`:    `{"type":"string","description":"d","nullable":true}`,
		`{"oneOf":[{"type":"string"},{"type":"boolean"}]}`:                   `{"anyOf":[{"type":"string"},{"type":"boolean"}]}`,
		`{"const":"x"}`:                          `{"type":"string","enum":["x"]}`,
		`{"enum":[1,2]}`:                         `{"type":"number","description":"One of: 1,2."}`,
		`{"type":"string","enum":["a",null]}`:    `{"type":"string","enum":["a"]}`,
		`{"type":"string","format":"uri"}`:       `{"type":"string"}`,
		`{"type":"string","format":"date-time"}`: `{"type":"string","format":"date-time"}`,
		`{"type":"integer","exclusiveMinimum":0,"maximum":9,"format":"int32"}`:                     `{"type":"integer","maximum":9,"format":"int32"}`,
		`{"type":"array","items":[{"type":"string"},{"type":"number"}]}`:                           `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}}`,
		`{"type":"array","uniqueItems":true}`:                                                      `{"type":"array","items":{"type":"string"}}`,
		`{"$ref":"#/$defs/d","description":"d"}`:                                                   `{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"description":"d"}`,
		`{"allOf":[{"$ref":"#/$defs/d"},{"properties":{"l":{"type":"number"}},"required":["l"]}]}`: `{"type":"object","properties":{"k":{"type":"string"},"l":{"type":"number"}},"required":["k","l"]}`,
		`{"type":"object","patternProperties":{"^a":{}},"additionalProperties":false}`:             `{"type":"object"}`,
	} {
		got := string(toolschema.Narrow(json.RawMessage(`{"type":"object","properties":{"a":` + raw + `},"$defs":{"d":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]}}}`)))
		if want := `{"type":"object","properties":{"a":` + want + `}}`; got != want {
			t.Errorf("Narrow of a property %s\n got %s\nwant %s", raw, got, want)
		}
	}
}

func check(t *testing.T, what, raw, want string, got json.RawMessage) {
	t.Helper()
	if want == "same" {
		want = raw
	}
	if string(got) != want {
		t.Errorf("%s of %s\n got %s\nwant %s", what, raw, got, want)
	}
}

// hostile are schemas that grow without end if references are expanded.
func hostile() []string {
	doubling, wide := `{"type":"object","$ref":"#/$defs/a0","$defs":{`, `{"type":"object","properties":{"x":{"$ref":"#/$defs/a0"}},"$defs":{`
	for i := range 60 {
		doubling += fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
		wide += fmt.Sprintf(`"a%d":{"properties":{`, i)
		for j := range 20 {
			wide += fmt.Sprintf(`"p%d":{"$ref":"#/$defs/a%d"},`, j, i+1)
		}
		wide += `"q":{}}},`
	}
	return []string{
		doubling + `"a60":{}}}`, wide + `"a60":{}}}`,
		`{"allOf":[{"$ref":"#"}],"anyOf":[{"$ref":"#"}],"properties":{"a":{"$ref":"#"},"b":{"oneOf":[{"$ref":"#/properties/b"}]}}}`,
		strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000),
		`{"properties":{` + strings.Repeat(`"a":1,`, 9000) + `"b":{}}}`,
	}
}

func TestHostile(t *testing.T) {
	for i, raw := range hostile() {
		for _, form := range []func(json.RawMessage) json.RawMessage{toolschema.Valid, toolschema.Narrow, func(raw json.RawMessage) json.RawMessage { return toolschema.Plain(raw, true) }} {
			if got := form(json.RawMessage(raw)); len(got) > 1<<20 {
				t.Errorf("%d: %d bytes", i, len(got))
			}
		}
	}
}

// FuzzSchemas: whatever the bytes are, each form is JSON that needs no further
// change, its root is an object, and it is not much larger than what it came from.
func FuzzSchemas(f *testing.F) {
	for _, raw := range hostile() {
		f.Add([]byte(raw))
	}
	f.Add([]byte(`{"type":["object","null"],"oneOf":[{"properties":{"a":{"enum":[1]}}}],"$defs":{"a":{"items":[true]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for name, form := range map[string]func(json.RawMessage) json.RawMessage{
			"Valid": toolschema.Valid, "Listed": toolschema.Listed, "Narrow": toolschema.Narrow,
			"Plain": func(raw json.RawMessage) json.RawMessage { return toolschema.Plain(raw, true) },
		} {
			got := form(raw)
			if !json.Valid(got) || !toolschema.IsObject(got) {
				t.Fatalf("%s of %q: %s", name, raw, got)
			}
			if len(got) > 1<<20+8*len(raw) {
				t.Fatalf("%s of %d bytes has %d", name, len(raw), len(got))
			}
		}
	})
}

// The names that many parts of allOf require are gathered once: work is no square of
// the schema's size.
func TestNarrowGathersRequiredOnce(t *testing.T) {
	var parts []string
	for i := range 300 {
		parts = append(parts, fmt.Sprintf(`{"required":["a%d","b%d","c%d","d%d"]}`, i, i, i, i))
	}
	raw := json.RawMessage(`{"type":"object","properties":{"x":{"type":"object","allOf":[` + strings.Join(parts, ",") + `]}}}`)
	if n := testing.AllocsPerRun(1, func() { toolschema.Narrow(raw) }); n > 5*float64(len(raw)) {
		t.Errorf("%d bytes take %.0f allocations", len(raw), n)
	}
}
