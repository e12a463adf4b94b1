package api

import (
	"time"

	"nize/store"
)

// ListBots lists the accounts.
var ListBots = Op[Empty, List[BotView]]{"GET", "/v1/bots", true, "list bots and how they fare"}

// BotView is nize's account on a chat platform and how it fares.
type BotView struct {
	store.Bot
	State     string    `json:"state"`            // off, connecting, connected, failed
	Reason    string    `json:"reason,omitempty"` // of a failure: intents, token or guild, where the platform has some
	Error     string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Links     int       `json:"links,omitempty"` // connections of the app, as the platform counts them
	Events    int64     `json:"events"`          // taken in since the start
	LastEvent time.Time `json:"last_event,omitzero"`
	// Sweep is the last look for people who left the platform; nil before the
	// first.
	Sweep *store.Sweep `json:"sweep,omitempty"`
}

// ConnectBot checks tokens, seals them, and starts the bot.
var ConnectBot = Op[ConnectBotRequest, ConnectedBot]{"POST", "/v1/bots/{name}", true, "connect a bot"}

// ConnectBotRequest gives nize an account; what the tokens are is seen in them.
type ConnectBotRequest struct {
	Name   string   `path:"name" json:"-"`
	Tokens []Secret `json:"tokens"`
	// Team is where nize is to work, where a token does not say so: a guild.
	Team string `json:"team,omitempty"`
}

// Claim is a code that makes whoever sends it in the chat an admin, once.
type Claim struct {
	Code    string    `json:"claim_code"`
	Send    string    `json:"send"` // the line to send in the chat
	Expires time.Time `json:"claim_expires"`
}

// ConnectedBot is a new account and the code for its first admin.
type ConnectedBot struct {
	BotView
	Claim
	// Endpoints are where the platform must send to, in HTTP mode; without a
	// public address they are paths.
	Endpoints []string `json:"endpoints,omitempty"`
	// Advice says what would work better otherwise, and where to change it.
	Advice []string `json:"advice,omitempty"`
}

// BotRequest names a bot by its platform.
type BotRequest struct {
	Name string `path:"name" json:"-"`
}

// StartBot starts a bot; it starts with the daemon from then on.
var StartBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/start", true, "start a bot"}

// StopBot stops a bot; it stays stopped over restarts.
var StopBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/stop", true, "stop a bot"}

// SweepBot begins to look for people who left the platform, which is done once
// a day otherwise. It does not wait for the end.
var SweepBot = Op[BotRequest, BotView]{"POST", "/v1/bots/{name}/sweep", true, "look now for people who left the platform"}

// ClaimBot makes a new code for an admin.
var ClaimBot = Op[BotRequest, Claim]{"POST", "/v1/bots/{name}/claim", true, "make a code for an admin"}

// RemoveBot stops a bot and forgets its tokens.
var RemoveBot = Op[BotRequest, Empty]{"DELETE", "/v1/bots/{name}", true, "stop a bot and forget its tokens"}

// SetBotAccess says who may talk to a bot, on a platform that has a setting of its
// own for that.
var SetBotAccess = Op[BotAccessRequest, BotAccess]{"PUT", "/v1/bots/{name}/access", true, "say who may talk to a bot"}

// BotAccessRequest is one of admins and everyone, or a role.
type BotAccessRequest struct {
	Name string `path:"name" json:"-"`
	Who  string `json:"who,omitempty"`
	Role string `json:"role,omitempty"` // by its id or name
}

// BotAccess is who may.
type BotAccess struct {
	Access string `json:"access"`
	Role   string `json:"role,omitempty"` // the name of the one that Access names by id
}

// ConnectDouble connects a bot to a double of its platform for as long as the
// caller reads the answer, which is one line. Then, and also when the daemon
// starts after it was killed meanwhile, the account and its address are put back
// as they were.
var ConnectDouble = Stream[ConnectDoubleRequest, ConnectedDouble]{"POST", "/v1/bots/{name}/double", true, "connect a bot to a double of its platform until the caller leaves"}

// ConnectDoubleRequest is a double: where its API is, and the account there.
type ConnectDoubleRequest struct {
	Name   string   `path:"name" json:"-"`
	APIURL string   `json:"api_url"`
	Tokens []Secret `json:"tokens"`
	Team   string   `json:"team,omitempty"`
	// People are the identities of the double's people. Those that no user had
	// before are taken out at the end, with the users that have no other.
	People []string `json:"people,omitempty"`
}

// ConnectedDouble is the account on the double.
type ConnectedDouble struct {
	ConnectedBot
	// Away is the workspace or guild whose account waits meanwhile, if any.
	Away string `json:"away,omitempty"`
	// Mended says that an account which an earlier double had left aside was put
	// back first.
	Mended bool `json:"mended,omitempty"`
}

// DisconnectDouble ends the [ConnectDouble] of a bot and answers when all is put
// back.
var DisconnectDouble = Op[BotRequest, Empty]{"DELETE", "/v1/bots/{name}/double", true, "leave a double and put the account back as it was"}
