package daemon

import (
	"context"
	"fmt"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

// A person's own credentials: what is connected is told, given in a
// dialog and taken back in a chat; its value is never written in a message.

func isCredentialWords(words string) bool {
	f := strings.Fields(words)
	return len(f) == 0 || (len(f) == 2 || len(f) == 3) && (f[0] == "connect" || f[0] == "disconnect") && store.CheckSlug(f[1]) == nil
}

// maybeCredential takes whatever follows the verbs: it may be a secret, which
// must not be said to everybody as a question.
func maybeCredential(words string) bool {
	f := strings.Fields(words)
	return isCredentialWords(words) || f[0] == "connect" || f[0] == "disconnect"
}

func (d *Daemon) sayCredentials(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	f := strings.Fields(a.Words)
	if !isCredentialWords(a.Words) {
		return bots.Answer{}, fmt.Errorf("%w: write credentials, credentials connect SERVER, or credentials disconnect SERVER", store.ErrInvalid)
	}
	if len(f) == 0 {
		return d.listOwnCredentials(ctx, a)
	}
	name := append(f, "")[2]
	if f[0] == "connect" {
		prompt, err := d.promptFor(ctx, a.By, f[1], name)
		if err != nil {
			return bots.Answer{}, err
		}
		return bots.Answer{Prompt: &prompt, Text: w.Say(phrases.OnlyDialog, "/nize credentials connect "+f[1])}, nil
	}
	gone, err := d.disconnect(ctx, a.By, f[1], name)
	if err != nil {
		return bots.Answer{}, err
	}
	return bots.Said(w.Say(phrases.KeyGone, brief(strings.Join(gone, ", "), 200), f[1])), nil
}

// promptFor asks for a credential that a server wants: the one that is
// named, or the only one.
func (d *Daemon) promptFor(ctx context.Context, by store.Caller, server, name string) (bots.Prompt, error) {
	if name != "" {
		prompt := bots.Prompt{Service: server, Name: name}
		_, err := d.wantsOf(ctx, by, prompt)
		return prompt, err
	}
	servers, err := d.usableServers(ctx, by)
	if err != nil {
		return bots.Prompt{}, err
	}
	for _, s := range servers {
		if s.Name != server {
			continue
		}
		switch wants := wanted(s); len(wants) {
		case 0:
		case 1:
			return bots.Prompt{Service: server, Name: wants[0].Name}, nil
		default:
			var names []string
			for _, c := range wants {
				names = append(names, c.Name)
			}
			return bots.Prompt{}, fmt.Errorf("%w: %s wants several credentials; write credentials connect %s and one of %s", store.ErrInvalid, server, server, strings.Join(names, ", "))
		}
	}
	_, err = d.wantsOf(ctx, by, bots.Prompt{Service: server})
	return bots.Prompt{}, err
}

// disconnect deletes what the caller gave a server: the credential that is
// named, or all.
func (d *Daemon) disconnect(ctx context.Context, by store.Caller, server, name string) (gone []string, err error) {
	all, err := d.db.ListCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing credentials: %w", err)
	}
	for _, c := range all {
		if c.Scope != "user" || c.Owner != by.User || c.Service != server || name != "" && c.Name != name {
			continue
		}
		if err := d.db.DeleteCredential(ctx, by, c.CredentialKey); err != nil {
			return nil, fmt.Errorf("credential %s of %s: %w", c.Name, server, err)
		}
		gone = append(gone, c.Name)
	}
	if len(gone) == 0 {
		return nil, fmt.Errorf("credential of yours for %q %w", brief(server, 60), store.ErrNotFound)
	}
	return gone, d.pool.Reconnect(ctx, server, store.Holder{Scope: "user", Owner: by.User}) // what it opened must not stay open
}

func (d *Daemon) listOwnCredentials(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	var h bots.Home
	for _, part := range []func(context.Context, bots.Asked, *bots.Home) error{homes{d}.servers, homes{d}.access} {
		if err := part(ctx, a, &h); err != nil {
			return bots.Answer{}, err
		}
	}
	var lines []string
	for _, c := range h.Credentials {
		state := phrases.KeyLacks
		if c.Connected {
			state = phrases.KeyThere
		}
		lines = append(lines, "- "+w.Say(state, brief(c.Name, 60), c.Server))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.KeysNone)), nil
	}
	return bots.Said(strings.TrimSpace(shown(w, "", lines)) + "\n" + w.Say(phrases.KeysHow)), nil
}
