package posting

import (
	"context"

	"nize/store"
)

// Store is the part of the store that posting needs.
type Store interface {
	FindThread(ctx context.Context, at store.Address) (store.Thread, error)
	GetThread(ctx context.Context, id string) (store.Thread, error)
	GetUser(ctx context.Context, id string) (store.User, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
	GetPlace(ctx context.Context, owner, name string) (store.Address, error)
	ListPlaces(ctx context.Context, owner string) (map[string]store.Address, error)
	PutPlace(ctx context.Context, owner, name string, at store.Address) error
	MovePlace(ctx context.Context, owner, from, to string, at store.Address) error
}
