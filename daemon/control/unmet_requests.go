package control

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// UnmetRequests implements the operations on requests that no tool could fulfil.
type UnmetRequests struct {
	Store interface {
		Flush(ctx context.Context) error
		ListUnmetRequests(ctx context.Context) ([]store.UnmetRequest, error)
		DeleteUnmetRequests(ctx context.Context, by store.Caller, text string) (int, error)
	}
}

// Mount registers the operations.
func (u *UnmetRequests) Mount(m *mux.Mux) {
	mux.Handle(m, api.ForgetUnmetRequests, u.Forget)
	mux.Handle(m, api.ListUnmetRequests, u.List)
}

// List returns them, ranked.
func (u *UnmetRequests) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[store.UnmetRequest], err error) {
	if _, err := writeWaiting(ctx, u.Store); err != nil { // include the newest
		return none, err
	}
	list, err := u.Store.ListUnmetRequests(ctx)
	return api.Items(list), err
}

// Forget deletes the requests that a text counts towards, or all.
func (u *UnmetRequests) Forget(ctx context.Context, by store.Caller, req api.ForgetUnmetRequestsRequest) (api.Forgotten, error) {
	if (req.Text == "") != req.All {
		return api.Forgotten{}, fmt.Errorf("%w request: say which by text, or all=1", store.ErrInvalid)
	}
	n, err := u.Store.DeleteUnmetRequests(ctx, by, req.Text)
	return api.Forgotten{Forgotten: n}, err
}
