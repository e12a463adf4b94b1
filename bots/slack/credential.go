package slack

import (
	"context"
	"encoding/json"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/bots/slack/view"
	"nize/store"
)

// The dialog for a person's own credential. The input goes from the request directly into
// the sealed store while Slack waits for the acknowledgement, and nowhere else: such a
// dialog is neither kept in the inbox nor logged. If the daemon dies in between, the dialog
// stays open and the person submits it again.

// secretTime limits sealing: Slack waits three seconds.
const secretTime = 2500 * time.Millisecond

// pressConnect opens the dialog for a button's credential, after the connect command has
// checked that the credential exists.
func (c *commander) pressConnect(ctx context.Context, p people.Person, i incoming.Interaction, a *incoming.Action) error {
	cmd, words, _, ok := c.list.Find(p.Caller(), "credentials connect "+a.Value, false)
	if !ok {
		return store.ErrNotFound
	}
	return c.runCommand(ctx, p, given{cmd: cmd, asked: p.Asked(place(c.team, "", ""), words), trigger: i.TriggerID})
}

// submitSecret seals the input; wrong is the message at the field.
func (c *commander) submitSecret(ctx context.Context, i incoming.Interaction) (wrong map[string]string, after func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, secretTime)
	defer cancel()
	refuse := func(w phrases.Catalogue, key phrases.Key) map[string]string {
		return map[string]string{view.SecretBlock: w.Say(key)}
	}
	p := people.Person{ID: i.User.ID, Team: i.Team.ID}
	if !pressedHere(i, c.team) || c.keeper == nil {
		return refuse(p.Words(), phrases.NoAccess), nil
	}
	p, err := c.people.Who(ctx, i.User.ID, people.Fresh)
	switch {
	case err != nil:
		c.log.Error("looking up who gives a credential", "err", err)
		return refuse(p.Words(), phrases.ConnectFailed), nil
	case p.User.ID == "":
		return map[string]string{view.SecretBlock: noAccess(p)}, nil
	}
	var f bots.Prompt
	if len(i.View.PrivateMetadata) > view.MaxMetadata || json.Unmarshal([]byte(i.View.PrivateMetadata), &f) != nil {
		return refuse(p.Words(), phrases.ConnectFailed), nil
	}
	typed := store.NewSecret(incoming.Typed(i.View.State.Values[view.SecretBlock]["value"]))
	told, sealed, err := bots.Seal(ctx, c.keeper, p.Caller(), f, typed, p.Words())
	if err != nil {
		c.log.Error("a credential was not sealed", "err", err)
	}
	if !sealed {
		return map[string]string{view.SecretBlock: told}, nil
	}
	return nil, func(ctx context.Context) error { return c.homes.Draw(ctx, p, view.HomeState{}, told) }
}
