// Package openapi is the document of what nized serves to programs and chat clients
// over HTTP, in OpenAPI 3.1, and the page that shows it.
//
// A [Route] is an operation with its handler and with what is said of it. The rooms
// that serve make them, in one table each; [Mount] serves that table and [New] makes
// the document of it, so that neither can have what the other lacks. The schemas come
// from the Go types of requests and answers, by tags:
//
//	json:"name,omitempty"  a field, which may lack
//	path, query, header    a parameter
//	doc:"…"                what it is
//	enum:"a,b"             what it may be
//	jsontype:"object"      what JSON of any kind has to be
//	oneof:"value"          on embedded structs: one of them, told apart by a value
//
// The library that infers schemas for MCP tools is used for their form alone: of
// itself it knows no components, no unions, and lets every list be null.
package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"nize/daemon/api"
)

// Route is an operation, what is said of it, and what serves it. Handle makes one.
type Route struct {
	api.Spec
	Doc
	Request, Answer reflect.Type
	Handler         http.Handler
	Security        []Security // one of them lets a request in
}

// Doc is what is said of an operation beyond its types.
type Doc struct {
	ID       string // of the operation: what a generated client calls it
	Text     string // more than its summary, in CommonMark
	Fails    map[int]string
	Examples []Example // of its body
	Headers  map[string]string
	Events   *Events // that its answer may have
}

// Example is one of a body, in JSON.
type Example struct{ Name, Summary, Value string }

// Events are the server-sent events of an answer.
type Events struct {
	Name string // of their component
	Base any    // what all their data have; nil for nothing
	List []Event
	Only bool // the answer has no other form
}

// Event is one of them.
type Event struct {
	Name, Summary string
	Data          any
}

// Security names the schemes that a request needs together.
type Security map[string][]string

// Scheme is how a request says who it is from.
type Scheme struct {
	Type        string `json:"type"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
	Description string `json:"description"`
}

// Token is the scheme of a person's token.
const Token = "token"

// Handle makes a route of an operation.
func Handle[Req, Res any](op api.Op[Req, Res], doc Doc, h http.Handler, by ...Security) Route {
	return Route{api.Spec(op), doc, reflect.TypeFor[Req](), reflect.TypeFor[Res](), h, by}
}

// Mount serves routes, and all else below the prefixes by fail: a path that is not
// there, or a method that it does not take.
func Mount(on *http.ServeMux, routes []Route, prefixes []string, fail func(w http.ResponseWriter, status int, message string)) {
	methods := map[string][]string{}
	for _, r := range routes {
		on.Handle(r.Method+" "+r.Path, r.Handler)
		methods[r.Path] = append(methods[r.Path], r.Method)
		if r.Method == http.MethodGet {
			methods[r.Path] = append(methods[r.Path], http.MethodHead)
		}
	}
	for path, taken := range methods {
		slices.Sort(taken)
		allow := strings.Join(taken, ", ")
		on.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			fail(w, http.StatusMethodNotAllowed, r.Method+" is not for "+path+": use "+allow)
		})
	}
	for _, prefix := range prefixes {
		on.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) {
			fail(w, http.StatusNotFound, "there is nothing at this path; /openapi.json says what there is")
		})
	}
}

// Options are what the document says of the whole.
type Options struct {
	Title, Description, Version string
	Schemes                     map[string]Scheme
	// Failure is the body of every answer that is not what was asked for.
	Failure reflect.Type
	// Refusals are the statuses that each operation may fail with.
	Refusals map[int]string
	// Names are those of types whose Go name says too little.
	Names map[reflect.Type]string
}

// Document is a document of OpenAPI.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       info                             `json:"info"`
	Servers    []server                         `json:"servers"`
	Security   []Security                       `json:"security"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components components                       `json:"components"`

	Routes []Route `json:"-"`
}

type info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description"`
	License     license `json:"license"`
}

type license struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

type server struct {
	URL string `json:"url"`
}

type components struct {
	Schemas map[string]*jsonschema.Schema `json:"schemas"`
	Schemes map[string]Scheme             `json:"securitySchemes"`
}

type operation struct {
	ID          string               `json:"operationId"`
	Summary     string               `json:"summary"`
	Description string               `json:"description,omitempty"`
	Security    []Security           `json:"security"`
	Parameters  []parameter          `json:"parameters,omitempty"`
	Body        *body                `json:"requestBody,omitempty"`
	Responses   map[string]*response `json:"responses"`
}

type parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Required    bool               `json:"required,omitempty"`
	Description string             `json:"description,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type body struct {
	Required bool             `json:"required"`
	Content  map[string]media `json:"content"`
}

type response struct {
	Description string            `json:"description"`
	Headers     map[string]header `json:"headers,omitempty"`
	Content     map[string]media  `json:"content,omitempty"`
}

type header struct {
	Description string             `json:"description"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type media struct {
	Schema   *jsonschema.Schema `json:"schema"`
	Examples map[string]example `json:"examples,omitempty"`
}

type example struct {
	Summary string          `json:"summary"`
	Value   json.RawMessage `json:"value"`
}

const (
	jsonType  = "application/json"
	eventType = "text/event-stream"
)

// New makes the document of routes.
func New(routes []Route, o Options) *Document {
	s := &schemas{names: o.Names, types: map[string]reflect.Type{}, components: map[string]*jsonschema.Schema{}}
	d := &Document{
		OpenAPI: "3.1.1", Info: info{o.Title, o.Version, o.Description, license{"Apache-2.0", "Apache-2.0"}}, Servers: []server{{"/"}}, Security: []Security{},
		Paths: map[string]map[string]*operation{}, Components: components{s.components, o.Schemes}, Routes: routes,
	}
	failure := s.of(o.Failure, answer)
	for _, r := range routes {
		op := &operation{ID: r.ID, Summary: strings.ToUpper(r.Summary[:1]) + r.Summary[1:], Description: r.Text, Security: r.Security, Responses: s.successes(r)}
		op.Parameters, op.Body = s.requestOf(r)
		fail := func(status, why string) {
			op.Responses[status] = &response{Description: why, Content: map[string]media{jsonType: {Schema: failure}}}
		}
		for status, why := range o.Refusals {
			fail(strconv.Itoa(status), why)
		}
		for status, why := range r.Fails {
			fail(strconv.Itoa(status), why)
		}
		fail("default", "something of nize's own went wrong; its log says more")
		if d.Paths[r.Path] == nil {
			d.Paths[r.Path] = map[string]*operation{}
		}
		d.Paths[r.Path][strings.ToLower(r.Method)] = op
	}
	return d
}

// requestOf is where the fields of a request travel.
func (s *schemas) requestOf(r Route) (list []parameter, _ *body) {
	inBody := false
	for _, f := range reflect.VisibleFields(r.Request) {
		p := parameter{Description: f.Tag.Get("doc")}
		for _, p.In = range []string{"path", "query", "header"} {
			if p.Name = f.Tag.Get(p.In); p.Name != "" {
				break
			}
		}
		if p.Name == "" {
			inBody = inBody || f.Tag.Get("json") != "-"
			continue
		}
		p.Required, p.Schema = p.In == "path", s.of(f.Type, request)
		list = append(list, p)
	}
	if !inBody {
		return list, nil
	}
	m := media{Schema: s.of(r.Request, request), Examples: map[string]example{}}
	for _, e := range r.Examples {
		m.Examples[e.Name] = example{e.Summary, json.RawMessage(e.Value)}
	}
	return list, &body{true, map[string]media{jsonType: m}}
}

// successes are the answers that bring what was asked for.
func (s *schemas) successes(r Route) map[string]*response {
	all := map[string]*response{}
	ok := &response{Description: "what was asked for", Headers: map[string]header{}, Content: map[string]media{}}
	for name, what := range r.Headers {
		ok.Headers[name] = header{what, &jsonschema.Schema{Type: "string"}}
	}
	if r.Answer == reflect.TypeFor[api.Empty]() {
		all["204"] = &response{Description: "done; there is nothing to say"}
	} else if r.Events == nil || !r.Events.Only {
		ok.Content[jsonType] = media{Schema: s.of(r.Answer, answer)}
	}
	if r.Events != nil {
		ok.Content[eventType] = media{Schema: &jsonschema.Schema{
			Type: "string", Description: "server-sent events; each, with its fields as members and its data read, is a " + r.Events.Name,
			ContentMediaType: eventType, ContentSchema: s.events(*r.Events),
		}}
	}
	if len(ok.Content) > 0 {
		all["200"] = ok
	}
	return all
}

// events is the component of the events of a stream.
func (s *schemas) events(e Events) *jsonschema.Schema {
	all := new(jsonschema.Schema)
	for _, one := range e.List {
		types := []reflect.Type{reflect.TypeOf(one.Data)}
		if e.Base != nil {
			types = slices.Insert(types, 0, reflect.TypeOf(e.Base))
		}
		name := any(one.Name)
		all.OneOf = append(all.OneOf, &jsonschema.Schema{Type: "object", Description: one.Summary, Required: []string{"event", "data"}, PropertyOrder: []string{"id", "event", "data"}, Properties: map[string]*jsonschema.Schema{
			"id": {Type: "string", Description: "the place in the stream, for Last-Event-ID"}, "event": {Type: "string", Const: &name}, "data": s.object(answer, types...),
		}})
	}
	s.components[e.Name] = all
	return refTo(e.Name)
}
