package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nize/store"
	"nize/store/commit"
	"nize/store/record/access"
)

func channel(t *commit.Tx, place string) (store.Channel, error) {
	c, err := commit.GetJSON[store.Channel](t, "channels", []byte(place))
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	c.Place = place
	return c, err
}

// GetChannel implements [store.Channels].
func (d Catalog) GetChannel(ctx context.Context, place string) (c store.Channel, err error) {
	err = d.db.Read(ctx, "reading channel "+place, func(t *commit.Tx) (err error) {
		c, err = channel(t, place)
		return err
	})
	return c, err
}

// ListChannels implements [store.Channels].
func (d Catalog) ListChannels(ctx context.Context) (list []store.Channel, err error) {
	err = d.db.Read(ctx, "listing channels", func(t *commit.Tx) (err error) {
		list, err = commit.ListJSON[store.Channel](t, "channels", nil)
		return err
	})
	return slices.DeleteFunc(list, store.Channel.Unset), err
}

// EditChannel implements [store.Channels].
func (d Catalog) EditChannel(ctx context.Context, by store.Caller, place string, edit func(*store.Channel)) (c store.Channel, err error) {
	err = d.db.Write(ctx, "changing channel "+place, func(t *commit.Tx) (err error) {
		if err := commit.CheckIDs("channel", place); err != nil {
			return err
		}
		if c, err = channel(t, place); err != nil {
			return err
		}
		old := c
		edit(&c)
		c.Place = place
		if c.Approvers != old.Approvers { // an unchanged policy may name a person who was removed
			if err := access.CheckApprovers(t, c.Approvers); err != nil {
				return err
			}
		}
		return saveChannel(t, by, c)
	})
	return c, err
}

// saveChannel stores the settings of a channel, or deletes the record if there are none.
func saveChannel(t *commit.Tx, by store.Caller, c store.Channel) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := checkPeople(t, c.Admins); err != nil {
		return err
	}
	th := commit.Record{Kind: "channel", Bucket: "channels", ID: c.Place}
	if !c.Unset() {
		return t.PutRecord(by, th, c)
	}
	if t.Get(th.Bucket, []byte(th.ID)) == nil {
		return nil // it had no record
	}
	return t.RemoveRecord(by, th)
}

// checkPeople returns an error if a list names a user or group that doesn't exist.
func checkPeople(t *commit.Tx, list []string) error {
	for _, who := range list {
		if id, ok := strings.CutPrefix(who, "user:"); ok && t.Get("users", []byte(id)) == nil {
			return store.Unknown("user", id, nil)
		}
	}
	return access.CheckGroups(t, list)
}

// Rechannel replaces a user that channels name by another, or removes the name. A policy
// keeps the name of a removed user: with one name less it might let others approve.
func Rechannel(t *commit.Tx, by store.Caller, from, into string) error {
	all, err := commit.ListJSON[store.Channel](t, "channels", nil)
	if err != nil {
		return err
	}
	for _, c := range all {
		named := false
		if into != "" {
			c.Approvers, named = access.Reassigned(c.Approvers, from, into)
		}
		if !slices.Contains(c.Admins, from) && !named {
			continue
		}
		c.Admins = access.Replaced(c.Admins, from, into)
		if err := saveChannel(t, by, c); err != nil {
			return err
		}
	}
	return nil
}

// unlistServer removes a deleted server from the channels that name it, so that a server of
// that name created later isn't allowed automatically. A list that becomes empty still
// allows none.
func unlistServer(t *commit.Tx, by store.Caller, server string) error {
	all, err := commit.ListJSON[store.Channel](t, "channels", nil)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !slices.Contains(c.Servers, server) {
			continue
		}
		c.Servers = slices.DeleteFunc(c.Servers, func(s string) bool { return s == server })
		if err := saveChannel(t, by, c); err != nil {
			return err
		}
	}
	return nil
}
