package slack

import (
	"context"

	"nize/bots/account"
	"nize/bots/phrases"
	"nize/bots/slack/people"
	"nize/bots/slack/posting"
	"nize/store"
)

// Access to nize: full members of the workspace and the guests that bots.access admits. It
// is checked for each message, command, press and opening of the Home, so a change of
// membership or setting takes effect at once.

// access sends the notices that precede an answer: no access, what data is kept, a key was
// masked.
type access struct {
	people *people.Directory
	posts  *posting.Poster
}

// noAccess returns the text for a person without access.
func noAccess(p people.Person) string {
	if p.Member {
		return p.Words().Say(phrases.Barred)
	}
	return p.Words().Say(phrases.NoAccess)
}

// tellNoAccess informs a person that they have no access, once a day; bots get no notice.
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

// runClaim runs the only command allowed to people whom bots.access excludes: a claim code
// comes from the operator and makes its user an admin. A wrong code gets the usual reply
// and creates no user.
func (c *commander) runClaim(ctx context.Context, p people.Person, at store.Address, text, trigger string) (done bool, err error) {
	cmd, words, ok := account.FindClaim(c.list, p.Caller(), p.Barred, text)
	if !ok {
		return false, nil
	}
	return true, c.runCommand(ctx, p, given{cmd: cmd, asked: p.Asked(at, words), trigger: trigger})
}

// welcome tells a new user once what data is kept about them.
func (a *access) welcome(ctx context.Context, p people.Person, channel, thread string) {
	a.people.Welcome(ctx, p.Caller(), p.User, p.Words(), func(text string) error { return a.posts.Tell(ctx, p, channel, thread, text) })
}

// tellMaskedKey tells a person that their message contained a key.
func (a *access) tellMaskedKey(ctx context.Context, p people.Person, key, channel, thread string) {
	a.people.MaskedKey(ctx, key, p.Words(), func(text string) error { return a.posts.Tell(ctx, p, channel, thread, text) })
}
