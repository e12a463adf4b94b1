package api

// Reindex refreshes tools and vectors and yields progress.
var Reindex = Stream[ReindexRequest, ReindexLine]{"POST", "/v1/reindex", true, "refresh tools and vectors"}

// ReindexRequest asks for a refresh; Server "" is all, Full also embeds again,
// ForgetUsage first erases what was learned from use, of every server.
type ReindexRequest struct {
	Server      string `json:"server,omitempty"`
	Full        bool   `json:"full,omitempty"`
	ForgetUsage bool   `json:"forget_usage,omitempty"`
}

// ReindexLine is one line of its progress: one server that is through, what was
// computed or written since, and at last the Summary.
type ReindexLine struct {
	Server   string          `json:"server,omitempty"`
	Added    []string        `json:"added,omitempty"` // tool ids
	Changed  []string        `json:"changed,omitempty"`
	Removed  []string        `json:"removed,omitempty"`
	Held     []string        `json:"held,omitempty"`
	Examples int             `json:"examples,omitempty"` // tools for which a model wrote example requests; a line of its own
	Embedded int             `json:"embedded,omitempty"` // vectors computed so far; a line of its own
	Error    string          `json:"error,omitempty"`
	Summary  *ReindexSummary `json:"summary,omitempty"`
}

// ReindexSummary is the end of a refresh.
type ReindexSummary struct {
	Servers   int     `json:"servers"`
	Failed    int     `json:"failed"`
	Tools     int     `json:"tools"`
	Embedded  int     `json:"embedded"`            // vectors that had to be computed
	Examples  int     `json:"examples,omitempty"`  // tools for which a model wrote example requests
	Forgotten int     `json:"forgotten,omitempty"` // requests from which something had been learned
	TookMS    float64 `json:"took_ms"`
}
