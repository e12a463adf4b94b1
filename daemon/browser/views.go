package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"nize/bots"
	"nize/bots/web"
	"nize/daemon/mux"
	"nize/store"
)

// Views shows results in the views of their tools.
type Views interface {
	// Shows reports whether a call of a tool in that state has a view to open.
	Shows(tool string, state store.State) bool
	// Serve serves the frame of a ticket, at the host of its server's views or, if views
	// have no hosts, at nize's own, "".
	Serve(w http.ResponseWriter, r *http.Request, ticket, host string)
	// Mount adds the operations of a page on views.
	Mount(m *mux.Mux)
}

// pageHeader passes the page's origin to an operation. It is always set here, which
// overwrites a value sent by a browser.
const pageHeader = "Nize-Page"

// framePath is the path of frames, at every host.
const framePath = "/app/frames/"

// frames returns the URL prefix of frames for the page that sends a request.
func (b *Browser) frames(r *http.Request) string {
	if at := b.Widgets(); at != "" {
		return at + framePath
	}
	return b.Origin(r) + framePath
}

// ServeFrame serves a request to a host of one server's views, which has only frames and no
// personal data.
func (b *Browser) ServeFrame(w http.ResponseWriter, r *http.Request, host string) {
	ticket, ok := strings.CutPrefix(r.URL.Path, framePath)
	if !ok || r.Method != http.MethodGet || !store.GetBool(b.Config, "", "web.enabled") {
		http.NotFound(w, r)
		return
	}
	b.Views.Serve(w, r, ticket, host)
}

// complete adds to a message whether its call has a view to open, and what the call
// returned.
func (b *Browser) complete(ctx context.Context, by store.Caller, m web.Message, r bots.Reader) (web.Message, error) {
	switch {
	case m.Card != nil:
		m.View = m.Card.View == "" && b.Views.Shows(m.Card.Tool, m.Card.State) // if a view requested the call, that view shows the result
	case m.Tool != nil:
		m.View = b.Views.Shows(m.Tool.Name, m.Tool.State)
	case m.Kind == store.ImagesMessage:
		return returned(ctx, b.Store, by, m, r)
	}
	return m, nil
}

// callReader reads a call.
type callReader interface {
	GetCall(ctx context.Context, id string) (store.Call, error)
}

// returned adds a call's result to a message about it, if the reader is the call's
// requester.
func returned(ctx context.Context, of callReader, by store.Caller, m web.Message, r bots.Reader) (web.Message, error) {
	call, err := of.GetCall(ctx, m.Call)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && call.By != by.User:
		return m, nil
	case err != nil:
		return m, fmt.Errorf("reading what a call returned: %w", err)
	}
	return web.Returned(m, call, r), nil
}
