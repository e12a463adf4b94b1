package api

import "nize/store"

// ListSettings lists every key.
var ListSettings = Op[ListSettingsRequest, List[Setting]]{"GET", "/v1/config", false, "list settings"}

// ListSettingsRequest names a person; "" is the system. If there is no Reason, which is
// recorded in the audit trail, long texts of another person are withheld.
type ListSettingsRequest struct {
	User   string `query:"user" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// Setting is a key and its effective value.
type Setting struct {
	store.Key
	CategoryLabel store.Text `json:"category_label"`
	Display       string     `json:"display" enum:"toggle,number,text,longText,select" doc:"the suitable form control"`
	Scope         string     `json:"scope" enum:"user,system" doc:"user if people can have values of their own"`
	Min           string     `json:"min,omitempty"`
	Max           string     `json:"max,omitempty"`
	Value         string     `json:"value"`
	Source        string     `json:"source" enum:"default,system,user,file,environment,flag"`
	Where         string     `json:"where,omitempty" doc:"file and line, or the variable's name"`
}

// The settings for a chat client: effective values for the caller, who can set and unset
// only their own.
var (
	ListOwnSettings = Op[Empty, List[OwnSetting]]{"GET", "/api/settings", false, "list the settings and their values for the caller"}
	PutOwnSetting   = Op[PutOwnSettingRequest, OwnSetting]{"PUT", "/api/settings/{key}", false, "set the caller's own value of a setting"}
	UnsetOwnSetting = Op[OwnSettingRequest, OwnSetting]{"DELETE", "/api/settings/{key}", false, "remove the caller's own value of a setting"}
)

// OwnSetting is a setting and its effective value for one person.
type OwnSetting struct {
	Setting
	Own       *string `json:"own_value" doc:"null if they have none"`
	System    string  `json:"system_value" doc:"for people without a value of their own"`
	MayChange bool    `json:"may_change" doc:"whether they may have a value of their own"`
	Bounded   bool    `json:"bounded" doc:"whether the system's value limits their own"`
}

// PutOwnSettingRequest is the caller's own value.
type PutOwnSettingRequest struct {
	Key   string `path:"key" json:"-"`
	Value string `json:"value"`
}

// OwnSettingRequest names a setting.
type OwnSettingRequest struct {
	Key string `path:"key" json:"-"`
}

// ExplainSetting reports where a setting's value comes from.
var ExplainSetting = Op[ExplainSettingRequest, Explanation]{"GET", "/v1/config/{key}", false, "explain where a setting comes from"}

// ExplainSettingRequest names a setting; User "" is the system. Reason is as in
// [ListSettingsRequest].
type ExplainSettingRequest struct {
	Key    string `path:"key" json:"-"`
	User   string `query:"user" json:"-"`
	Reason string `query:"reason" json:"-"`
}

// Explanation lists every layer's value of a setting, in order of precedence.
type Explanation struct {
	Setting
	Layers []Layer `json:"layers"`
	Change string  `json:"change"` // how to change it, as a command if there is one
}

// Layer is one source of a setting's value.
type Layer struct {
	Name    string `json:"layer"` // flag, environment, file, system, default or user
	Set     bool   `json:"set"`
	Value   string `json:"value,omitempty"`
	Where   string `json:"where,omitempty"` // the flag, the variable, file and line, or a command
	Decides bool   `json:"decides,omitempty"`
	Note    string `json:"note,omitempty"`
}

// PutSetting sets one key. It returns ErrConflict if a file, variable or flag sets that
// key.
var PutSetting = Op[PutSettingRequest, Setting]{"PUT", "/v1/config/{key}", false, "set a setting"}

// PutSettingRequest is a value; User "" is the system's.
type PutSettingRequest struct {
	Key   string `path:"key" json:"-"`
	Value string `json:"value"`
	User  string `json:"user,omitempty"`
}

// UnsetSetting removes a stored value and returns the setting then in force.
var UnsetSetting = Op[UnsetSettingRequest, Setting]{"DELETE", "/v1/config/{key}", false, "unset a setting"}

// UnsetSettingRequest names a value; User "" is the system's.
type UnsetSettingRequest struct {
	Key  string `path:"key" json:"-"`
	User string `query:"user" json:"-"`
}
