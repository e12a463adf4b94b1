// Package links makes the links by which chats lead to the views of results, and
// opens what such a link leads to.
//
// A link is in clear the id of a call and when it ends, and a signature of both by a
// key of this installation: nobody makes one or lengthens its life, and none has to be
// kept. Anybody who has it sees the view, as anybody who was handed a picture of it
// would; but a result that is for its requester alone is shown to them alone. It says
// nothing of whom it opened for: that one acts by their own session, or not at all.
package links

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/limit"
	"nize/daemon/mux"
	"nize/daemon/views"
	"nize/store"
)

// maxOpened is how often the views of a call are opened by links in a minute.
const maxOpened = 60

// Options are what Links need. All are required.
type Options struct {
	Store interface {
		SigningKeys(ctx context.Context) ([][]byte, error)
		GetCall(ctx context.Context, id string) (store.Call, error)
		GetUser(ctx context.Context, id string) (store.User, error)
	}
	Views interface {
		Shows(tool string, state store.State) bool
		OpenFor(ctx context.Context, by, requester store.Caller, req views.OpenRequest) (views.Frame, error)
	}
	Config store.Config
	// PublicURL is where browsers find nize from anywhere, "" where nowhere.
	PublicURL func() string
	Now       func() time.Time
	Log       *slog.Logger
}

// Links are safe for concurrent use.
type Links struct {
	Options

	opened limit.Limit // by call
}

// New returns links.
func New(opt Options) *Links {
	return &Links{Options: opt, opened: limit.Limit{Most: maxOpened, Per: time.Minute}}
}

// Address is where the view of a call's result is opened; "" where there is none, or
// nobody outside could open it.
func (l *Links) Address(c store.Call) string {
	base := l.PublicURL()
	if base == "" || !store.GetBool(l.Config, "", "web.enabled") || !l.Views.Shows(c.ToolID(), c.State) || c.Result == nil {
		return ""
	}
	ends := c.Finished.Add(store.GetSpan(l.Config, "", "web.link_expiry"))
	if c.Finished.IsZero() || !l.Now().Before(ends) {
		return ""
	}
	keys, err := l.Store.SigningKeys(context.Background()) // it is read, and made once
	if err != nil {
		l.Log.Error("signing a link", "call", c.ID, "err", err)
		return ""
	}
	clear := c.ID + "." + strconv.FormatInt(ends.Unix(), 36)
	return base + "/w/" + clear + "." + sign(keys[0], clear)
}

func sign(key []byte, text string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("link to a view\x00" + text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// errNoLink is the answer where a link leads nowhere, for whatever reason.
var errNoLink = fmt.Errorf("this link: %w", store.ErrNotFound)

// find is the call that a link leads to.
func (l *Links) find(ctx context.Context, link string) (c store.Call, err error) {
	end := strings.LastIndexByte(link, '.')
	if end < 0 || len(link) > 200 {
		return c, errNoLink
	}
	clear, signature := link[:end], link[end+1:]
	id, ends, _ := strings.Cut(clear, ".")
	keys, err := l.Store.SigningKeys(ctx)
	if err != nil {
		return c, err
	}
	ours := false
	for _, key := range keys {
		ours = hmac.Equal([]byte(sign(key, clear)), []byte(signature)) || ours
	}
	at, err := strconv.ParseInt(ends, 36, 64)
	if !ours || err != nil || !l.Now().Before(time.Unix(at, 0)) {
		return c, errNoLink
	}
	c, err = l.Store.GetCall(ctx, id)
	if err == nil && (c.Result == nil || !l.Views.Shows(c.ToolID(), c.State)) {
		err = errNoLink
	}
	return c, err
}

// Leads says whether a link leads somewhere, if not to everybody.
func (l *Links) Leads(ctx context.Context, link string) bool {
	_, err := l.find(ctx, link)
	return err == nil
}

// Open is the operation that opens the view that a link leads to.
var Open = api.Op[OpenRequest, View]{Method: "POST", Path: "/w/{link}/frame", Summary: "open the view that a link leads to"}

// Mount adds what the page of a link may ask for.
func (l *Links) Mount(m *mux.Mux) { mux.Handle(m, Open, l.Open) }

// OpenRequest names the link, and says how its reader looks at it.
type OpenRequest struct {
	Link   string `path:"link" json:"-"`
	Theme  string `json:"theme,omitempty"`  // dark, or else light
	Locale string `json:"locale,omitempty"` // a BCP 47 tag; none is what the browser accepts
	Accept string `header:"Accept-Language" json:"-"`
	Page   string `header:"Nize-Page" json:"-"` // the origin of the page that asks
}

// Viewer is who looks, to the call.
type Viewer string

const (
	Nobody    Viewer = ""          // who is not signed in
	Requester Viewer = "requester" // who asked for it
	Other     Viewer = "other"
)

// View is what a link leads to.
type View struct {
	views.Frame
	Call      string    `json:"call"`
	Thread    string    `json:"thread,omitempty"` // of its requester's
	Requester string    `json:"requester"`
	At        time.Time `json:"at"`
	Viewer    Viewer    `json:"viewer"`
}

// Open opens the view that a link leads to. A caller without a user is not signed in.
func (l *Links) Open(ctx context.Context, by store.Caller, req OpenRequest) (none View, err error) {
	c, err := l.find(ctx, req.Link)
	if err != nil {
		return none, err
	}
	v := View{Call: c.ID, At: c.Finished, Viewer: Other}
	switch {
	case by.User == c.By:
		v.Viewer, v.Thread = Requester, c.Thread
	case by.User == "":
		v.Viewer = Nobody
	}
	if c.Private || c.InPrivateTurn {
		switch v.Viewer {
		case Nobody:
			return none, &api.Error{Code: "signed_out", Message: "this result is for who asked for it; sign in first"}
		case Other:
			return none, errNoLink
		}
	}
	if !l.opened.Take(c.ID, l.Now()) {
		return none, &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("too many views are being opened; try again in a minute")}
	}
	u, err := l.Store.GetUser(ctx, c.By)
	if err != nil || u.State != store.Active {
		return none, errNoLink // what they had, nobody sees by them
	}
	v.Requester = u.Name
	if by.User == "" {
		by = store.Caller{User: store.System.User, Name: "link", Surface: store.OnWeb, Address: by.Address}
	}
	requester := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnWeb}
	v.Frame, err = l.Views.OpenFor(ctx, by, requester, views.OpenRequest{Call: c.ID, Theme: req.Theme, Locale: req.Locale, Accept: req.Accept, Page: req.Page})
	return v, err
}
