package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// hold is how long a request for the next change waits.
const hold = 20 * time.Second

// Picture is the platform as one user sees it.
type Picture struct {
	Revision int       `json:"revision"`
	Platform string    `json:"platform"` // in its usual spelling
	Linked   bool      `json:"linked"`   // an app is connected
	You      string    `json:"you"`      // the default user
	Where    string    `json:"where"`
	Bot      string    `json:"bot"`
	Users    []Person  `json:"users"`
	Channels []Channel `json:"channels"`
	Messages []Message `json:"messages"`
	Thread   []Message `json:"thread"`
	Session  Session   `json:"session"`
	Prompts  []Prompt  `json:"prompts"`
	Menus    []Menu    `json:"menus"` // actions for a message
	Commands []Command `json:"commands"`
	Groups   []string  `json:"groups"` // names after an @, besides those of Users
	Draft    string    `json:"draft"`  // initial text of the composer
	Dialog   *Dialog   `json:"dialog"`
	Homes    bool      `json:"homes"` // the platform has home pages
	Home     *Dialog   `json:"home"`
	Refused  []Refusal `json:"refused"` // the app's last mistakes
	Counts   string    `json:"counts"`
}

// Person is a user of the platform.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Note string `json:"note"`
	Bot  bool   `json:"bot"`
}

// Channel is a channel or a direct conversation.
type Channel struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	DM   bool   `json:"dm"`
	Last string `json:"last"` // the newest message, to mark unread ones
}

// Message is a message in a channel.
type Message struct {
	TS          string          `json:"ts"`
	At          time.Time       `json:"at"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments json.RawMessage `json:"attachments"`
	Ephemeral   bool            `json:"ephemeral"`
	Quiet       bool            `json:"quiet"` // a system message, for example that a user joined
	Edits       int             `json:"edits"`
	Streaming   bool            `json:"streaming"`
	Files       []File          `json:"files"`
	Thread      string          `json:"thread"` // the thread that it begins or would begin
	Replies     int             `json:"replies"`
	Reactions   []string        `json:"reactions"`
	Pings       []string        `json:"pings"`
}

// File is a file of a message.
type File struct {
	ID   string `json:"id,omitempty"` // for an image, which is shown
	Name string `json:"name"`
	Size int    `json:"size"`
	Text string `json:"text"` // the beginning of a text
}

const maxPreview = 20_000 // bytes of a file

// NewFile returns a file with its beginning.
func NewFile(id, name string, content []byte) File {
	if isImage(content) {
		return File{ID: id, Name: name, Size: len(content)}
	}
	return File{Name: name, Size: len(content), Text: string(content[:min(len(content), maxPreview)])}
}

// Session is the state of a thread as set by the app.
type Session struct {
	Status  string   `json:"status"`
	Title   string   `json:"title"`
	Loading string   `json:"loading"`
	Prompts []Prompt `json:"prompts"`
}

// Prompt is a message suggested by the app.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Menu is a command on a message.
type Menu struct {
	Action string `json:"action"`
	Title  string `json:"title"`
}

// Command is a typed command: a slash and words.
type Command struct {
	Line  string `json:"line"` // "/nize help"
	About string `json:"about"`
}

// Dialog is a dialog shown to the user.
type Dialog struct {
	ID     string            `json:"id"`
	Looks  int               `json:"looks"`
	Title  string            `json:"title"`
	Submit string            `json:"submit"`
	Blocks json.RawMessage   `json:"blocks"`
	Errors map[string]string `json:"errors"`
}

// Refusal is a mistake of the app.
type Refusal struct {
	Method string `json:"method"`
	Error  string `json:"error"`
}

// Deed is a person's action on the page.
type Deed struct {
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
	Files   []Attachment        `json:"files"`
}

// Attachment is a file attached to a message.
type Attachment struct {
	Name    string `json:"name"`
	Content []byte `json:"content"` // base64
}

// Done says what to show next.
type Done struct {
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

const maxDeed = 16 << 20 // including files

func (p *Page) act(r *http.Request) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errors.New("a deed is JSON")
	}
	var d Deed
	dec := json.NewDecoder(io.LimitReader(r.Body, maxDeed))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("reading what was done: %w", err)
	}
	done, err := p.Platform.Do(r.Context(), d)
	if said := strings.TrimSpace(d.Text); err == nil && said != "" {
		p.draft.CompareAndSwap(said, "")
	}
	return done, err
}

// ErrNothing is returned for a message without text and files.
var ErrNothing = errors.New("there is nothing to say")

// ErrDeed returns the error for an action that the platform doesn't have.
func ErrDeed(do string) error { return fmt.Errorf("nobody can do %q", do) }

// state returns the current picture, or waits until it differs from the page's.
func (p *Page) state(r *http.Request) (any, error) {
	q := r.URL.Query()
	have, err := strconv.Atoi(q.Get("since"))
	if err != nil {
		have = -1
	}
	changed := p.Platform.Changed()
	if p.Platform.Revision() == have {
		t := time.NewTimer(hold)
		defer t.Stop()
		select {
		case <-changed:
		case <-t.C:
		case <-r.Context().Done():
		}
	}
	revision := p.Platform.Revision()
	out := p.Platform.Picture(q.Get("user"), q.Get("channel"), q.Get("thread"))
	out.Revision = revision
	out.Draft, _ = p.draft.Load().(string) // nil at first
	return out, nil
}
