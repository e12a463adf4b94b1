package api

import "nize/store"

// ListSettings lists every key.
var ListSettings = Op[ListSettingsRequest, List[Setting]]{"GET", "/v1/config", false, "list settings"}

// ListSettingsRequest says whose; "" is the system's view.
type ListSettingsRequest struct {
	User string `query:"user" json:"-"`
}

// Setting is a key with the value in force.
type Setting struct {
	store.Key
	Value  string `json:"value"`
	Source string `json:"source"`          // default, system, user, file, environment or flag
	Where  string `json:"where,omitempty"` // file and line, or the variable's name
}

// ExplainSetting tells where a setting comes from.
var ExplainSetting = Op[ExplainSettingRequest, Explanation]{"GET", "/v1/config/{key}", false, "explain where a setting comes from"}

// ExplainSettingRequest names a setting; User "" is the system's view.
type ExplainSettingRequest struct {
	Key  string `path:"key" json:"-"`
	User string `query:"user" json:"-"`
}

// Explanation is why a setting is what it is: every layer's value in the order
// in which they are asked.
type Explanation struct {
	Setting
	Layers []Layer `json:"layers"`
	Change string  `json:"change"` // how to change it, as a command where there is one
}

// Layer is one place where a setting can be set.
type Layer struct {
	Name    string `json:"layer"` // flag, environment, file, system, default or user
	Set     bool   `json:"set"`
	Value   string `json:"value,omitempty"`
	Where   string `json:"where,omitempty"` // the flag's or variable's name, file and line, a command
	Decides bool   `json:"decides,omitempty"`
	Note    string `json:"note,omitempty"`
}

// PutSetting sets one key. A key that a file, variable or flag sets is
// ErrConflict.
var PutSetting = Op[PutSettingRequest, Setting]{"PUT", "/v1/config/{key}", false, "set a setting"}

// PutSettingRequest is a value; User "" is the system's.
type PutSettingRequest struct {
	Key   string `path:"key" json:"-"`
	Value string `json:"value"`
	User  string `json:"user,omitempty"`
}

// UnsetSetting removes a stored value and returns what is in force then.
var UnsetSetting = Op[UnsetSettingRequest, Setting]{"DELETE", "/v1/config/{key}", false, "unset a setting"}

// UnsetSettingRequest names a value; User "" is the system's.
type UnsetSettingRequest struct {
	Key  string `path:"key" json:"-"`
	User string `query:"user" json:"-"`
}
