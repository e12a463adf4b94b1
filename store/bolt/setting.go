package bolt

import (
	"context"

	"nize/store"
)

// PutSetting implements [store.Settings]. What changes nothing leaves no event.
func (d *DB) PutSetting(ctx context.Context, by store.Caller, user, name, value string) error {
	return d.update(ctx, "setting "+name, func(t *tx) error {
		if err := checkIDs("setting", name); err != nil {
			return err
		}
		if err := checkOptional("user", user); err != nil {
			return err
		}
		return t.putSetting(by, user, name, value)
	})
}

func (t *tx) putSetting(by store.Caller, user, name, value string) error {
	k := key(user, name)
	if string(t.get("settings", k)) == value {
		return nil
	}
	var err error
	if value == "" {
		err = t.del("settings", k)
	} else {
		err = t.put("settings", k, []byte(value))
	}
	if err != nil {
		return err
	}
	t.change(store.Change{Kind: "setting", ID: name})
	return t.event(auditNote{by: by, kind: "setting.put", subject: name, data: struct {
		User  string `json:"user,omitempty"`
		Key   string `json:"key"`
		Value string `json:"value"`
	}{user, name, value}})
}

// ListSettings implements [store.Settings].
func (d *DB) ListSettings(ctx context.Context, user string) (map[string]string, error) {
	set := map[string]string{}
	err := d.view(ctx, "reading settings", func(t *tx) error {
		prefix := key(user, "")
		return t.each("settings", prefix, func(k, v []byte) error {
			set[string(k[len(prefix):])] = string(v)
			return nil
		})
	})
	return set, err
}
