package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"

	"nize/daemon/api"
	"nize/store"
)

// controlHandler serves the control socket.
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

// asksWhatIsWrong reports whether a request is answered although the database can't be
// reached.
func asksWhatIsWrong(r *http.Request) bool {
	return r.URL.Path == api.GetStatus.Path || r.URL.Path == api.Doctor.Path
}

// failControl writes an error as nizectl reads it.
func failControl(w http.ResponseWriter, e *api.Error) {
	body, _ := json.Marshal(api.Failure{Error: e}) // two strings always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status())
	_, _ = w.Write(append(body, '\n')) // the client has left: nothing to do
}

// socketCaller is where a request on the socket gets its caller. Browsers are
// refused before anything else, in case somebody puts the socket behind a proxy.
func (d *Daemon) socketCaller(r *http.Request) (store.Caller, error) {
	if r.Header.Get("Origin") != "" || r.Host != api.Host {
		return store.Caller{}, store.Mark(fmt.Errorf("the control socket is for nizectl alone"), store.ErrRefused)
	}
	return d.peers.caller(r)
}
