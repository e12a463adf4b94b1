package daemon

import (
	"net/http"

	"nize/daemon/api"
	"nize/daemon/mux"
)

// Operations are those of the control socket.
func Operations() []api.Spec {
	m := mux.New(http.NewServeMux(), mux.Options{})
	new(operations).mount(m)
	return m.Specs()
}
