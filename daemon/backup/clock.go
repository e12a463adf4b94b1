package backup

import (
	"context"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
	"nize/store/database"
)

// Clock implements the operations on the database's clock.
type Clock struct {
	DB  *database.DB
	Now func() time.Time // the machine's clock
}

// Mount registers the operations.
func (c *Clock) Mount(m *mux.Mux) {
	mux.Handle(m, api.GetClock, c.Show)
	mux.Handle(m, api.RepairClock, c.Repair)
}

// Show returns the clocks.
func (c *Clock) Show(context.Context, store.Caller, api.Empty) (api.Clock, error) {
	return c.view(c.DB.Clocks()), nil
}

// Repair sets the database's stored time back to the current time.
func (c *Clock) Repair(ctx context.Context, by store.Caller, _ api.Empty) (none api.Clock, err error) {
	was, err := c.DB.RepairClock(ctx, by)
	if err != nil {
		return none, err
	}
	v := c.view(was)
	v.Repaired = true
	return v, nil
}

func (c *Clock) view(now database.Clocks) api.Clock {
	return api.Clock{Stored: now.Stored, Present: now.Present, Machine: c.Now(), Ahead: now.Ahead().Seconds()}
}
