package browser

import (
	"net/http"

	"nize/bots/web"
	"nize/daemon/mux"
	"nize/store"
)

// Views show results by views of their tools.
type Views interface {
	// Shows says whether a call of a tool that stands so has a view to be opened.
	Shows(tool string, state store.State) bool
	// Serve answers a frame that stands in a page of the origin.
	Serve(w http.ResponseWriter, r *http.Request, origin string)
	// Mount adds what a page may ask for of them.
	Mount(m *mux.Mux)
}

// withView says of a message whether the call that it tells of has a view to be opened.
func (b *Browser) withView(m web.Message) web.Message {
	switch {
	case m.Card != nil:
		m.View = m.Card.View == "" && b.Views.Shows(m.Card.Tool, m.Card.State) // the view that asked shows it
	case m.Tool != nil:
		m.View = b.Views.Shows(m.Tool.Name, m.Tool.State)
	}
	return m
}
