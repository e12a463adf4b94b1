// Package openapi generates the OpenAPI 3.1 document of the HTTP API, and a page that shows
// it.
//
// A [Route] is an operation with its handler and documentation. The packages that serve
// operations define them in one table each; [Mount] serves that table and [New] generates
// the document from it, so that the two can't differ. The schemas are generated from the Go
// types of requests and responses, by tags:
//
//	json:"name,omitempty"  a field, which may be missing
//	path, query, header    a parameter
//	doc:"…"                its description
//	enum:"a,b"             its possible values
//	jsontype:"object"      the type of raw JSON
//	oneof:"value"          on embedded structs: one of them, distinguished by a value
//
// The library that infers schemas for MCP tools is used only for its schema type: it
// doesn't support components or unions, and makes every list nullable.
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

// Route is an operation, its documentation, and its handler. Handle returns one.
type Route struct {
	api.Spec
	Doc
	Request, Answer reflect.Type
	Handler         http.Handler
	Security        []Security // any one of them is sufficient
}

// Doc is an operation's documentation beyond its types.
type Doc struct {
	ID       string // operationId, the name in generated clients
	Text     string // description beyond the summary, in CommonMark
	Fails    map[int]string
	Examples []Example // of the request body
	Headers  map[string]string
	Events   *Events // that the response may consist of
}

// Example is an example of a body, in JSON.
type Example struct{ Name, Summary, Value string }

// Events are the server-sent events of a response.
type Events struct {
	Name string // of their component
	Base any    // fields that all their data have; nil for none
	List []Event
	Only bool // the response has no other form
}

// Event is one event.
type Event struct {
	Name, Summary string
	Data          any
}

// Security names the schemes that a request needs together.
type Security map[string][]string

// Scheme is a way to authenticate a request.
type Scheme struct {
	Type        string `json:"type"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
	Description string `json:"description"`
}

// Token is the scheme of a person's token.
const Token = "token"

// Handle returns a route for an operation.
func Handle[Req, Res any](op api.Op[Req, Res], doc Doc, h http.Handler, by ...Security) Route {
	return Route{api.Spec(op), doc, reflect.TypeFor[Req](), reflect.TypeFor[Res](), h, by}
}

// Mount serves routes. For everything else below the prefixes it calls fail: a path that
// doesn't exist, or a method that the path doesn't support.
func Mount(on *http.ServeMux, routes []Route, prefixes []string, fail func(http.ResponseWriter, *api.Error)) {
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
			fail(w, &api.Error{Code: "method_not_allowed", Message: r.Method + " is not for " + path + ": use " + allow})
		})
	}
	for _, prefix := range prefixes {
		on.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) {
			fail(w, &api.Error{Code: "not_found", Message: "there is nothing at this path; see /openapi.json"})
		})
	}
}

// Options describe the whole document.
type Options struct {
	Title, Description, Version string
	Schemes                     map[string]Scheme
	// Failure is the body of every error response.
	Failure reflect.Type
	// Refusals are the error statuses that every operation may return.
	Refusals map[int]string
	// Names are the names of types whose Go name is ambiguous.
	Names map[reflect.Type]string
}

// Document is an OpenAPI document.
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

// New generates the document of routes.
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
		fail("default", "an internal error; see nize's log")
		if d.Paths[r.Path] == nil {
			d.Paths[r.Path] = map[string]*operation{}
		}
		d.Paths[r.Path][strings.ToLower(r.Method)] = op
	}
	return d
}

// requestOf returns a request's parameters and body.
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

// successes returns the successful responses.
func (s *schemas) successes(r Route) map[string]*response {
	all := map[string]*response{}
	ok := &response{Description: "the result", Headers: map[string]header{}, Content: map[string]media{}}
	for name, what := range r.Headers {
		ok.Headers[name] = header{what, &jsonschema.Schema{Type: "string"}}
	}
	if r.Answer == reflect.TypeFor[api.Empty]() {
		all["204"] = &response{Description: "done; the response has no body"}
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

// events returns the component of a stream's events.
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
