package api

// ImportServers takes over the servers of an MCP client's file and answers with
// a line for each entry, in the file's order. The daemon reads the text, so that
// ${VAR} means its own environment.
var ImportServers = Stream[ImportServersRequest, ImportLine]{"POST", "/v1/servers/import", true, "register the servers of an MCP client's file"}

// ImportServersRequest is the text of a file.
type ImportServersRequest struct {
	Text   string `json:"text"`
	Force  bool   `json:"force,omitempty"`   // keep those that can't be reached now
	DryRun bool   `json:"dry_run,omitempty"` // judge, but contact and store nothing
}

// What became of an entry.
const (
	ImportAdded       = "added"
	ImportNew         = "new" // would be added, if it can be reached: a dry run
	ImportExists      = "exists"
	ImportInvalid     = "invalid"
	ImportUnreachable = "unreachable"
)

// ImportLine is one entry of the file and what became of it.
type ImportLine struct {
	Entry   string   `json:"entry"`             // its name in the file
	Name    string   `json:"name"`              // the slug that the server has
	Project string   `json:"project,omitempty"` // the folder that it is for
	Status  string   `json:"status"`
	Reason  string   `json:"reason,omitempty"`
	Where   string   `json:"where,omitempty"`  // command line or URL
	Stored  bool     `json:"stored,omitempty"` // unreachable and kept all the same
	Tools   int      `json:"tools,omitempty"`
	Held    int      `json:"held,omitempty"`
	Sealed  []string `json:"sealed,omitempty"` // credentials made of the file's secrets
	Notes   []string `json:"notes,omitempty"`  // one sentence each
}
