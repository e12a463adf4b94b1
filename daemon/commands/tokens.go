package daemon

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
	"nize/store"
)

// What people do in a chat about their own access: MCP clients, tokens, and
// joining their accounts.

// chatToken is the name of the token that a button makes; one more gets a
// number.
const chatToken = "chat"

// sayConnect tells how an MCP client comes in.
func (d *Daemon) sayConnect(_ context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	base, head := d.layers.Get("public_url"), phrases.ConnectHead
	var lines []string
	if base == "" {
		base = "http://" + d.addr()
		if d.cert != nil {
			base = "https://" + d.addr()
		}
		lines = append(lines, w.Say(phrases.ConnectNoURL), base+"/mcp")
	} else {
		lines = append(lines, w.Say(head, strings.TrimSuffix(base, "/")+"/mcp"))
	}
	url := strings.TrimSuffix(base, "/") + "/mcp"
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

// makesToken says whether the answer holds a token.
func makesToken(words string) bool {
	f := strings.Fields(words)
	return len(f) > 0 && len(f) <= 2 && f[0] == "new"
}

// sayTokens lists a person's tokens for MCP clients, takes one back, or makes
// one.
func (d *Daemon) sayTokens(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if !isTokenWords(a.Words) {
		return bots.Answer{}, fmt.Errorf("%w: write tokens, tokens new [NAME], or tokens revoke NAME", store.ErrInvalid)
	}
	all, err := d.db.ListTokens(ctx, a.By.User)
	if err != nil {
		return bots.Answer{}, fmt.Errorf("listing tokens: %w", err)
	}
	own := slices.DeleteFunc(all, func(t store.Token) bool { return t.Audience != store.ForMCP })
	f := strings.Fields(a.Words)
	switch {
	case len(f) == 0:
		return bots.Said(d.tokenLines(a, own)), nil
	case f[0] == "new":
		return d.newChatToken(ctx, a, own, append(f, "")[1])
	}
	var names []string
	for _, t := range own {
		if t.State(d.now()) == "active" {
			names = append(names, t.Name)
		}
	}
	if !slices.Contains(names, f[1]) {
		return bots.Answer{}, store.Unknown("active token", f[1], names)
	}
	if _, err := d.db.RevokeTokens(ctx, a.By, a.By.User, f[1]); err != nil {
		return bots.Answer{}, fmt.Errorf("revoking token %s: %w", f[1], err)
	}
	return bots.Said(w.Say(phrases.TokenRevoked, f[1])), nil
}

func (d *Daemon) tokenLines(a bots.Asked, own []store.Token) string {
	w := phrases.For(a.Locale)
	var lines []string
	for _, t := range own {
		lines = append(lines, "- "+w.Say(phrases.TokenLine, t.Name, t.Prefix, w.Translate(t.State(d.now())), t.Expires.In(zoneOf(a)).Format(time.DateOnly)))
	}
	if len(lines) == 0 {
		return w.Say(phrases.TokensNone)
	}
	return shown(w, w.Say(phrases.TokensHead), lines)
}

// maxChatTokens bounds the numbers behind a name that was not chosen.
const maxChatTokens = 50

// newChatToken makes a token under a name, or under the first free one.
func (d *Daemon) newChatToken(ctx context.Context, a bots.Asked, own []store.Token, name string) (bots.Answer, error) {
	taken := func(name string) bool {
		return slices.ContainsFunc(own, func(t store.Token) bool { return t.Name == name && t.State(d.now()) == "active" })
	}
	if name == "" {
		name = chatToken
		for n := 2; taken(name) && n <= maxChatTokens; n++ {
			name = chatToken + "-" + strconv.Itoa(n)
		}
	}
	made, err := d.ops.tokens.Create(ctx, a.By, api.CreateTokenRequest{Name: name})
	if errors.Is(err, store.ErrExists) {
		return bots.Answer{}, fmt.Errorf("token %q %w: choose another name, or revoke that one", name, store.ErrExists)
	}
	if err != nil {
		return bots.Answer{}, err
	}
	until := made.Token.Expires.In(zoneOf(a)).Format(time.DateOnly)
	return bots.Said(phrases.For(a.Locale).Say(phrases.TokenMade, made.Token.Name, until, made.Secret.Reveal())), nil
}

// confirmed stands behind the code once its owner was shown.
const confirmed = "confirm"

func isLinkWords(words string) bool {
	code, _, _ := strings.Cut(words, " "+confirmed)
	_, err := store.ReadCode(code)
	return words == "" || err == nil
}

// maybeLink takes whatever follows a code: it must not be said to everybody as
// a question.
func maybeLink(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	_, err := store.ReadCode(first)
	return isLinkWords(words) || err == nil
}

// sayLink gives a code for another place, or joins with the owner of one after
// showing who that is.
func (d *Daemon) sayLink(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		code, hash := store.NewCode()
		if _, err := d.db.PutLink(ctx, a.By, a.By.User, hash); err != nil {
			return bots.Answer{}, fmt.Errorf("a code for you: %w", err)
		}
		minutes := strconv.Itoa(int(store.LinkLife / time.Minute))
		return bots.Said(w.Say(phrases.LinkCode, minutes, code.Reveal(), code.Reveal())), nil
	}
	if a.Open { // whoever read it could use it before
		return bots.Said(w.Say(phrases.LinkOpen)), nil
	}
	code, sure := strings.CutSuffix(a.Words, " "+confirmed)
	hash, err := store.ReadCode(code)
	if err != nil {
		return bots.Answer{}, err
	}
	if !sure {
		other, err := d.db.FindLink(ctx, a.By, hash)
		if err != nil {
			return bots.Answer{}, err
		}
		text := w.Say(phrases.LinkAsk, brief(other.Name, 80), brief(strings.Join(other.Identities, ", "), 300), brief(a.By.Name, 80))
		return bots.Answer{Text: text, Buttons: []bots.Button{{Label: phrases.ButtonJoin, Words: "link " + code + " " + confirmed}}}, nil
	}
	joined, err := d.db.Join(ctx, a.By, hash, "")
	if err != nil {
		return bots.Answer{}, err
	}
	d.log.Info("identities joined", "user", joined.User.ID, "absorbed", joined.Absorbed.ID)
	return bots.Said(w.Say(phrases.LinkDone, brief(strings.Join(joined.User.Identities, ", "), 300))), nil
}

// claimable says whether nobody on a surface steers nize yet: the code of the
// command line is for the first.
func (d *Daemon) claimable(at store.Surface) bool {
	users, err := d.db.ListUsers(d.closing)
	if err != nil {
		d.log.Warn("reading who is an admin", "err", err)
		return false
	}
	return !slices.ContainsFunc(users, func(u store.User) bool {
		return u.CanAdminister() && slices.ContainsFunc(u.Identities, func(id string) bool { return strings.HasPrefix(id, string(at)+":") })
	})
}
