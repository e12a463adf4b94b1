package daemon

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"nize/daemon/api"
	"nize/llm"
	"nize/store"
)

func sinceOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%w time %q: use RFC 3339", store.ErrInvalid, text)
	}
	return t, nil
}

func (d *Daemon) listSettings(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	user := ""
	if who := r.URL.Query().Get("user"); who != "" {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	keys := allKeys()
	views := make([]api.Setting, len(keys))
	for i, k := range keys {
		views[i] = forMember(by, d.config.view(user, k))
	}
	return items(views), nil
}

func (d *Daemon) putSetting(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	req, err := decode[api.PutSetting](r)
	if err != nil {
		return nil, err
	}
	if req.Value == "" {
		return nil, fmt.Errorf("%w value: it is empty; use nizectl config unset %s", store.ErrInvalid, r.PathValue("key"))
	}
	return d.changeSetting(ctx, by, req.User, r.PathValue("key"), req.Value)
}

func (d *Daemon) unsetSetting(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	return d.changeSetting(ctx, by, r.URL.Query().Get("user"), r.PathValue("key"), "")
}

func (d *Daemon) changeSetting(ctx context.Context, by store.Caller, who, key, value string) (any, error) {
	if key == "approvals.approvers" && value != "" && by.IsAdmin() {
		p, err := d.directory.Approvers(ctx, store.Policy(value))
		if err != nil {
			return nil, err
		}
		value = string(p)
	}
	if key == "bots.access" && value != "" && by.IsAdmin() {
		var err error
		if value, err = d.accessOf(ctx, value); err != nil {
			return nil, err
		}
	}
	if key == "models.images" {
		if err := llm.CheckImages(value); err != nil {
			return nil, err
		}
	}
	user := ""
	if who != "" {
		var err error
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	if key == "embed.model" && value != "" {
		if err := d.checkTarget(ctx, value); err != nil {
			return nil, err
		}
	}
	if key == "index.examples" && value != "" {
		if err := d.checkExamples(ctx, value); err != nil {
			return nil, err
		}
	}
	if user != "" {
		if err := d.checkOwn(ctx, user, key, value); err != nil {
			return nil, err
		}
	}
	s, err := d.config.put(ctx, by, user, key, value)
	if err != nil {
		return nil, err
	}
	d.settingChanged(key)
	return s, nil
}

// forMember hides the value of a setting that members may not see: the address
// of a webhook can be as good as a password.
func forMember(by store.Caller, s api.Setting) api.Setting {
	if s.Private && !by.IsAdmin() && s.Value != "" {
		s.Value, s.Where = "(for admins)", ""
	}
	return s
}
