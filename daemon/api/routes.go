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
	{"GET", "/v1/audit", true, "read or follow the audit trail (stream)"},
	{"GET", "/v1/audit/export", true, "copy the audit trail, signed (stream)"},
	{"GET", "/v1/audit/key", true, "show what exports are signed with"},
	{"GET", "/v1/audit/verify", true, "verify the audit chain (stream)"},
	{"GET", "/v1/backup", true, "copy the database (a file)"},
	{"POST", "/v1/keys/export", true, "copy the master key"},
	{"POST", "/v1/keys/rotate", true, "replace the keys and seal anew"},
	{"POST", "/v1/reindex", true, "refresh tools and vectors (stream)"},
	{"POST", "/v1/restore", true, "put a copy in the database's place (a file)"},
}
