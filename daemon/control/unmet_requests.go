package control

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/store"
)

// UnmetRequests are what people asked for and no tool could do.
type UnmetRequests struct {
	Store interface {
		Flush(ctx context.Context) error
		ListUnmetRequests(ctx context.Context) ([]store.UnmetRequest, error)
		DeleteUnmetRequests(ctx context.Context, by store.Caller, text string) (int, error)
	}
}

// List ranks them.
func (u *UnmetRequests) List(ctx context.Context, _ store.Caller, _ api.Empty) (none api.List[store.UnmetRequest], err error) {
	if _, err := writeWaiting(ctx, u.Store); err != nil { // the newest of them, too
		return none, err
	}
	list, err := u.Store.ListUnmetRequests(ctx)
	return api.Items(list), err
}

// Forget forgets what a text would count for, or all.
func (u *UnmetRequests) Forget(ctx context.Context, by store.Caller, req api.ForgetUnmetRequestsRequest) (api.Forgotten, error) {
	if (req.Text == "") != req.All {
		return api.Forgotten{}, fmt.Errorf("%w request: say which by text, or all=1", store.ErrInvalid)
	}
	n, err := u.Store.DeleteUnmetRequests(ctx, by, req.Text)
	return api.Forgotten{Forgotten: n}, err
}
