package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"nize/bots/slack/slacktest"
)

// deed is what a person did on the page.
type deed struct {
	Do      string              `json:"do"`
	User    string              `json:"user"`
	Channel string              `json:"channel"`
	Thread  string              `json:"thread"`
	TS      string              `json:"ts"`
	View    string              `json:"view"`
	Action  string              `json:"action"`
	Text    string              `json:"text"`
	Values  []string            `json:"values"`
	Inputs  map[string][]string `json:"inputs"`
	Files   []attachment        `json:"files"`
}

// attachment is a file that goes with a message.
type attachment struct {
	Name    string `json:"name"`
	Content []byte `json:"content"` // base64
}

const maxDeed = 16 << 20 // files too

type done struct {
	Channel string `json:"channel,omitempty"` // to look at now
	Thread  string `json:"thread,omitempty"`
}

func (p *Page) act(r *http.Request) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errors.New("a deed is JSON")
	}
	var d deed
	dec := json.NewDecoder(io.LimitReader(r.Body, maxDeed))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("reading what was done: %w", err)
	}
	return p.do(r, d)
}

func (p *Page) do(r *http.Request, d deed) (done, error) {
	ctx, at := r.Context(), slacktest.Message{Channel: d.Channel, TS: d.TS}
	switch d.Do {
	case "say":
		return p.say(r, d)
	case "press":
		return done{}, p.Slack.Choose(ctx, d.User, at, d.Action, d.Values...)
	case "view":
		return done{}, p.Slack.PressView(ctx, d.User, d.View, d.Action, d.Values...)
	case "submit":
		var refused slacktest.Refused
		if err := p.Slack.Submit(ctx, d.User, d.View, d.Inputs); err != nil && !errors.As(err, &refused) {
			return done{}, err // what was refused stands at the inputs
		}
		return done{}, nil
	case "close":
		return done{}, p.Slack.CloseView(ctx, d.User, d.View)
	case "home":
		p.Slack.OpenHome(d.User)
		return done{}, nil
	case "dm":
		return done{Channel: p.Slack.DMChannel(d.User), Thread: p.Slack.OpenDM(d.User)}, nil
	case "stop":
		return done{}, p.Slack.StopSession(d.User, d.Channel, d.Thread)
	case "shortcut":
		return done{}, p.Slack.Shortcut(ctx, d.User, at, d.Action)
	}
	return done{}, fmt.Errorf("nobody can do %q", d.Do)
}

const inThread = "is not supported in threads. Sorry!" // Slack's own words

// say sends a message, or a slash command, which Slack has in channels only.
func (p *Page) say(r *http.Request, d deed) (done, error) {
	text := strings.TrimSpace(d.Text)
	switch {
	case text == "" && len(d.Files) == 0:
		return done{}, errors.New("there is nothing to say")
	case strings.HasPrefix(text, "/") && d.Thread != "":
		name, _, _ := strings.Cut(text, " ")
		return done{}, fmt.Errorf("%s %s", name, inThread)
	case strings.HasPrefix(text, "/"):
		return done{}, p.Slack.Slash(r.Context(), d.User, d.Channel, text)
	}
	said := slacktest.Said{User: d.User, Channel: d.Channel, Thread: d.Thread, Text: p.Slack.Typed(text)}
	for _, f := range d.Files {
		said.Files = append(said.Files, slacktest.File{Name: f.Name, Content: f.Content})
	}
	m, err := p.Slack.Post(said)
	return done{Thread: m.Root()}, err
}
