package api

// ExplainTool asks the gateway's rules about somebody's use of a tool. Members
// may ask about themselves.
var ExplainTool = Op[ExplainToolRequest, Why]{"GET", "/v1/tools/{id}/why", false, "say by which rule somebody may use a tool"}

// ExplainToolRequest names a tool and says for whom; zero values narrow nothing.
type ExplainToolRequest struct {
	ID      string `path:"id" json:"-"`
	User    string `query:"user" json:"-"` // id, name or identity; "" is the caller
	Agent   string `query:"agent" json:"-"`
	Token   string `query:"token" json:"-"`   // the name of a token of that person
	Channel string `query:"channel" json:"-"` // NAME:TEAM/CHANNEL, or CHANNEL alone
}

// Why is what the gateway's rules say of a tool for one person.
type Why struct {
	Tool     string       `json:"tool_id"`
	User     string       `json:"user"`
	UserName string       `json:"user_name"`
	Usable   bool         `json:"usable"`
	Rules    []WhyRule    `json:"rules"`              // in the order in which they are asked
	Approval *WhyApproval `json:"approval,omitempty"` // absent where the tool is not usable
}

// WhyRule is one rule and what it says.
type WhyRule struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"` // allows or denies; of an approval: asks, asks unless lifted, lifts, or "" for nothing
	Says    string `json:"says,omitempty"`
	Decides bool   `json:"decides,omitempty"`
	Command string `json:"command,omitempty"` // that changes it
}

// WhyApproval says whether a call would need a yes, and whose.
type WhyApproval struct {
	Asks      bool      `json:"asks"`
	Reason    string    `json:"reason,omitempty"`
	RunsAs    string    `json:"runs_as"`
	Private   bool      `json:"private,omitempty"` // its results are for who asks alone
	Approvers string    `json:"approvers,omitempty"`
	Rules     []WhyRule `json:"rules"`
	Deciders  []WhyRule `json:"deciders,omitempty"` // by which rule they may press: the verdict is the policy
}
