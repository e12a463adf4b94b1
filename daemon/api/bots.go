package api

import (
	"context"
	"net/url"
	"time"

	"nize/store"
)

// BotView is nize's account on a chat platform and how it fares.
type BotView struct {
	store.Bot
	State     string    `json:"state"` // off, connecting, connected, failed
	Error     string    `json:"error,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Links     int       `json:"links,omitempty"` // connections of the app, as the platform counts them
	Events    int64     `json:"events"`          // taken in since the start
	LastEvent time.Time `json:"last_event,omitzero"`
	// Sweep is the last look for people who left the platform; nil before the
	// first.
	Sweep *store.Sweep `json:"sweep,omitempty"`
}

// ConnectBot gives nize an account; what the tokens are is seen in them.
type ConnectBot struct {
	Tokens []Secret `json:"tokens"`
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
}

func botPath(name string, more ...string) string {
	path := "/v1/bots/" + url.PathEscape(name)
	for _, m := range more {
		path += "/" + m
	}
	return path
}

// Bots lists the accounts.
func (c *Client) Bots(ctx context.Context) ([]BotView, error) {
	return list[BotView](ctx, c, request{method: "GET", path: "/v1/bots"})
}

// ConnectBot checks tokens, seals them, and starts the bot.
func (c *Client) ConnectBot(ctx context.Context, name string, b ConnectBot) (ConnectedBot, error) {
	return do[ConnectedBot](ctx, c, request{method: "POST", path: botPath(name), body: b})
}

// RemoveBot stops a bot and forgets its tokens.
func (c *Client) RemoveBot(ctx context.Context, name string) error {
	return exec(ctx, c, request{method: "DELETE", path: botPath(name)})
}

// SwitchBot starts or stops a bot; it stays so over restarts.
func (c *Client) SwitchBot(ctx context.Context, name string, on bool) (BotView, error) {
	verb := "stop"
	if on {
		verb = "start"
	}
	return do[BotView](ctx, c, request{method: "POST", path: botPath(name, verb)})
}

// SweepBot begins to look for people who left the platform, which is done once
// a day otherwise. It does not wait for the end.
func (c *Client) SweepBot(ctx context.Context, name string) (BotView, error) {
	return do[BotView](ctx, c, request{method: "POST", path: botPath(name, "sweep")})
}

// ClaimBot makes a new code for an admin.
func (c *Client) ClaimBot(ctx context.Context, name string) (Claim, error) {
	return do[Claim](ctx, c, request{method: "POST", path: botPath(name, "claim")})
}
