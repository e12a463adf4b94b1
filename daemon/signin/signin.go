// Package signin is how a client that can't be given a token gets one: nize as
// the authorization server of its own /mcp.
package signin

import "net/http"

// Server answers the clients that want to sign in.
type Server struct {
	// Origin is the address under which a request's client knows nize; "" where
	// nobody may sign in, since it came in clear text over a network.
	Origin func(*http.Request) string
}

// Handler serves the documents and the endpoints.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range metadataPaths {
		mux.HandleFunc("GET "+path, s.resource)
		mux.HandleFunc("OPTIONS "+path, s.resource)
	}
	return mux
}
