package database

import (
	"context"
	"errors"
	"slices"
	"strings"

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

// GetChannel implements [store.Channels].
func (d *DB) GetChannel(ctx context.Context, place string) (c store.Channel, err error) {
	err = d.view(ctx, "reading channel "+place, func(t *tx) (err error) {
		c, err = t.channel(place)
		return err
	})
	return c, err
}

// ListChannels implements [store.Channels].
func (d *DB) ListChannels(ctx context.Context) (list []store.Channel, err error) {
	err = d.view(ctx, "listing channels", func(t *tx) (err error) {
		list, err = listJSON[store.Channel](t, "channels", nil)
		return err
	})
	return slices.DeleteFunc(list, store.Channel.Unset), err
}

// EditChannel implements [store.Channels].
func (d *DB) EditChannel(ctx context.Context, by store.Caller, place string, edit func(*store.Channel)) (c store.Channel, err error) {
	err = d.update(ctx, "changing channel "+place, func(t *tx) (err error) {
		if err := checkIDs("channel", place); err != nil {
			return err
		}
		if c, err = t.channel(place); err != nil {
			return err
		}
		old := c
		edit(&c)
		c.Place = place
		if c.Approvers != old.Approvers { // who was named and left stands in no other change's way
			if err := t.checkApprovers(c.Approvers); err != nil {
				return err
			}
		}
		return t.saveChannel(by, c)
	})
	return c, err
}

// saveChannel stores the settings of a channel; one without any goes.
func (t *tx) saveChannel(by store.Caller, c store.Channel) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := t.checkPeople(c.Admins); err != nil {
		return err
	}
	th := thing{"channel", "channels", c.Place}
	if !c.Unset() {
		return t.putThing(by, th, c)
	}
	if t.get(th.bucket, []byte(th.id)) == nil {
		return nil // it had none
	}
	return t.removeThing(by, th)
}

// checkPeople refuses a list that names somebody who is not there.
func (t *tx) checkPeople(list []string) error {
	for _, who := range list {
		if id, ok := strings.CutPrefix(who, "user:"); ok && t.get("users", []byte(id)) == nil {
			return store.Unknown("user", id, nil)
		}
	}
	return t.checkGroups(list)
}

// rechannel replaces one whom channels name by another, or by nobody. A policy
// keeps the name of who is gone: with one name less it might let others press.
func (t *tx) rechannel(by store.Caller, from, into string) error {
	all, err := listJSON[store.Channel](t, "channels", nil)
	if err != nil {
		return err
	}
	for _, c := range all {
		named := false
		if into != "" {
			c.Approvers, named = reassigned(c.Approvers, from, into)
		}
		if !slices.Contains(c.Admins, from) && !named {
			continue
		}
		c.Admins = replaced(c.Admins, from, into)
		if err := t.saveChannel(by, c); err != nil {
			return err
		}
	}
	return nil
}

// unlistServer takes a server that goes out of the channels that name it: one
// of that name that is made later must not get in unasked. A list that becomes
// empty still allows none.
func (t *tx) unlistServer(by store.Caller, server string) error {
	all, err := listJSON[store.Channel](t, "channels", nil)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !slices.Contains(c.Servers, server) {
			continue
		}
		c.Servers = slices.DeleteFunc(c.Servers, func(s string) bool { return s == server })
		if err := t.saveChannel(by, c); err != nil {
			return err
		}
	}
	return nil
}
