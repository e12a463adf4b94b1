package daemon

import (
	"net/http"

	"nize/daemon/mux"
)

// Operations are those of the control socket.
func Operations() []mux.Mounted {
	m := mux.New(http.NewServeMux(), mux.Options{})
	new(operations).mount(m)
	return m.Mounted()
}
