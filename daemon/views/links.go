package views

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
	"nize/store"
)

// maxOpened is how often a call's views can be opened by links per minute.
const maxOpened = 60

// linkStore is what links read.
type linkStore interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
	GetUser(ctx context.Context, id string) (store.User, error)
}

// Links are the links in chats to the views of results. They are safe for concurrent use.
//
// A link contains, in plain text, a call's id and an expiry, and a signature of both with a
// key of this installation. No one else can create or extend a link, and links need not be
// stored. Anyone who has a link can see the view, as with a picture that was passed on; but
// a private result is shown to its requester only. A link doesn't identify its viewer, who
// acts with their own session or not at all.
type Links struct {
	keys  func(ctx context.Context) ([][]byte, error)
	store linkStore
	views interface {
		Shows(tool string, state store.State) bool
		OpenFor(ctx context.Context, by, requester store.Caller, req OpenRequest) (Frame, error)
	}
	config    store.Config
	publicURL func() string
	now       func() time.Time
	log       *slog.Logger

	opened limit.Limit // by call
}

func newLinks(v *Views) *Links {
	keys := func(ctx context.Context) ([][]byte, error) { return signingKeys(ctx, v.DB) }
	return &Links{keys: keys, store: v.Store, views: v, config: v.Config, publicURL: v.PublicURL, now: v.Now, log: v.Log, opened: limit.Limit{Most: maxOpened, Per: time.Minute}}
}

// Address returns the link to the view of a call's result; "" if there is no view, or if
// there is no public address.
func (l *Links) Address(c store.Call) string {
	base := l.publicURL()
	if base == "" || !store.GetBool(l.config, "", "web.enabled") || !l.views.Shows(c.ToolID(), c.State) || c.Result == nil {
		return ""
	}
	ends := c.Finished.Add(store.GetSpan(l.config, "", "web.link_expiry"))
	if c.Finished.IsZero() || !l.now().Before(ends) {
		return ""
	}
	keys, err := l.keys(context.Background()) // cached after the first read
	if err != nil {
		l.log.Error("signing a link", "call", c.ID, "err", err)
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

// errNoLink is returned for an invalid link, for whatever reason.
var errNoLink = fmt.Errorf("this link: %w", store.ErrNotFound)

// find returns the call of a link.
func (l *Links) find(ctx context.Context, link string) (c store.Call, err error) {
	end := strings.LastIndexByte(link, '.')
	if end < 0 || len(link) > 200 {
		return c, errNoLink
	}
	clear, signature := link[:end], link[end+1:]
	id, ends, _ := strings.Cut(clear, ".")
	keys, err := l.keys(ctx)
	if err != nil {
		return c, err
	}
	ours := false
	for _, key := range keys {
		ours = hmac.Equal([]byte(sign(key, clear)), []byte(signature)) || ours
	}
	at, err := strconv.ParseInt(ends, 36, 64)
	if !ours || err != nil || !l.now().Before(time.Unix(at, 0)) {
		return c, errNoLink
	}
	c, err = l.store.GetCall(ctx, id)
	if err == nil && (c.Result == nil || !l.views.Shows(c.ToolID(), c.State)) {
		err = errNoLink
	}
	return c, err
}

// Leads reports whether a link is valid, even if not everyone may use it.
func (l *Links) Leads(ctx context.Context, link string) bool {
	_, err := l.find(ctx, link)
	return err == nil
}

// OpenLink is the operation that opens a link's view.
var OpenLink = api.Op[OpenLinkRequest, LinkedView]{Method: "POST", Path: "/w/{link}/frame", Summary: "open the view of a link"}

// Mount adds the operations of a link's page.
func (l *Links) Mount(m *mux.Mux) { mux.Handle(m, OpenLink, l.Open) }

// OpenLinkRequest names the link, and describes its reader's display.
type OpenLinkRequest struct {
	Link   string `path:"link" json:"-"`
	Theme  string `json:"theme,omitempty"`  // dark; anything else is light
	Locale string `json:"locale,omitempty"` // a BCP 47 tag; "" is what the browser accepts
	Accept string `header:"Accept-Language" json:"-"`
	Page   string `header:"Nize-Page" json:"-"` // origin of the requesting page
}

// Viewer is the viewer's relation to the call.
type Viewer string

const (
	Nobody    Viewer = ""          // not signed in
	Requester Viewer = "requester" // requested the call
	Other     Viewer = "other"
)

// LinkedView is the content of a link.
type LinkedView struct {
	Frame
	Call      string    `json:"call"`
	Thread    string    `json:"thread,omitempty"` // for the requester only
	Requester string    `json:"requester"`
	At        time.Time `json:"at"`
	Viewer    Viewer    `json:"viewer"`
}

// Open opens a link's view. A caller without a user is not signed in.
func (l *Links) Open(ctx context.Context, by store.Caller, req OpenLinkRequest) (none LinkedView, err error) {
	c, err := l.find(ctx, req.Link)
	if err != nil {
		return none, err
	}
	v := LinkedView{Call: c.ID, At: c.Finished, Viewer: Other}
	switch {
	case by.User == c.By:
		v.Viewer, v.Thread = Requester, c.Thread
	case by.User == "":
		v.Viewer = Nobody
	}
	if c.Private || c.InPrivateTurn {
		switch v.Viewer {
		case Nobody:
			return none, &api.Error{Code: "signed_out", Message: "this result is private to its requester; sign in first"}
		case Other:
			return none, errNoLink
		}
	}
	if !l.opened.Take(c.ID, l.now()) {
		return none, &store.CallError{Code: store.CodeRateLimited, Retryable: true, Message: store.Textf("too many views are being opened; try again in a minute")}
	}
	u, err := l.store.GetUser(ctx, c.By)
	if err != nil || u.State != store.Active {
		return none, errNoLink // links show no results of a requester who is disabled or removed
	}
	v.Requester = u.Name
	if by.User == "" {
		by = store.Caller{User: store.System.User, Name: "link", Surface: store.OnWeb, Address: by.Address}
	}
	requester := store.Caller{User: u.ID, Name: u.Name, Role: u.Role, Surface: store.OnWeb}
	v.Frame, err = l.views.OpenFor(ctx, by, requester, OpenRequest{Call: c.ID, Theme: req.Theme, Locale: req.Locale, Accept: req.Accept, Page: req.Page})
	return v, err
}
