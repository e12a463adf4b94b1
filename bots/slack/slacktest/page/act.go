// Package page shows a fake Slack on the page of `nizectl dev slack`.
package page

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"nize/bots/chattest/page"
	"nize/bots/slack/slacktest"
)

// Platform is a workspace on the page.
type Platform struct {
	*slacktest.Server
	Commands []page.Command // of the app, in addition to Slack's own
}

var _ page.Platform = Platform{}

// Content implements page.Platform.
func (p Platform) Content(id string) ([]byte, bool) {
	f, ok := p.File(id)
	return f.Content, ok
}

// Do implements page.Platform.
func (p Platform) Do(ctx context.Context, d page.Deed) (page.Done, error) {
	at := slacktest.Message{Channel: d.Channel, TS: d.TS}
	switch d.Do {
	case "say":
		return p.say(ctx, d)
	case "press":
		return page.Done{}, p.Choose(ctx, d.User, at, d.Action, d.Values...)
	case "view":
		return page.Done{}, p.PressView(ctx, d.User, d.View, d.Action, d.Values...)
	case "submit":
		var refused slacktest.Refused
		if err := p.Submit(ctx, d.User, d.View, d.Inputs); err != nil && !errors.As(err, &refused) {
			return page.Done{}, err // the inputs show what was rejected
		}
		return page.Done{}, nil
	case "close":
		return page.Done{}, p.CloseView(ctx, d.User, d.View)
	case "home":
		p.OpenHome(d.User)
		return page.Done{}, nil
	case "dm":
		return page.Done{Channel: p.DMChannel(d.User), Thread: p.OpenDM(d.User)}, nil
	case "stop":
		return page.Done{}, p.StopSession(d.User, d.Channel, d.Thread)
	case "shortcut":
		return page.Done{}, p.Shortcut(ctx, d.User, at, d.Action)
	}
	return page.Done{}, page.ErrDeed(d.Do)
}

const inThread = "is not supported in threads. Sorry!" // Slack's own words

// say sends a message or a slash command; Slack has the latter only in channels.
func (p Platform) say(ctx context.Context, d page.Deed) (page.Done, error) {
	text := strings.TrimSpace(d.Text)
	switch {
	case text == "" && len(d.Files) == 0:
		return page.Done{}, page.ErrNothing
	case strings.HasPrefix(text, "/") && d.Thread != "":
		name, _, _ := strings.Cut(text, " ")
		return page.Done{}, fmt.Errorf("%s %s", name, inThread)
	case isOwn(text):
		return p.runOwn(d, text)
	case strings.HasPrefix(text, "/"):
		return page.Done{}, p.Slash(ctx, d.User, d.Channel, text)
	}
	said := slacktest.Said{User: d.User, Channel: d.Channel, Thread: d.Thread, Text: p.Typed(text)}
	for _, f := range d.Files {
		said.Files = append(said.Files, slacktest.File{Name: f.Name, Content: f.Content})
	}
	m, err := p.Post(said)
	return page.Done{Thread: m.Root()}, err
}
