package daemon

import (
	"fmt"
	"net/http"

	"nize/daemon/api"
	"nize/store"
)

// controlHandler returns the handler of the control socket.
func (d *Daemon) controlHandler() http.Handler {
	on := http.NewServeMux()
	d.controlMux(on)
	held := d.holder.Handler(on)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.VersionHeader, api.Version)
		if asksWhatIsWrong(r) {
			on.ServeHTTP(w, r)
			return
		}
		held.ServeHTTP(w, r)
	})
}

// asksWhatIsWrong reports whether a request must be served even if the database can't be
// reached, because it is a diagnosis.
func asksWhatIsWrong(r *http.Request) bool {
	return r.URL.Path == api.GetStatus.Path || r.URL.Path == api.Doctor.Path
}

// socketCaller returns the caller of a request on the socket. Browsers are rejected before
// anything else, in case the socket is put behind a proxy.
func (d *Daemon) socketCaller(r *http.Request) (store.Caller, error) {
	if r.Header.Get("Origin") != "" || r.Host != api.Host {
		return store.Caller{}, store.Mark(fmt.Errorf("the control socket is for nizectl alone"), store.ErrRefused)
	}
	return d.peers.caller(r)
}
