package api

// Route is one request that the daemon answers.
type Route struct {
	Method  string
	Path    string // a pattern of http.ServeMux
	Admin   bool   // for admins only; members may use the others for what is theirs
	Summary string
}

// Routes is every request, by path, then method. A test in daemon compares it
// with the handlers there.
var Routes = []Route{
	{"POST", "/v1/reindex", true, "refresh tools and vectors (stream)"},
}
