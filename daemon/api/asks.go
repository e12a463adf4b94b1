package api

import (
	"encoding/json"
	"time"
)

// An ask is a step of another program, such as a shell command of a coding agent. nize
// decides whether it may run, and that program runs it. The same three operations are
// served on the control socket, below /v1, and over HTTP.
var (
	PostAsk   = Op[AskRequest, Ask]{"POST", "/v1/asks", false, "ask whether a step may run"}
	GetAsk    = Op[GetAskRequest, Ask]{"GET", "/v1/asks/{id}", false, "show an ask, or wait for its decision"}
	CancelAsk = Op[CancelAskRequest, Ask]{"DELETE", "/v1/asks/{id}", false, "withdraw an ask"}

	PostAskHTTP   = Op[AskRequest, Ask]{"POST", "/asks", false, "ask whether a step may run"}
	GetAskHTTP    = Op[GetAskRequest, Ask]{"GET", "/asks/{id}", false, "show an ask, or wait for its decision"}
	CancelAskHTTP = Op[CancelAskRequest, Ask]{"DELETE", "/asks/{id}", false, "withdraw an ask"}
)

// AskRequest is a step that a program wants to run.
type AskRequest struct {
	Source    string          `json:"source" doc:"the source, registered by nizectl servers add NAME --external"`
	Tool      string          `json:"tool" doc:"the program's own name of the tool, such as Bash"`
	Title     string          `json:"title,omitempty" doc:"title of the step, shown on the card"`
	Arguments json.RawMessage `json:"arguments" jsontype:"object" doc:"the tool's arguments"`
	Why       string          `json:"why,omitempty" doc:"the program's reason, shown as its own words"`
	Context   *AskContext     `json:"context,omitempty" doc:"where the program runs"`
	Key       string          `json:"key,omitempty" doc:"the caller's own name of the ask: the same key returns the same ask, also after a restart"`
	Wait      string          `json:"wait,omitempty" doc:"how long to wait for a decision before the answer, up to 10m, such as 30s"`
	Expires   string          `json:"expires,omitempty" doc:"how long the ask can be approved, such as 15m"`
}

// AskContext is a program's own description of where it runs.
type AskContext struct {
	Cwd        string `json:"cwd,omitempty" doc:"its working directory"`
	Host       string `json:"host,omitempty" doc:"its machine"`
	Session    string `json:"session,omitempty" doc:"its session: asks of one session can be approved together"`
	Repository string `json:"repository,omitempty" doc:"the repository to which the step is confined, such as the top directory of its working tree: a standing answer may apply to it only"`
}

// GetAskRequest names one of the caller's asks.
type GetAskRequest struct {
	ID   string `path:"id" json:"-" doc:"the ask's id"`
	Wait string `query:"wait" json:"-" doc:"how long to wait for a decision, up to 10m, such as 30s"`
}

// CancelAskRequest names one of the caller's asks.
type CancelAskRequest struct {
	ID string `path:"id" json:"-" doc:"the ask's id"`
}

// Ask is the state of an ask.
type Ask struct {
	ID        string          `json:"id"`
	State     string          `json:"state" enum:"pending,approved,refused,expired,cancelled" doc:"the program may run the step only if it is approved"`
	Digest    string          `json:"digest" doc:"digest of what the approver sees"`
	Arguments json.RawMessage `json:"arguments" jsontype:"object" doc:"the arguments to run, byte for byte: an approver may have edited them"`
	Reason    string          `json:"reason,omitempty" doc:"why it is in that state"`
	DecidedBy string          `json:"decided_by,omitempty" doc:"the person who decided"`
	Standing  string          `json:"standing,omitempty" doc:"the standing answer that approved it: nizectl approvals grants list"`
}

// AskStats counts the caller's asks, or everyone's if the caller is an admin.
var AskStats = Op[AskStatsRequest, AskStatsAnswer]{"GET", "/v1/asks/stats", false, "count asks and how they were answered"}

// AskStatsRequest limits which asks are counted.
type AskStatsRequest struct {
	Since time.Time `query:"since" json:"-"`
}

// AskStatsAnswer has a row for each tool that was asked about, most frequent first.
type AskStatsAnswer struct {
	Since time.Time     `json:"since"`
	Rows  []AskStatsRow `json:"rows"`
	Total AskStatsRow   `json:"total"`
	// Partial is true if only the newest asks were counted, because there were too many.
	Partial bool `json:"partial,omitempty"`
}

// AskStatsRow counts the asks of one tool.
type AskStatsRow struct {
	Tool      string         `json:"tool,omitempty"`
	Asked     int            `json:"asked"`
	Standing  int            `json:"standing"` // approved by a standing answer
	Rules     int            `json:"rules"`    // approved because no rule requires approval
	Approved  int            `json:"approved"` // by a person
	Refused   int            `json:"refused"`
	Expired   int            `json:"expired"`
	Cancelled int            `json:"cancelled"`
	Waiting   int            `json:"waiting"`
	People    map[string]int `json:"people,omitempty"` // number of decisions by person's name
	MedianMS  int64          `json:"median_ms"`        // time until a person decided; 0 if none did
}
