package settings

import (
	"context"
	"fmt"

	"nize/daemon/api"
	"nize/store"
)

// Settings for one person, who may be remote: paths of files and sockets are for admins
// only.

// ListOwn returns the settings with their effective values for the caller.
func (s *Settings) ListOwn(ctx context.Context, by store.Caller, _ api.Empty) (none api.List[api.OwnSetting], err error) {
	if err := s.Config.readable(ctx, by.User); err != nil {
		return none, err
	}
	var list []api.OwnSetting
	for _, k := range byCategory(s.Config.layers.keys.list) {
		if k.Category != store.AboutDaemon || by.IsAdmin() {
			list = append(list, s.own(by, k))
		}
	}
	return api.Items(list), nil
}

// PutOwn stores the caller's own value.
func (s *Settings) PutOwn(ctx context.Context, by store.Caller, req api.PutOwnSettingRequest) (none api.OwnSetting, err error) {
	if req.Value == "" {
		return none, fmt.Errorf("%w value: it is empty; DELETE takes your own value back", store.ErrInvalid)
	}
	set, err := s.Put(ctx, by, api.PutSettingRequest{Key: req.Key, Value: req.Value, User: by.User})
	if err != nil {
		return none, err
	}
	return s.own(by, set.Key), nil
}

// UnsetOwn removes the caller's own value.
func (s *Settings) UnsetOwn(ctx context.Context, by store.Caller, req api.OwnSettingRequest) (none api.OwnSetting, err error) {
	set, err := s.Unset(ctx, by, api.UnsetSettingRequest{Key: req.Key, User: by.User})
	if err != nil {
		return none, err
	}
	return s.own(by, set.Key), nil
}

// Own returns the settings for which the caller may have a value of their own.
func (s *Settings) Own(by store.Caller) (list []api.OwnSetting) {
	for _, k := range byCategory(s.Config.layers.keys.list) {
		if k.User {
			list = append(list, s.own(by, k))
		}
	}
	return list
}

func (s *Settings) own(by store.Caller, k store.Key) api.OwnSetting {
	o := api.OwnSetting{Setting: forCaller(by, s.Config.view(by.User, k)), MayChange: k.User}
	o.System = s.Config.systemValue(k).value
	if k.Private && !by.IsAdmin() {
		o.System = o.Value
	}
	if !by.IsAdmin() {
		o.Where = ""
	}
	if own, ok := s.Config.userValues(by.User)[k.Name]; ok && k.User {
		o.Own, o.Bounded = &own, clamp(k, own, s.Config.bound(k)) != own
	}
	return o
}

// CheckOwn returns an error if a value can't be the caller's own; "" removes it, and is
// always valid.
func (s *Settings) CheckOwn(ctx context.Context, by store.Caller, key, value string) error {
	k, err := s.Config.layers.keys.find(key)
	if err != nil || value == "" {
		return err
	}
	if !k.User {
		return notPersonal(k)
	}
	if value, err = checkValue(k, value, s.Config.layers.src.IsChannel); err != nil {
		return err
	}
	if err := s.Config.checkBound(k, by.User, value); err != nil {
		return err
	}
	return s.Defaults.Check(ctx, by.User, key, value)
}
