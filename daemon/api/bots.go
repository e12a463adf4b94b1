package api

import (
	"time"

	"nize/store"
)

// ListBots lists the accounts.
var ListBots = Op[Empty, List[BotView]]{"GET", "/v1/bots", true, "list bots and their state"}

// BotView is nize's account on a chat platform and its state.
type BotView struct {
	store.Bot
	State     string    `json:"state"`            // off, connecting, connected, failed
	Reason    string    `json:"reason,omitempty"` // of a failure: intents, token or guild, if the platform has a specific one
	Error     string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Links     int       `json:"links,omitempty"` // connections of the app, as the platform counts them
	Events    int64     `json:"events"`          // received since the start
	LastEvent time.Time `json:"last_event,omitzero"`
	// Sweep is the last search for people who left the platform; nil before the first.
	Sweep *store.Sweep `json:"sweep,omitempty"`
}

// ConnectBot checks tokens, seals them, and starts the bot.
var ConnectBot = Op[ConnectBotRequest, ConnectedBot]{"POST", "/v1/bots/{name}", true, "connect a bot"}

// ConnectBotRequest gives nize an account. The kind of each token is recognized from its
// text.
type ConnectBotRequest struct {
	Name   string   `path:"name" json:"-"`
	Tokens []Secret `json:"tokens"`
	// Team is the guild in which nize should work, if the token doesn't identify it.
	Team string `json:"team,omitempty"`
}

// Claim is a single-use code. The person who sends it in the chat becomes an admin.
type Claim struct {
	Code    string    `json:"claim_code"`
	Send    string    `json:"send"` // the line to send in the chat
	Expires time.Time `json:"claim_expires"`
}

// ConnectedBot is a new account and the code for its first admin.
type ConnectedBot struct {
	BotView
	Claim
	// Endpoints are the URLs to which the platform must send in HTTP mode. They are paths
	// if nize has no public address.
	Endpoints []string `json:"endpoints,omitempty"`
	// Advice lists recommended changes of the platform's settings, and where to make them.
	Advice []string `json:"advice,omitempty"`
}

// BotRequest names a bot by its platform.
type BotRequest struct {
	Name string `path:"name" json:"-"`
}

// StartBot starts a bot; from then on it starts with the daemon.
var StartBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/start", true, "start a bot"}

// StopBot stops a bot; it stays stopped across restarts.
var StopBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/stop", true, "stop a bot"}

// SweepBot starts a search for people who left the platform, which otherwise runs once a
// day. It returns without waiting for the end.
var SweepBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/sweep", true, "search now for people who left the platform"}

// ClaimBot creates a new admin code.
var ClaimBot = Op[BotRequest, Claim]{"POST", "/v1/bots/{name}/claim", true, "create a code for an admin"}

// RemoveBot stops a bot and deletes its tokens.
var RemoveBot = Op[BotRequest, Empty]{"DELETE", "/v1/bots/{name}", true, "stop a bot and delete its tokens"}

// SetBotAccess sets who may talk to a bot, if its platform has its own setting for that.
var SetBotAccess = Op[BotAccessRequest, BotAccess]{"PUT", "/v1/bots/{name}/access", true, "set who may talk to a bot"}

// BotAccessRequest is admins, everyone, or a role.
type BotAccessRequest struct {
	Name string `path:"name" json:"-"`
	Who  string `json:"who,omitempty"`
	Role string `json:"role,omitempty"` // id or name
}

// BotAccess is the access in force.
type BotAccess struct {
	Access string `json:"access"`
	Role   string `json:"role,omitempty"` // name of the role whose id is in Access
}

// ConnectDouble connects a bot to a test double of its platform for as long as the caller
// reads the response, which is one line. Afterwards, or at the next start if the daemon was
// killed meanwhile, the original account and address are restored.
var ConnectDouble = Stream[ConnectDoubleRequest, ConnectedDouble]{"POST", "/v1/bots/{name}/double", true, "connect a bot to a test double of its platform until the caller disconnects"}

// ConnectDoubleRequest is a double: the address of its API, and an account on it.
type ConnectDoubleRequest struct {
	Name   string   `path:"name" json:"-"`
	APIURL string   `json:"api_url"`
	Tokens []Secret `json:"tokens"`
	Team   string   `json:"team,omitempty"`
	// People are the identities of the double's people. Identities that no user had before
	// are removed at the end, and so are users without any other identity.
	People []string `json:"people,omitempty"`
}

// ConnectedDouble is the account on the double.
type ConnectedDouble struct {
	ConnectedBot
	// Away is the workspace or guild whose account is suspended meanwhile, if any.
	Away string `json:"away,omitempty"`
	// Mended is true if the account that an earlier double had left suspended was restored
	// first.
	Mended bool `json:"mended,omitempty"`
}

// DisconnectDouble ends the [ConnectDouble] of a bot and returns when the original account
// is restored.
var DisconnectDouble = Op[BotRequest, Empty]{"DELETE", "/v1/bots/{name}/double", true, "disconnect a test double and restore the account"}
