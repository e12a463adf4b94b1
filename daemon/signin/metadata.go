package signin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Where clients find out how to sign in.
const (
	resourceMetadata = "/.well-known/oauth-protected-resource"
	mcpPath          = "/mcp"
)

var metadataPaths = []string{resourceMetadata, resourceMetadata + mcpPath}

// scopeMCP is what every token for /mcp may do.
const scopeMCP = "mcp"

// Challenge adds to the headers of a request that was refused at /mcp where its
// client finds out how to sign in.
func (s *Server) Challenge(h http.Header, r *http.Request, status int) {
	if status != http.StatusUnauthorized {
		return
	}
	var params []string
	if origin := s.Origin(r); origin != "" {
		params = append(params, `resource_metadata="`+origin+resourceMetadata+mcpPath+`"`)
	}
	params = append(params, `scope="`+scopeMCP+`"`)
	if r.Header.Get("Authorization") != "" {
		params = append(params, `error="invalid_token"`)
	}
	h.Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
}

// resource answers what /mcp is, as RFC 9728 has it.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	s.metadata(w, r, func(origin string) any {
		return struct {
			Resource string   `json:"resource"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
			Name     string   `json:"resource_name"`
		}{origin + mcpPath, []string{scopeMCP}, []string{"header"}, "nize"}
	})
}

// WithoutOrigin is the request as the door may see it: any web page may read the
// documents, so for them it does not count which one asks.
func WithoutOrigin(r *http.Request) *http.Request {
	if r.Header.Get("Origin") == "" || !isMetadata(r) {
		return r
	}
	plain := *r
	plain.Header = r.Header.Clone()
	plain.Header.Del("Origin")
	return &plain
}

func isMetadata(r *http.Request) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	return read && slices.Contains(metadataPaths, r.URL.Path)
}

// metadata writes a document about the origin that was asked. Any page may read
// it: it holds nothing that a client does not have to know.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request, about func(origin string) any) {
	origin := s.Origin(r)
	if origin == "" {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(about(origin))
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Allow-Headers", "*")
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}
