package control

import (
	"context"
	"slices"
	"strings"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/mcp/index"
	"nize/store"
)

// Index implements the operation that shows the index of tools.
type Index struct {
	Index *index.Index
	// Unusable returns why the configured model can't be used at all, or nil.
	Unusable func() error
	// Servers returns the servers with their health, including native tools.
	Servers func(ctx context.Context, by store.Caller, _ api.Empty) (api.List[api.ServerView], error)
}

// Mount registers the operations.
func (x *Index) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetIndex, x.Show)
}

// Show returns what is embedded, by which model, how old that is, and failures.
func (x *Index) Show(ctx context.Context, by store.Caller, _ api.Empty) (v api.IndexView, err error) {
	known, err := x.Servers(ctx, by, api.Empty{})
	if err != nil {
		return v, err
	}
	st := x.Index.State()
	v = api.IndexView{Model: st.Model, State: string(st.Phase), Computed: st.Computed, Failures: st.Failures, LastError: store.Line(st.LastErr), FailedAt: st.FailedAt, Servers: []api.IndexServer{}}
	if st.Wanted != st.Model {
		v.Wanted = st.Wanted
	}
	if err := x.Unusable(); err != nil {
		v.State, v.LastError = string(index.Failing), store.ErrText(err)
	}
	for _, s := range st.Servers {
		v.Tools, v.Embedded = v.Tools+s.Tools, v.Embedded+s.Embedded
		v.Servers = append(v.Servers, api.IndexServer{Name: s.Name, Tools: s.Tools, Embedded: s.Embedded, Pending: s.Pending, Without: s.Without, Taken: s.Taken, Filled: s.Filled})
	}
	for _, s := range known.Items {
		i := slices.IndexFunc(v.Servers, func(in api.IndexServer) bool { return in.Name == s.Name })
		if i < 0 { // none of its tools is searchable
			i, v.Servers = len(v.Servers), append(v.Servers, api.IndexServer{Name: s.Name})
		}
		v.Servers[i].Held, v.Servers[i].LastError = s.Held, s.LastError
	}
	slices.SortFunc(v.Servers, func(a, b api.IndexServer) int { return strings.Compare(a.Name, b.Name) })
	return v, nil
}
