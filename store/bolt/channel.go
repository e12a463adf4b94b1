package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"nize/store"
)

func (t *tx) channel(place string) (store.Channel, error) {
	c, err := getJSON[store.Channel](t, "channels", []byte(place))
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	c.Place = place
	return c, err
}

// GetChannel implements [store.Rooms].
func (d *DB) GetChannel(ctx context.Context, place string) (c store.Channel, err error) {
	err = d.view(ctx, "reading channel "+place, func(t *tx) (err error) {
		c, err = t.channel(place)
		return err
	})
	return c, err
}

// EditChannel implements [store.Rooms].
func (d *DB) EditChannel(ctx context.Context, by store.Caller, place string, edit func(*store.Channel)) (c store.Channel, err error) {
	err = d.do(ctx, "changing channel "+place, func(t *tx) (err error) {
		if err := checkIDs("channel", place); err != nil {
			return err
		}
		if c, err = t.channel(place); err != nil {
			return err
		}
		edit(&c)
		c.Place = place
		if c.Mode != "" && !slices.Contains(store.Modes, c.Mode) {
			return fmt.Errorf("%w mode %q", store.ErrInvalid, c.Mode)
		}
		return t.putThing(by, thing{"channel", "channels", place}, c)
	})
	return c, err
}
