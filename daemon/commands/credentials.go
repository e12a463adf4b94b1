package commands

import (
	"context"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// A person's own credentials: a chat shows them, opens a dialog to enter one, and removes
// them. A value is never written in a message.

func isCredentialWords(words string) bool {
	f := strings.Fields(words)
	return len(f) == 0 || (len(f) == 2 || len(f) == 3) && (f[0] == "connect" || f[0] == "disconnect") && store.CheckSlug(f[1]) == nil
}

// maybeCredential accepts any words after the verbs: they may contain a secret, which must
// not be treated as a question that others can read.
func maybeCredential(words string) bool {
	f := strings.Fields(words)
	return isCredentialWords(words) || f[0] == "connect" || f[0] == "disconnect"
}

func (cmd *Commands) sayCredentials(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f := strings.Fields(a.Words)
	if !isCredentialWords(a.Words) {
		return bots.Answer{}, store.Errorf("%w: write credentials, credentials connect SERVER, or credentials disconnect SERVER", store.ErrInvalid)
	}
	if len(f) == 0 {
		return cmd.listOwnCredentials(ctx, a)
	}
	name := append(f, "")[2]
	if login, err := cmd.Connect.WantsLogin(ctx, a.By, f[1]); err != nil {
		return bots.Answer{}, err
	} else if login && (name == "" || name == store.LoginName) {
		return cmd.sayServerLogin(ctx, a, f[0], f[1])
	}
	if owner, ok, err := cmd.Credentials.SignsIn(ctx, a, f[1]); err != nil {
		return bots.Answer{}, err
	} else if ok && f[0] == "connect" {
		return linkTo(w, f[1])(cmd.Connect.BeginDeclared(ctx, a.By, api.LoginDeclaredRequest{ID: f[1], Owner: owner}))
	}
	if f[0] == "connect" {
		prompt, err := cmd.Credentials.Prompt(ctx, a, f[1], name)
		if err != nil {
			return bots.Answer{}, err
		}
		return bots.Answer{Prompt: &prompt, Text: w.Say(phrases.OnlyDialog, "/nize credentials connect "+f[1])}, nil
	}
	gone, err := cmd.Credentials.RemoveOwn(ctx, a, f[1], name)
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.KeyGone, bots.Brief(strings.Join(gone, ", "), 200), f[1])), nil
}

// sayServerLogin returns a link with which a person connects a server, or removes their
// login.
func (cmd *Commands) sayServerLogin(ctx context.Context, a bots.Asked, verb, server string) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if verb == "disconnect" {
		if _, err := cmd.Connect.Forget(ctx, a.By, api.LoginRequest{Name: server, User: a.By.User}); err != nil {
			return bots.Answer{}, err
		}
		return bots.Said(w.Say(phrases.KeyGone, store.LoginName, server)), nil
	}
	return linkTo(w, server)(cmd.Connect.Begin(ctx, a.By, api.LoginServerRequest{Name: server, User: a.By.User}))
}

// linkTo returns the answer with the link to continue connecting.
func linkTo(w phrases.Catalogue, name string) func(api.LoginFlow, error) (bots.Answer, error) {
	return func(flow api.LoginFlow, err error) (bots.Answer, error) {
		if err != nil {
			return bots.Answer{}, err
		}
		if flow.State == api.LoginDone {
			return bots.Said(w.Text(store.Textf("%s is connected", name))), nil
		}
		return bots.Said(w.Text(store.Textf("To connect %s, open this within ten minutes in a browser where you are signed in to nize: %s", name, flow.URL))), nil
	}
}

func (cmd *Commands) listOwnCredentials(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	list, err := cmd.Credentials.ListOwn(ctx, a.By, store.TeamOf(a.By, a.At))
	if err != nil {
		return bots.Answer{}, err
	}
	var lines []string
	for _, c := range list {
		state := phrases.KeyLacks
		if c.Connected {
			state = phrases.KeyThere
		}
		lines = append(lines, "- "+w.Say(state, bots.Brief(c.Name, 60), c.Server))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.KeysNone)), nil
	}
	return bots.Said(strings.TrimSpace(bots.FirstLines(w, "", lines)) + "\n" + w.Say(phrases.KeysHow)), nil
}
