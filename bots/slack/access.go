package slack

import (
	"context"

	"nize/bots/account"
	"nize/bots/phrases"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/store"
)

// Who may talk to nize: full members of the workspace, and of those
// whom bots.access lets in. It is asked again for each message, command, press
// and look at the Home, so a change of either holds at once.

// access tells people what comes before an answer: that they have no access, what
// is kept of them, that a key was masked.
type access struct {
	people *people.Directory
	posts  *posting.Poster
}

// noAccess is what somebody without access is told.
func noAccess(p people.Person) string {
	if p.Member {
		return p.Words().Say(phrases.Barred)
	}
	return p.Words().Say(phrases.NoAccess)
}

// tellNoAccess tells somebody without access so, once a day; bots are told nothing.
func (a *access) tellNoAccess(ctx context.Context, p people.Person, channel, thread string) error {
	if p.IsBot {
		return nil
	}
	first, err := a.people.FirstToday(ctx, "refused:"+p.ID)
	if err != nil || !first {
		return err
	}
	return a.posts.Tell(ctx, p, channel, thread, noAccess(p))
}

// runClaim runs the one command that somebody may give whom bots.access keeps
// out: a code is the operator's word, and who has it becomes an admin. A wrong
// one is answered as to anybody, and makes no user.
func (c *commander) runClaim(ctx context.Context, p people.Person, at store.Address, text, trigger string) (done bool, err error) {
	cmd, words, ok := account.FindClaim(c.list, p.Caller(), p.Barred, text)
	if !ok {
		return false, nil
	}
	return true, c.runCommand(ctx, p, given{cmd: cmd, asked: p.Asked(at, words), trigger: trigger})
}

// welcome says once what is kept of somebody.
func (a *access) welcome(ctx context.Context, p people.Person, channel, thread string) {
	a.people.Welcome(ctx, p.Caller(), p.User, p.Words(), func(text string) error { return a.posts.Tell(ctx, p, channel, thread, text) })
}

// tellMaskedKey tells somebody that what they wrote held a key.
func (a *access) tellMaskedKey(ctx context.Context, p people.Person, key, channel, thread string) {
	a.people.MaskedKey(ctx, key, p.Words(), func(text string) error { return a.posts.Tell(ctx, p, channel, thread, text) })
}
