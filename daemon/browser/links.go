package browser

import (
	"context"
	"net"
	"net/http"

	"nize/daemon/mux"
	"nize/store"
	"nize/store/outage"
)

// Links lead from chats to the views of results.
type Links interface {
	// Leads says whether a link leads somewhere, if not to everybody.
	Leads(ctx context.Context, link string) bool
	// Mount adds what the page of a link may ask for. A caller without a user is
	// not signed in.
	Mount(m *mux.Mux)
}

// link answers with the shell, which opens the view. What stands in its address goes
// nowhere else: the shell says that no address may.
func (b *Browser) link(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	if !b.Links.Leads(r.Context(), r.PathValue("link")) {
		status = http.StatusNotFound
	}
	w.Header().Set("X-Robots-Tag", "noindex")
	b.assets.Shell(w, r, b.frames(r), status)
}

// linkOperations serve what the page of a link asks for, also of who is not signed in.
func (b *Browser) linkOperations() http.Handler {
	on := http.NewServeMux()
	m := mux.New(on, mux.Options{Speak: b.Speak, Fail: fail, Log: b.Log, Caller: func(r *http.Request) (store.Caller, error) {
		if _, err := b.Person(r); err == nil || outage.Is(err) {
			return b.caller(r)
		}
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		return store.Caller{Surface: store.OnWeb, Address: host}, nil
	}})
	b.Links.Mount(m)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		if e := b.foreign(r); e != nil {
			fail(w, e)
			return
		}
		r.Header.Set(pageHeader, b.Origin(r))
		on.ServeHTTP(w, r)
	})
}
