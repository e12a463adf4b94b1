package browser

import (
	"context"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/store"
)

// What the places of the page besides conversations ask for: the person's own
// settings, what they used.

var (
	listConfig  = api.Op[api.Empty, api.List[api.OwnSetting]]{Method: "GET", Path: api.ListSettings.Path, Summary: "list the settings of which one may have a value of one's own"}
	putConfig   = api.Op[api.PutOwnSettingRequest, api.OwnSetting]{Method: "PUT", Path: api.PutSetting.Path, Summary: api.PutOwnSetting.Summary}
	unsetConfig = api.Op[api.OwnSettingRequest, api.OwnSetting]{Method: "DELETE", Path: api.UnsetSetting.Path, Summary: api.UnsetOwnSetting.Summary}
)

func (b *Browser) mountPlaces(m *mux.Mux) {
	mux.Handle(m, listConfig, b.listConfig)
	mux.Handle(m, putConfig, b.Settings.PutOwn)
	mux.Handle(m, unsetConfig, b.Settings.UnsetOwn)
	mux.Handle(m, api.GetUsage, b.Usage.Get)
}

// listConfig lists the settings that are a person's own; those of the house are for
// the command line.
func (b *Browser) listConfig(_ context.Context, by store.Caller, _ api.Empty) (api.List[api.OwnSetting], error) {
	return api.Items(b.Settings.Own(by)), nil
}
