package browser

import (
	"context"
	"net"
	"net/http"

	"nize/daemon/mux"
	"nize/store"
	"nize/store/outage"
)

// Links resolves links in chats to views of results.
type Links interface {
	// Leads reports whether a link is valid, even if not everyone may use it.
	Leads(ctx context.Context, link string) bool
	// Mount adds the operations of a link's page. A caller without a user is not signed in.
	Mount(m *mux.Mux)
}

// link serves the shell, which opens the view. The secret in its path must not leak: the
// shell's headers forbid sending the address as a referrer.
func (b *Browser) link(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	if !b.Links.Leads(r.Context(), r.PathValue("link")) {
		status = http.StatusNotFound
	}
	w.Header().Set("X-Robots-Tag", "noindex")
	b.assets.Shell(w, r, b.frames(r), status)
}

// linkOperations serves the operations of a link's page, also to callers who are not signed
// in.
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
