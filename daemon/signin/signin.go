// Package signin is how a client that can't be given a token gets one: nize as
// the authorization server of its own /mcp.
package signin

import "net/http"

// Server answers the clients that want to sign in.
type Server struct{ *Sessions }

// Handler serves the documents and the endpoints.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range metadataPaths {
		mux.HandleFunc("GET "+path, s.resource)
		mux.HandleFunc("OPTIONS "+path, s.resource)
	}
	return mux
}
