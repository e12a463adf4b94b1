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

// Views show results by views of their tools.
type Views interface {
	// Shows says whether a call of a tool that stands so has a view to be opened.
	Shows(tool string, state store.State) bool
	// Serve answers the frame that has the ticket, at the host of its server's views
	// or, where those have none, at nize's own, "".
	Serve(w http.ResponseWriter, r *http.Request, ticket, host string)
	// Mount adds what a page may ask for of them.
	Mount(m *mux.Mux)
}

// pageHeader is how an operation learns the origin of the page that asks: it is set
// here, and whatever a browser says there is dropped.
const pageHeader = "Nize-Page"

// framePath is where frames are, at every host.
const framePath = "/app/frames/"

// frames is where the frames of a page come from that somebody asks for.
func (b *Browser) frames(r *http.Request) string {
	if at := b.Widgets(); at != "" {
		return at + framePath
	}
	return b.Origin(r) + framePath
}

// ServeFrame answers a request to a host of one server's views: there are frames, and
// nothing that knows of a person.
func (b *Browser) ServeFrame(w http.ResponseWriter, r *http.Request, host string) {
	ticket, ok := strings.CutPrefix(r.URL.Path, framePath)
	if !ok || r.Method != http.MethodGet || !store.GetBool(b.Config, "", "web.enabled") {
		http.NotFound(w, r)
		return
	}
	b.Views.Serve(w, r, ticket, host)
}

// complete adds to a message what its reader's page asks nize about it: whether the call
// that it tells of has a view to be opened, and what the call returned.
func (b *Browser) complete(ctx context.Context, by store.Caller, m web.Message, r bots.Reader) (web.Message, error) {
	switch {
	case m.Card != nil:
		m.View = m.Card.View == "" && b.Views.Shows(m.Card.Tool, m.Card.State) // the view that asked shows it
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

// returned adds to a message about what a call returned what there is to show of it, if
// its reader is the requester of the call.
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
