package record

import (
	"context"

	"nize/store"
	"nize/store/kv"
)

// Settings implements [store.Settings].
type Settings struct{ db kv.DB }

var _ store.Settings = Settings{}

// PutSetting implements [store.Settings]. If nothing changes, it appends no event.
func (s Settings) PutSetting(ctx context.Context, by store.Caller, user, name, value string) error {
	return s.db.Update(ctx, "setting "+name, func(tx kv.Tx) error {
		if err := kv.CheckID("setting", name); err != nil {
			return err
		}
		if user != "" {
			if err := kv.CheckID("user", user); err != nil {
				return err
			}
		}
		return PutSetting(tx, by, user, name, value)
	})
}

// PutSetting sets a setting of a user, or of the system if user is "".
func PutSetting(tx kv.Tx, by store.Caller, user, name, value string) error {
	k := []byte(user + "\x00" + name)
	if v, _ := tx.Get("settings", k); string(v) == value {
		return nil
	}
	var err error
	if value == "" {
		err = tx.Delete("settings", k)
	} else {
		err = tx.Put("settings", k, []byte(value))
	}
	if err != nil {
		return err
	}
	tx.Change(store.Change{Kind: "setting", ID: name})
	return tx.Event(by, store.Event{Kind: "setting.put", Subject: name}, struct {
		User  string `json:"user,omitempty"`
		Key   string `json:"key"`
		Value string `json:"value"`
	}{user, name, value})
}

// ListSettings implements [store.Settings].
func (s Settings) ListSettings(ctx context.Context, user string) (map[string]string, error) {
	set := map[string]string{}
	err := s.db.View(ctx, "reading settings", func(r kv.Reader) error {
		prefix := user + "\x00"
		return r.Each("settings", []byte(prefix), nil, func(k, v []byte) error {
			set[string(k[len(prefix):])] = string(v)
			return nil
		})
	})
	return set, err
}
