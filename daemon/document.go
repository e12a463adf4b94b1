package daemon

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/openapi"
	"nize/daemon/programs"
	"nize/daemon/rounds"
)

// documented are the paths below which everything stands in the document.
var documented = []string{"/llm-exec/", "/api/", "/asks/"}

func isDocumented(path string) bool {
	return slices.ContainsFunc(documented, func(prefix string) bool { return strings.HasPrefix(path+"/", prefix) })
}

// mountDocumented serves operations, the document that describes them, and the page
// that shows it. These two are for everybody who reaches the listener: they have no
// secrets, are the same in every nized of this version, and tools that others wrote
// read them before anybody has signed in.
func mountDocumented(on *http.ServeMux, routes []openapi.Route) {
	openapi.Mount(on, routes, documented, rounds.Form.Write)
	d := newDocument(routes)
	on.Handle("GET /openapi.json", d)
	on.Handle("GET /docs", d.Page())
}

// newDocument is the document of routes.
func newDocument(routes []openapi.Route) *openapi.Document {
	return openapi.New(routes, openapi.Options{
		Title: "nize", Version: api.Version,
		Description: "What nized serves to programs, which come with a key of a project and get rounds with a model and tools, and to chat clients, which come with a person's token. What an answer has may grow; what is sent and not known is refused.",
		Schemes:     schemes(), Failure: reflect.TypeFor[rounds.Failure](),
		Refusals: map[int]string{
			http.StatusUnauthorized: "nobody knows who the caller is; the message says why",
			http.StatusForbidden:    "the caller may not do that, or not from this Host or Origin",
		},
		Names: map[reflect.Type]string{
			reflect.TypeFor[rounds.Request](): "RoundRequest", reflect.TypeFor[rounds.Begin](): "BeginRound", reflect.TypeFor[rounds.Continue](): "ContinueRound",
			reflect.TypeFor[rounds.Answer](): "Round", reflect.TypeFor[rounds.Said](): "AssistantMessage", reflect.TypeFor[rounds.Proposed](): "RoundCall",
			reflect.TypeFor[rounds.Output](): "ToolOutput", reflect.TypeFor[api.ProposedCall](): "ChatProposedCall",
		},
	})
}

func schemes() map[string]openapi.Scheme {
	all := map[string]openapi.Scheme{openapi.Token: {Type: "http", Scheme: "bearer", Description: "somebody's token: nizectl tokens create NAME --audience api"}}
	for name, s := range programs.Schemes {
		all[name] = s
	}
	return all
}
