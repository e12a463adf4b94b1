package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/mcp/scan"
	"nize/store"
)

// document is one of 3.0 or, with "openapi" among its members, of another version.
func document(members string) []byte {
	doc := `{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://api.example/v1"}],` + members + `}`
	if strings.Contains(members, `"openapi"`) || strings.Contains(members, `"swagger"`) {
		doc = strings.Replace(doc, `"openapi":"3.0.3",`, "", 1)
	}
	return []byte(doc)
}

func mustRead(t *testing.T, data []byte) *Document {
	t.Helper()
	d, err := Read(data, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return d
}

// one is the document's only tool.
func one(t *testing.T, members string) Tool {
	t.Helper()
	d := mustRead(t, document(members))
	if len(d.Tools) != 1 {
		t.Fatalf("%d tools, warnings %q", len(d.Tools), d.Warnings)
	}
	return d.Tools[0]
}

func sameJSON(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	a, err := store.Canonical(got)
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	b, err := store.Canonical([]byte(want))
	if err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("got, want:\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	const paths = `"paths":{"/a":{"get":{"responses":{}}}}`
	for _, c := range []struct{ name, doc, format, err string }{
		{"3.0", string(document(paths)), "OpenAPI 3.0.3", ""},
		{"3.1", string(document(`"openapi":"3.1.0",` + paths)), "OpenAPI 3.1.0", ""},
		{"3.2", string(document(`"openapi":"3.2.0",` + paths)), "OpenAPI 3.2.0", ""},
		{"2.0", `{"swagger":"2.0","host":"a.example",` + paths + `}`, "Swagger 2.0", ""},
		{"2.0 as YAML, a number", "swagger: 2.0\nhost: a.example\npaths:\n  /a:\n    get: {responses: {200: {description: ok}}}\n", "Swagger 2.0", ""},
		{"a byte order mark", "\xef\xbb\xbf" + string(document(paths)), "OpenAPI 3.0.3", ""},
		{"1.2", `{"swaggerVersion":"1.2",` + paths + `}`, "", `neither "openapi" nor "swagger"`},
		{"4", string(document(`"openapi":"4.0.0",` + paths)), "", "nize reads OpenAPI 3.0 to 3.2 and Swagger 2.0"},
		{"Swagger 1.1", `{"swagger":"1.1",` + paths + `}`, "", "convert it first"},
		{"AsyncAPI", `{"asyncapi":"3.0.0"}`, "", "AsyncAPI"},
		{"a page", "<html>", "", "HTML"},
		{"nothing", " \n", "", "it is empty"},
		{"a list", "[1]", "", "not a JSON or YAML object"},
		{"broken JSON", "{\n\"a\":\n}", "", "line 3"},
		{"broken YAML", "a: [\n", "", "neither JSON nor YAML"},
		{"no text", "{\"a\":\"\xff\"}", "", "not UTF-8"},
		{"no operations", string(document(`"paths":{}`)), "", "no operations"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read([]byte(c.doc), Options{})
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v, want %q", err, c.err)
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err == "" && d.Format != c.format:
				t.Errorf("format %q", d.Format)
			}
		})
	}
}

func TestBase(t *testing.T) {
	const paths = `"paths":{"/a":{"get":{"operationId":"a"}}}`
	at, _ := url.Parse("https://docs.example/x/openapi.json")
	for _, c := range []struct{ name, servers, given, want, err string }{
		{"absolute", `"servers":[{"url":"https://api.example/v1/"}]`, "", "https://api.example/v1", ""},
		{"relative to the document", `"servers":[{"url":"../v2"}]`, "", "https://docs.example/v2", ""},
		{"none", `"servers":[]`, "", "https://docs.example", ""},
		{"without a scheme", `"servers":[{"url":"//api.example/v1"}]`, "", "https://api.example/v1", ""},
		{"variables", `"servers":[{"url":"https://{r}.api.example/{v}","variables":{"r":{"default":"eu"},"v":{"enum":["v9"]}}}]`, "", "https://eu.api.example/v9", ""},
		{"the first that is one", `"servers":[{"url":"https://{x}.example"},{"url":"https://b.example"}]`, "", "https://b.example", ""},
		{"a variable without a default", `"servers":[{"url":"https://{x}.example"}]`, "", "", "give --base-url"},
		{"another scheme", `"servers":[{"url":"wss://a.example"}]`, "", "", "not an http or https URL"},
		{"a password", `"servers":[{"url":"https://u:p@a.example"}]`, "", "", "without a user"},
		{"given", `"servers":[{"url":"https://{x}.example"}]`, "https://mine.example/z/", "https://mine.example/z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := Options{At: at}
			if c.given != "" {
				opt.Base, _ = url.Parse(c.given)
			}
			d, err := Read([]byte(`{"openapi":"3.0.0",`+c.servers+`,`+paths+`}`), opt)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || d.Base.String() != c.want {
				t.Errorf("%v %v, want %s", d, err, c.want)
			}
		})
	}
	if _, err := Read([]byte(`{"openapi":"3.0.0","servers":[{"url":"/v1"}],`+paths+`}`), Options{}); err == nil || !strings.Contains(err.Error(), "it is a file: give --base-url") {
		t.Errorf("a relative server of a file: %v", err)
	}
}

// An operation at another host is left out: credentials are for one host.
func TestServersOfOperations(t *testing.T) {
	d := mustRead(t, document(`"paths":{
		"/same":{"get":{"operationId":"same","servers":[{"url":"https://api.example/v1"}]}},
		"/other":{"servers":[{"url":"https://api.example/v2"}],"get":{"operationId":"other"}},
		"/far":{"get":{"operationId":"far","servers":[{"url":"https://evil.example"}]}}}`))
	var got []string
	for _, tool := range d.Tools {
		got = append(got, fmt.Sprint(tool.Name, tool.Meta.Route.Absolute, tool.Meta.Route.Prefix))
	}
	if want := []string{"othertrue/v2", "samefalse"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "evil.example") {
		t.Errorf("warnings %q", d.Warnings)
	}
	base, _ := url.Parse("https://mine.example/z")
	d, err := Read(document(`"paths":{"/other":{"servers":[{"url":"https://api.example/v2"}],"get":{"operationId":"other"}}}`), Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	req, err := d.Tools[0].Meta.Route.Request(t.Context(), base, nil, nil)
	if err != nil || req.URL.String() != "https://mine.example/v2/other" {
		t.Errorf("%v %v", req.URL, err)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("list", 30)
	d := mustRead(t, document(`"paths":{
		"/users/{id}":{"get":{},"delete":{"operationId":"users/delete one!"}},
		"/long":{"get":{"operationId":"`+long+`A"},"put":{"operationId":"`+long+`B"}},
		"/twice":{"get":{"operationId":"twice"},"post":{"operationId":"twice"}},
		"/no letters":{"get":{"operationId":"列表"}}}`))
	seen := map[string]bool{}
	for _, tool := range d.Tools {
		if seen[tool.Name] || len(tool.Name) > 64 || cleanName(tool.Name, 64) != tool.Name {
			t.Errorf("name %q", tool.Name)
		}
		seen[tool.Name] = true
	}
	for _, want := range []string{"get_users_id", "users_delete_one", "twice", "get_no_letters"} {
		if !seen[want] {
			t.Errorf("no %s among %v", want, seen)
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d names: %v", len(seen), seen)
	}
	// A name that was cut does not depend on the other operations.
	alone := one(t, `"paths":{"/long":{"put":{"operationId":"`+long+`B"}}}`)
	if !seen[alone.Name] {
		t.Errorf("alone it is %s", alone.Name)
	}
}

func TestAnnotations(t *testing.T) {
	for method, want := range map[string]annotations{
		"get": {ReadOnly: true, Idempotent: true, OpenWorld: true}, "head": {ReadOnly: true, Idempotent: true, OpenWorld: true},
		"post": {OpenWorld: true}, "patch": {OpenWorld: true}, "put": {Idempotent: true, OpenWorld: true},
		"delete": {Destructive: true, Idempotent: true, OpenWorld: true},
	} {
		if got := one(t, `"paths":{"/a":{"`+method+`":{}}}`).Annotations; got != want {
			t.Errorf("%s: %+v", method, got)
		}
	}
	if d, err := Read(document(`"paths":{"/a":{"trace":{}}}`), Options{}); err == nil {
		t.Errorf("trace is a tool: %v", d.Tools)
	}
}

// Parameters of several places and the body share one schema; what would clash gets its
// place behind its name. Headers that carry credentials are no parameters.
func TestOneSchema(t *testing.T) {
	tool := one(t, `
		"components":{"securitySchemes":{"k":{"type":"apiKey","in":"header","name":"x-key"},"q":{"type":"apiKey","in":"query","name":"api_key"}},
			"parameters":{"Page":{"name":"page","in":"query","description":"which","schema":{"type":"integer"}}}},
		"paths":{"/a/{id}/{forgotten}":{
			"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}},{"name":"page","in":"query","schema":{"type":"string"}}],
			"post":{"operationId":"a","parameters":[
				{"$ref":"#/components/parameters/Page"},
				{"name":"id","in":"query","schema":{"type":"string"}},
				{"name":"id","in":"header","schema":{"type":"string"}},
				{"name":"id","in":"cookie","schema":{"type":"string"}},
				{"name":"body","in":"query","schema":{"type":"string"}},
				{"name":"filter[name]","in":"query","schema":{"type":"string"}},
				{"name":"nowhere","in":"path","required":true,"schema":{"type":"string"}},
				{"name":"Authorization","in":"header","schema":{"type":"string"}},
				{"name":"X-Key","in":"header","schema":{"type":"string"}},
				{"name":"api_key","in":"query","schema":{"type":"string"}},
				{"name":"Host","in":"header","schema":{"type":"string"}},
				{"name":"X-HTTP-Method-Override","in":"header","schema":{"type":"string"}},
				{"name":"bad\r\nname","in":"header","schema":{"type":"string"}}],
			"requestBody":{"required":true,"description":"What.","content":{"application/json":{"schema":{"type":"object","properties":{"id":{"type":"string"}}}}}}}}}`)
	sameJSON(t, tool.InputSchema, `{"type":"object","additionalProperties":false,"required":["id","forgotten","body"],"properties":{
		"id":{"type":"string"},"forgotten":{"type":"string"},"page":{"type":"integer","description":"which"},
		"id_query":{"type":"string"},"id_header":{"type":"string"},"id_cookie":{"type":"string"},"body_query":{"type":"string"},"filter_name":{"type":"string"},
		"body":{"type":"object","description":"What.","properties":{"id":{"type":"string"}}}}}`)
}

func TestSchemas(t *testing.T) {
	for _, c := range []struct{ name, version, schema, want string }{
		{"nullable", "3.0.0", `{"type":"string","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`},
		{"nullable without a type", "3.0.0", `{"allOf":[{"type":"string"}],"nullable":true,"description":"d"}`, `{"description":"d","anyOf":[{"allOf":[{"type":"string"}]},{"type":"null"}]}`},
		{"nullable is no word of 3.1", "3.1.0", `{"type":"string","nullable":true}`, `{"type":"string"}`},
		{"a list of types", "3.1.0", `{"type":["string","null","nonsense"]}`, `{"type":["string","null"]}`},
		{"exclusive as a switch", "3.0.0", `{"type":"integer","minimum":1,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{"type":"integer","exclusiveMinimum":1,"maximum":9}`},
		{"exclusive as a number", "3.1.0", `{"type":"integer","exclusiveMinimum":1}`, `{"type":"integer","exclusiveMinimum":1}`},
		{"what only answers have", "3.0.0", `{"type":"object","required":["id","n"],"properties":{"id":{"type":"string","readOnly":true},"n":{"type":"string","writeOnly":true}}}`,
			`{"type":"object","required":["n"],"properties":{"n":{"type":"string"}}}`},
		{"words of no schema", "3.0.0", `{"type":"string","example":"x","xml":{"name":"y"},"x-foo":{"a":1},"externalDocs":{},"discriminator":{"propertyName":"z"},"deprecated":true,"required":true,"enum":"no","minLength":-1,"maxLength":"2","pattern":1}`, `{"type":"string"}`},
		{"names of properties that are keywords", "3.0.0", `{"type":"object","properties":{"$ref":{"type":"string"},"required":{"type":"boolean"},"properties":{"type":"object","properties":{"type":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"required":{"type":"boolean"},"properties":{"type":"object","properties":{"type":{"type":"string"}}}}}`},
		{"identity and dialect", "3.1.0", `{"$id":"https://x.example","$schema":"https://x.example","$anchor":"a","$dynamicRef":"#a","type":"string"}`, `{"type":"string"}`},
		{"true and false", "3.1.0", `{"type":"object","properties":{"a":true,"b":false},"additionalProperties":false}`, `{"type":"object","properties":{"a":{},"b":false},"additionalProperties":false}`},
		{"no schema", "3.0.0", `[1]`, `{}`},
		{"a large number stays as it is", "3.0.0", `{"type":"integer","maximum":9007199254740993,"default":9007199254740993}`, `{"type":"integer","maximum":9007199254740993,"default":9007199254740993}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool := one(t, `"openapi":"`+c.version+`","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":`+c.schema+`}}}}}}`)
			var s struct {
				Properties struct {
					Body json.RawMessage `json:"body"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(tool.InputSchema, &s); err != nil {
				t.Fatal(err)
			}
			sameJSON(t, s.Properties.Body, c.want)
		})
	}
}

func TestReferences(t *testing.T) {
	tool := one(t, `"components":{"schemas":{
			"Node":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Node"},"leaf":{"$ref":"#/components/schemas/a~1b%20c"}}},
			"a/b c":{"type":"string"}}},
		"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Node"}}}}}}}`)
	sameJSON(t, tool.InputSchema, `{"type":"object","additionalProperties":false,"properties":{"body":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"leaf":{"$ref":"#/$defs/a_1b_20c"}}}},
		"$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"leaf":{"$ref":"#/$defs/a_1b_20c"}}},"a_1b_20c":{"type":"string"}}}`)
	for name, c := range map[string][2]string{
		"another file":   {`{"$ref":"other.json#/x"}`, "another document"},
		"another host":   {`{"$ref":"https://evil.example/x.json"}`, "another document"},
		"nowhere":        {`{"$ref":"#/components/schemas/None"}`, "to nowhere"},
		"an anchor":      {`{"$ref":"#Pet"}`, "to a name"},
		"nowhere deeper": {`{"type":"object","properties":{"a":{"items":{"$ref":"#/x"}}}}`, "to nowhere"},
		"by another":     {`{"$ref":"#/components/schemas/Bad"}`, "another document"},
	} {
		d := mustRead(t, document(`"components":{"schemas":{"Bad":{"type":"object","properties":{"a":{"$ref":"x.yaml"}}}}},"paths":{"/good":{"get":{"operationId":"good"}},"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":`+c[0]+`}}}}}}`))
		if len(d.Tools) != 1 || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], c[1]) {
			t.Errorf("%s: %d tools, warnings %q", name, len(d.Tools), d.Warnings)
		}
	}
	// Circles of references to references end.
	d := mustRead(t, document(`"components":{"parameters":{"A":{"$ref":"#/components/parameters/B"},"B":{"$ref":"#/components/parameters/A"}}},"paths":{"/good":{"get":{}},"/a":{"get":{"parameters":[{"$ref":"#/components/parameters/A"}]}}}`))
	if len(d.Tools) != 1 || !strings.Contains(strings.Join(d.Warnings, ""), "circle") {
		t.Errorf("%d tools, warnings %q", len(d.Tools), d.Warnings)
	}
}

// However large a schema is, what becomes of it passes the gate and keeps to the room.
func TestRoom(t *testing.T) {
	wide := `{"type":"object","properties":{`
	for i := range 3000 {
		wide += fmt.Sprintf(`"p%d":{"type":"string","description":"%s"},`, i, strings.Repeat("x", 100))
	}
	wide = strings.TrimSuffix(wide, ",") + `}}`
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500)
	many, refs := "", ""
	for i := range 500 {
		many += fmt.Sprintf(`"S%d":{"type":"object","description":"%s","properties":{"n":{"$ref":"#/components/schemas/S%d"},"m":{"$ref":"#/components/schemas/S%d"}}},`, i, strings.Repeat("y", 300), (i+1)%500, (i*7+1)%500)
		refs += fmt.Sprintf(`"r%d":{"$ref":"#/components/schemas/S%d"},`, i, i)
	}
	for name, schema := range map[string]string{"wide": wide, "deep": deep, "many": `{"$ref":"#/components/schemas/S0"}`, "all": `{"type":"object","properties":{` + strings.TrimSuffix(refs, ",") + `}}`} {
		tool := one(t, `"components":{"schemas":{`+strings.TrimSuffix(many, ",")+`}},"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":`+schema+`}}}}}}`)
		if err := (scan.Gate{}).Check(store.Tool{Name: "a", InputSchema: tool.InputSchema}); err != nil {
			t.Errorf("%s: %d bytes: %v", name, len(tool.InputSchema), err)
		}
	}
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf(`"/a%d":{"post":{"operationId":"op%d","description":"%s","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S%d"}}}}}}`, i, i, strings.Repeat("z", 5000), i%500))
	}
	d := mustRead(t, document(`"components":{"schemas":{`+strings.TrimSuffix(many, ",")+`}},"paths":{`+strings.Join(paths, ",")+`}`))
	if got := len(marshal(d.Tools)); len(d.Tools) != 1000 || got > maxList+1<<20 {
		t.Errorf("%d tools take %d bytes", len(d.Tools), got)
	}
	for i := range 1001 {
		paths = append(paths, fmt.Sprintf(`"/b%d":{"get":{}}`, i))
	}
	if _, err := Read(document(`"components":{"schemas":{`+strings.TrimSuffix(many, ",")+`}},"paths":{`+strings.Join(paths, ",")+`}`), Options{}); err == nil || !strings.Contains(err.Error(), "2001 operations") || !strings.Contains(err.Error(), "--allow") {
		t.Errorf("2001 operations: %v", err)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	if _, err := Read([]byte(bomb), Options{}); err == nil {
		t.Error("aliases of aliases are written out")
	}
}

// The same document gives the same tools each time, or their pins would change.
func TestSameToolsEachTime(t *testing.T) {
	schemas := ""
	for i := range 300 {
		schemas += fmt.Sprintf(`"S%d":{"description":"%s","allOf":[{"$ref":"#/components/schemas/S%d"}],"anyOf":[{"$ref":"#/components/schemas/S%d"}],"oneOf":[{"$ref":"#/components/schemas/S%d"}],"not":{"$ref":"#/x/S%d"}},`,
			i, strings.Repeat("y", 200), (i*7+1)%300, (i*11+2)%300, (i*13+3)%300, (i+1)%300)
	}
	schemas = strings.TrimSuffix(schemas, ",")
	doc := document(`"x":{` + schemas + `},"components":{"schemas":{` + schemas + `}},"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}}}`)
	first := marshal(mustRead(t, doc).Tools)
	for range 10 {
		if again := marshal(mustRead(t, doc).Tools); string(again) != string(first) {
			t.Fatal("the tools are others")
		}
	}
}

func TestAllow(t *testing.T) {
	for _, c := range []struct {
		pattern, method, path string
		want                  bool
	}{
		{"GET *", "GET", "/a/b", true}, {"GET *", "POST", "/a/b", false}, {"get /a*", "GET", "/a/b", true}, {"* /a/*", "DELETE", "/a/{id}", true},
		{"GET /a", "GET", "/a/b", false}, {"GET /a/*/c", "GET", "/a/b/c", true}, {"GET /a/*/c", "GET", "/a/b/d", false}, {"GET /a*a", "GET", "/a", false}, {"GET", "GET", "/a", false},
	} {
		if got := Allowed([]string{c.pattern}, c.method, c.path); got != c.want {
			t.Errorf("%q %s %s: %v", c.pattern, c.method, c.path, got)
		}
	}
	for pattern, ok := range map[string]bool{"GET *": true, "* /a*": true, "list_*": true, "FETCH /a": false, "GET a": false, "GET /a /b": false} {
		if err := CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestWants(t *testing.T) {
	const schemes = `"components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-API-Key"},"bearer":{"type":"http","scheme":"bearer"},"basic":{"type":"http","scheme":"basic"},"oauth":{"type":"oauth2"},"q":{"type":"apiKey","in":"query","name":"key"}}},`
	for _, c := range []struct {
		name, security, own string
		want                []Want
	}{
		{"none", ``, ``, nil},
		{"of the document", `"security":[{"key":[]}],`, ``, []Want{{Header: "X-API-Key"}}},
		{"the first way", `"security":[{"bearer":[]},{"key":[]}],`, ``, []Want{{Header: "Authorization"}}},
		{"of the operation", `"security":[{"key":[]}],`, `"security":[{"basic":[]}]`, []Want{basicWant}},
		{"none by the operation", `"security":[{"key":[]}],`, `"security":[]`, nil},
		{"or none", `"security":[{"key":[]},{}],`, ``, nil},
		{"both", `"security":[{"oauth":["a"],"key":[]}],`, ``, []Want{{Header: "Authorization"}, {Header: "X-API-Key"}}},
		{"in the query", `"security":[{"q":[]}],`, ``, []Want{{Query: "key"}}},
		{"an unknown one", `"security":[{"zzz":[]}],`, ``, nil},
	} {
		d := mustRead(t, document(schemes+c.security+`"paths":{"/a":{"get":{`+c.own+`}}}`))
		if diff := cmp.Diff(d.Wants, c.want); diff != "" && len(d.Wants)+len(c.want) > 0 {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestYAML(t *testing.T) {
	d := mustRead(t, []byte(`
openapi: 3.0.1
info: {title: Y, version: 1.0}
servers: [{url: "https://a.example"}]
x-page: &page
  name: page
  in: query
  schema: {type: integer, default: 010, maximum: 1e3, enum: [1, 2.50, yes, 2026-01-02, ~]}
paths:
  /a:
    get:
      operationId: on
      parameters:
        - *page
        - <<: *page
          name: other
      responses:
        200: {description: ok}
`))
	sameJSON(t, d.Tools[0].InputSchema, `{"type":"object","additionalProperties":false,"properties":{
		"page":{"type":"integer","default":8,"maximum":1e3,"enum":[1,2.50,"yes","2026-01-02",null]},
		"other":{"type":"integer","default":8,"maximum":1e3,"enum":[1,2.50,"yes","2026-01-02",null]}}}`)
}

func TestSwagger(t *testing.T) {
	d := mustRead(t, []byte(`{"swagger":"2.0","info":{"title":"S","version":"1"},"host":"a.example","basePath":"/v1","schemes":["http","https"],
		"securityDefinitions":{"b":{"type":"basic"}},"security":[{"b":[]}],
		"definitions":{"Pet":{"type":"object","properties":{"name":{"type":"string","x-nullable":true}}}},
		"paths":{"/pets/{id}":{"parameters":[{"name":"id","in":"path","required":true,"type":"integer","format":"int64"}],
			"get":{"operationId":"get","parameters":[{"name":"tags","in":"query","type":"array","items":{"type":"string"},"collectionFormat":"multi"},{"name":"ids","in":"query","type":"array","items":{"type":"integer"},"collectionFormat":"pipes"}]},
			"put":{"operationId":"put","parameters":[{"name":"pet","in":"body","required":true,"schema":{"$ref":"#/definitions/Pet"}}]},
			"post":{"operationId":"post","consumes":["multipart/form-data"],"parameters":[{"name":"photo","in":"formData","type":"file","required":true},{"name":"note","in":"formData","type":"string"}]}}}}`))
	if d.Base.String() != "https://a.example/v1" || !slices.Equal(d.Wants, []Want{basicWant}) {
		t.Errorf("base %s, wants %v", d.Base, d.Wants)
	}
	for i, want := range []string{
		`{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"integer","format":"int64"},"tags":{"type":"array","items":{"type":"string"}},"ids":{"type":"array","items":{"type":"integer"}}}}`,
		`{"type":"object","additionalProperties":false,"required":["id","body"],"properties":{"id":{"type":"integer","format":"int64"},"body":{"type":"object","description":"The content of files is in base64.","required":["photo"],"properties":{"photo":{"type":"string","contentEncoding":"base64"},"note":{"type":"string"}}}}}`,
		`{"type":"object","additionalProperties":false,"required":["id","body"],"properties":{"id":{"type":"integer","format":"int64"},"body":{"type":"object","properties":{"name":{"type":"string"}}}}}`,
	} {
		sameJSON(t, d.Tools[i].InputSchema, want)
	}
	req, err := d.Tools[0].Meta.Route.Request(t.Context(), d.Base, nil, json.RawMessage(`{"id":7,"tags":["a","b"],"ids":[1,2]}`))
	if err != nil || req.URL.String() != "https://a.example/v1/pets/7?tags=a&tags=b&ids=1%7C2" || req.Method != http.MethodGet {
		t.Errorf("%v %v", req.URL, err)
	}
}

func TestDescriptions(t *testing.T) {
	tool := one(t, `"paths":{"/a/{b}":{"get":{"operationId":"a","summary":"`+strings.Repeat("s", 500)+`","description":"`+strings.Repeat("d", 50_000)+`","deprecated":true}}}`)
	if len(tool.Title) > 130 || len(tool.Description) > 1500 || !strings.HasPrefix(tool.Description, "Deprecated.\n") || !strings.HasSuffix(tool.Description, "\nGET /a/{b}") {
		t.Errorf("title of %d bytes, description of %d: %.40q", len(tool.Title), len(tool.Description), tool.Description)
	}
}

// A route survives being stored as a definition.
func TestRouteOf(t *testing.T) {
	tool := one(t, `"paths":{"/a/{id}":{"post":{"parameters":[{"name":"x[]","in":"query","schema":{"type":"array"}}],"requestBody":{"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"f":{"type":"string","format":"binary"}}}}}}}}}`)
	got, ok := RouteOf(marshal(tool.Meta))
	if diff := cmp.Diff(got, tool.Meta.Route); !ok || diff != "" {
		t.Errorf("%v %s", ok, diff)
	}
	for _, meta := range []string{``, `null`, `{}`, `{"nize/request":{}}`, `{"nize/request":7}`} {
		if _, ok := RouteOf(json.RawMessage(meta)); ok {
			t.Errorf("%q has a route", meta)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(document(`"components":{"schemas":{"A":{"$ref":"#/components/schemas/A"}}},"paths":{"/a/{id}":{"get":{"parameters":[{"name":"q","in":"query","style":"deepObject","schema":{"type":"object"}}]},"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}}`))
	f.Add([]byte(`{"swagger":"2.0","host":"a.example","paths":{"/a":{"post":{"parameters":[{"name":"f","in":"formData","type":"file"}]}}}}`))
	f.Add([]byte("openapi: 3.1.0\nservers: [{url: https://a.example}]\npaths:\n  /a: &a\n    get: {operationId: x}\n  /b: *a\n"))
	f.Add([]byte(`{"openapi":"3.0.0","servers":[{"url":"https://a.example"}],"paths":{"/{a}{b}":{"get":{"parameters":[{"name":"a","in":"path","schema":{"enum":["x"]}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(data, Options{})
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, tool := range d.Tools {
			if tool.Name == "" || len(tool.Name) > maxName || names[tool.Name] {
				t.Errorf("name %q", tool.Name)
			}
			names[tool.Name] = true
			if !json.Valid(tool.InputSchema) {
				t.Errorf("the schema of %s is not JSON: %s", tool.Name, tool.InputSchema)
			}
			route, ok := RouteOf(marshal(tool.Meta))
			if !ok {
				t.Fatalf("%s has no route", tool.Name)
			}
			args := map[string]string{}
			for _, p := range route.Parameters {
				args[p.Arg] = "../x?y#z"
			}
			req, err := route.Request(t.Context(), d.Base, nil, marshal(args))
			if err == nil && (req.URL.Host != d.Base.Host || req.URL.Scheme != d.Base.Scheme || !strings.HasPrefix(req.URL.EscapedPath(), d.Base.EscapedPath()) && !route.Absolute) {
				t.Errorf("%s goes to %s", tool.Name, req.URL)
			}
		}
	})
}
