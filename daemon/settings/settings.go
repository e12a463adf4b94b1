// Package settings defines what a setting is and where its value comes from, and the
// operations on settings.
//
// A value comes from the first of: a flag of nized, an environment variable, nized.toml
// ([Layers], all three outside the database), a stored value of an admin, the default; then
// the person's own if the key allows one ([Config]). If a value outside the database is
// invalid, the start or the reload fails.
package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/daemon/people"
	"nize/llm"
	"nize/store"
)

// Settings implements the operations on settings.
type Settings struct {
	Config    *Config
	Directory *people.Directory
	Defaults  *Defaults
	// CheckTarget returns an error for a PROVIDER/MODEL that does not exist, CheckExamples
	// for a model that cannot write example requests.
	CheckTarget, CheckExamples func(ctx context.Context, model string) error
	// CheckRequired returns an error if an identity provider is required but none is set.
	CheckRequired func(ctx context.Context) error
	Trail         people.Trail
	// Changed is called with each key that was stored.
	Changed func(key string)
}

// Mount registers the operations.
func (s *Settings) Mount(m *mux.Mux) {
	mux.Handle(m, api.ListSettings, s.List)
	mux.Handle(m, api.UnsetSetting, s.Unset)
	mux.Handle(m, api.ExplainSetting, s.Explain)
	mux.Handle(m, api.PutSetting, s.Put)
}

// List returns every key with its effective value, by category.
func (s *Settings) List(ctx context.Context, by store.Caller, req api.ListSettingsRequest) (none api.List[api.Setting], err error) {
	user, err := s.user(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	if user != "" && user != by.User && req.Reason != "" {
		if err := people.NoteReading(ctx, s.Trail, by, "setting.read", user, req.Reason); err != nil {
			return none, err
		}
	}
	if err := s.Config.readable(ctx, user); err != nil {
		return none, err
	}
	var views []api.Setting
	for _, k := range byCategory(s.Config.layers.keys.list) {
		v := forCaller(by, s.Config.view(user, k))
		if v.Source == fromUser && withheld(by, user, k, req.Reason) {
			v.Value = withheldText
		}
		views = append(views, v)
	}
	return api.Items(views), nil
}

// withheldText replaces another person's long text.
const withheldText = "(theirs: give a reason to read it)"

// withheld reports whether a person's own value is hidden from the caller: a long text is
// something the person wrote, so an admin must give a reason to read it.
func withheld(by store.Caller, user string, k store.Key, reason string) bool {
	return user != "" && user != by.User && reason == "" && k.Display() == "longText"
}

// byCategory returns keys in the order in which they are displayed.
func byCategory(keys []store.Key) []store.Key {
	return slices.SortedStableFunc(slices.Values(keys), func(a, b store.Key) int { return cmp.Compare(categoryOf(a), categoryOf(b)) })
}

// user returns the user whose settings are meant; "" is the system.
func (s *Settings) user(ctx context.Context, by store.Caller, who string) (string, error) {
	if who == "" {
		return "", nil
	}
	return s.Directory.Owner(ctx, by, who)
}

// forCaller hides a value that members may not see: a webhook's URL can be as sensitive as
// a password.
func forCaller(by store.Caller, s api.Setting) api.Setting {
	if s.Private && !by.IsAdmin() && s.Value != "" {
		s.Value, s.Where = "(for admins)", ""
	}
	return s
}

// Explain returns every layer's value of a setting, which one is in force, and how to
// change it.
func (s *Settings) Explain(ctx context.Context, by store.Caller, req api.ExplainSettingRequest) (none api.Explanation, err error) {
	k, err := s.Config.layers.keys.find(req.Key)
	if err != nil {
		return none, err
	}
	user, err := s.user(ctx, by, req.User)
	if err != nil {
		return none, err
	}
	if user != "" && !k.User {
		return none, notPersonal(k)
	}
	if k.Private && !by.IsAdmin() {
		return none, store.Mark(fmt.Errorf("%s is for admins", k.Name), store.ErrRefused)
	}
	if user != "" && user != by.User && req.Reason != "" {
		if err := people.NoteReading(ctx, s.Trail, by, "setting.read", user, req.Reason); err != nil {
			return none, err
		}
	}
	if err := s.Config.readable(ctx, user); err != nil {
		return none, err
	}
	out := s.Config.explain(req.User, user, k)
	if withheld(by, user, k, req.Reason) {
		if out.Source == fromUser {
			out.Value = withheldText
		}
		for i := range out.Layers {
			if out.Layers[i].Name == fromUser && out.Layers[i].Set {
				out.Layers[i].Value = withheldText
			}
		}
	}
	return out, nil
}

// Put stores a value.
func (s *Settings) Put(ctx context.Context, by store.Caller, req api.PutSettingRequest) (api.Setting, error) {
	if req.Value == "" {
		return api.Setting{}, fmt.Errorf("%w value: it is empty; use nizectl config unset %s", store.ErrInvalid, req.Key)
	}
	return s.change(ctx, by, req.User, req.Key, req.Value)
}

// Unset removes a stored value.
func (s *Settings) Unset(ctx context.Context, by store.Caller, req api.UnsetSettingRequest) (api.Setting, error) {
	return s.change(ctx, by, req.User, req.Key, "")
}

func (s *Settings) change(ctx context.Context, by store.Caller, who, key, value string) (none api.Setting, err error) {
	user, err := s.user(ctx, by, who)
	switch {
	case err != nil:
	case user != "":
		err = s.Defaults.Check(ctx, user, key, value)
	default:
		value, err = s.checkSystem(ctx, by, key, value)
	}
	if err != nil {
		return none, err
	}
	set, err := s.Config.Put(ctx, by, user, key, value)
	if err != nil {
		return none, err
	}
	s.Changed(key)
	return set, nil
}

// checkSystem validates a system value against existing records, and returns it with the
// names of people replaced by their ids.
func (s *Settings) checkSystem(ctx context.Context, by store.Caller, key, value string) (string, error) {
	switch {
	case key == "models.images":
		return value, llm.CheckImages(value)
	case value == "":
	case key == "oidc.required" && value == "true":
		return value, s.CheckRequired(ctx)
	case key == "approvals.approvers" && by.IsAdmin():
		p, err := s.Directory.Approvers(ctx, store.Policy(value))
		return string(p), err
	case key == "bots.access" && by.IsAdmin():
		return s.Directory.Access(ctx, value)
	case key == "embed.model":
		return value, s.CheckTarget(ctx, value)
	case key == "index.examples":
		return value, s.CheckExamples(ctx, value)
	}
	return value, nil
}
