package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/daemon/control"
	"nize/store"
)

// The commands for a person's MCP clients.

// chatToken is the name of the token that a button creates; further ones get a number.
const chatToken = "chat"

// sayConnect explains how to connect an MCP client.
func (cmd *Commands) sayConnect(_ context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	base, known := cmd.BaseURL()
	url := strings.TrimSuffix(base, "/") + "/mcp"
	lines := []string{w.Say(phrases.ConnectHead, url)}
	if !known {
		lines = []string{w.Say(phrases.ConnectNoURL), url}
	}
	lines = append(lines, "",
		"```", fmt.Sprintf(`{"mcpServers": {"nize": {"type": "http", "url": %q, "headers": {"Authorization": "Bearer TOKEN"}}}}`, url), "```",
		"Claude Code:", "```", fmt.Sprintf(`claude mcp add --transport http nize %s --header "Authorization: Bearer TOKEN"`, url), "```",
		"VS Code (.vscode/mcp.json):", "```", fmt.Sprintf(`{"servers": {"nize": {"type": "http", "url": %q, "headers": {"Authorization": "Bearer TOKEN"}}}}`, url), "```",
		"", w.Say(phrases.ConnectToken))
	return bots.Answer{Text: strings.Join(lines, "\n"), Buttons: []bots.Button{{Label: phrases.ButtonToken, Words: "tokens new"}}}, nil
}

func isTokenWords(words string) bool {
	f := strings.Fields(words)
	return len(f) == 0 || len(f) == 2 && f[0] == "revoke" || makesToken(words)
}

// makesToken reports whether the answer contains a token.
func makesToken(words string) bool {
	f := strings.Fields(words)
	return len(f) > 0 && len(f) <= 2 && f[0] == "new"
}

// sayTokens lists a person's tokens for MCP clients, revokes one, or creates one.
func (cmd *Commands) sayTokens(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !isTokenWords(a.Words) {
		return bots.Answer{}, store.Errorf("%w: write tokens, tokens new [NAME], or tokens revoke NAME", store.ErrInvalid)
	}
	own, err := cmd.ownTokens(ctx, a.By)
	if err != nil {
		return bots.Answer{}, err
	}
	f := strings.Fields(a.Words)
	switch {
	case len(f) == 0:
		return bots.Said(cmd.tokenLines(a, own)), nil
	case f[0] == "new":
		return cmd.newChatToken(ctx, a, own, append(f, "")[1])
	}
	var names []string
	for _, t := range own {
		if t.State == "active" {
			names = append(names, t.Name)
		}
	}
	if !slices.Contains(names, f[1]) {
		return bots.Answer{}, store.Unknown("active token", f[1], names)
	}
	if _, err := cmd.Tokens.Revoke(ctx, a.By, api.RevokeTokenRequest{Name: f[1], User: a.By.User}); err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.TokenRevoked, f[1])), nil
}

// ownTokens returns the caller's tokens for MCP clients.
func (cmd *Commands) ownTokens(ctx context.Context, by store.Caller) ([]api.TokenView, error) {
	own, err := (&control.OwnTokens{Tokens: cmd.Tokens}).List(ctx, by, api.Empty{})
	return own.Items, err
}

func (cmd *Commands) tokenLines(a bots.Asked, own []api.TokenView) string {
	w := phrases.For(a.Locale)
	var lines []string
	for _, t := range own {
		state, ends := w.Say(phrases.Key(t.State)), t.Expires
		if until, ok := t.Rotated(time.Now()); ok {
			state, ends = w.Say(phrases.TokenRotated), until
		}
		if t.State != "revoked" {
			lines = append(lines, "- "+w.Say(phrases.TokenLine, t.Name, t.Prefix, state, ends.In(zoneOf(a)).Format(time.DateOnly)))
		}
	}
	if len(lines) == 0 {
		return w.Say(phrases.TokensNone)
	}
	return bots.FirstLines(w, w.Say(phrases.TokensHead), lines)
}

// maxChatTokens bounds the numbers that are appended to a default name.
const maxChatTokens = 50

// newChatToken creates a token with a given name, or with the first free default name.
func (cmd *Commands) newChatToken(ctx context.Context, a bots.Asked, own []api.TokenView, name string) (bots.Answer, error) {
	taken := func(name string) bool {
		return slices.ContainsFunc(own, func(t api.TokenView) bool { return t.Name == name && t.State == "active" })
	}
	if name == "" {
		name = chatToken
		for n := 2; taken(name) && n <= maxChatTokens; n++ {
			name = chatToken + "-" + strconv.Itoa(n)
		}
	}
	made, err := cmd.Tokens.Create(ctx, a.By, api.CreateTokenRequest{Name: name})
	if errors.Is(err, store.ErrExists) {
		return bots.Answer{}, store.Errorf("token %q %w: choose another name, or revoke that one", name, store.ErrExists)
	}
	if err != nil {
		return bots.Answer{}, err
	}
	until := made.Token.Expires.In(zoneOf(a)).Format(time.DateOnly)
	return bots.Said(phrases.For(a.Locale).Say(phrases.TokenMade, made.Token.Name, until, made.Secret.Reveal())), nil
}
