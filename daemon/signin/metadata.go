package signin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"nize/daemon/failure"
	"nize/store"
)

// Paths at which clients discover how to sign in.
const (
	resourceMetadata = "/.well-known/oauth-protected-resource"
	serverMetadata   = "/.well-known/oauth-authorization-server"
	mcpPath          = "/mcp"
)

var metadataPaths = []string{resourceMetadata, resourceMetadata + mcpPath, resourceMetadata + mcpPath + "/", serverMetadata}

// scopeMCP is the scope that every token for /mcp has.
const scopeMCP = "mcp"

// Challenge adds to the headers of a 401 or 403 at /mcp where the client discovers how to
// sign in.
func (s *Server) Challenge(h http.Header, r *http.Request, status int) {
	about := ""
	if origin := s.Origin(r); origin != "" {
		about = `resource_metadata="` + origin + resourceMetadata + mcpPath + `"`
	}
	if had := h.Get("WWW-Authenticate"); status == http.StatusForbidden && had != "" && about != "" {
		h.Set("WWW-Authenticate", had+", "+about)
	}
	if status != http.StatusUnauthorized {
		return
	}
	var params []string
	if about != "" {
		params = append(params, about)
	}
	params = append(params, `scope="`+scopeMCP+`"`)
	if r.Header.Get("Authorization") != "" {
		params = append(params, `error="invalid_token"`)
	}
	h.Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
}

// resource serves the metadata of /mcp, as in RFC 9728.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	s.metadata(w, r, func(origin string) any {
		return struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
			Name     string   `json:"resource_name"`
		}{origin + mcpPath, []string{origin}, []string{scopeMCP}, []string{"header"}, "nize"}
	})
}

// server serves the authorization server's metadata, as in RFC 8414.
func (s *Server) server(w http.ResponseWriter, r *http.Request) {
	s.metadata(w, r, func(origin string) any {
		register := ""
		if store.GetBool(s.Config, "", "oauth.registration") {
			register = origin + "/oauth/register"
		}
		grants, profiles := []string{"authorization_code", "refresh_token"}, []string(nil)
		if name, _ := s.company(r.Context()); name != "" {
			grants, profiles = append(grants, grantAssertion), []string{profileAssertion}
		}
		return struct {
			Issuer       string   `json:"issuer"`
			Authorize    string   `json:"authorization_endpoint"`
			Token        string   `json:"token_endpoint"`
			Register     string   `json:"registration_endpoint,omitempty"`
			Revoke       string   `json:"revocation_endpoint"`
			Scopes       []string `json:"scopes_supported"`
			Responses    []string `json:"response_types_supported"`
			Grants       []string `json:"grant_types_supported"`
			Profiles     []string `json:"authorization_grant_profiles_supported,omitempty"`
			Challenges   []string `json:"code_challenge_methods_supported"`
			Methods      []string `json:"token_endpoint_auth_methods_supported"`
			RevokeMethod []string `json:"revocation_endpoint_auth_methods_supported"`
			Documents    bool     `json:"client_id_metadata_document_supported"`
			Iss          bool     `json:"authorization_response_iss_parameter_supported"`
			Locales      []string `json:"ui_locales_supported"`
		}{
			origin, origin + "/oauth/authorize", origin + "/oauth/token", register, origin + "/oauth/revoke", []string{scopeMCP},
			[]string{"code"}, grants, profiles, []string{"S256"}, []string{"none"}, []string{"none"}, true, true,
			[]string{"en", "zh-Hans", "zh-Hant"},
		}
	})
}

// WithoutOrigin returns a request for the access rules to check. Any web page may read the
// metadata documents, so for these it removes the Origin.
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

// metadata writes a document about the request's origin. Any page may read it: it contains
// only what every client must know.
func (s *Server) metadata(w http.ResponseWriter, r *http.Request, about func(origin string) any) {
	origin := s.Origin(r)
	if origin == "" {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(about(origin))
	if err != nil {
		failure.Internal(w)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Access-Control-Allow-Headers", "*")
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client has disconnected
}
