package api

import "nize/store"

// ListModels lists the model names.
var ListModels = Op[Empty, List[ModelView]]{"GET", "/v1/models", false, "list model names"}

// ModelView is a model name in a list.
type ModelView struct {
	store.ModelName
	Available bool       `json:"available"`    // its provider is enabled and has a key
	Why       store.Text `json:"why,omitzero"` // why not
	Images    bool       `json:"images"`       // Target takes images: models.images
	// EffectiveWindow is how many tokens Target takes: what was set, else what the
	// built-in table says; 0 is unknown.
	EffectiveWindow int `json:"effective_window,omitempty"`
	// Price is that of Target, as far as it is known.
	Price PriceView `json:"price"`
}

// ModelRequest names a model name.
type ModelRequest struct {
	Name string `path:"logical" json:"-"`
}

// SetModel maps a model name to provider/model and keeps its fallbacks. The
// first name is the default.
var SetModel = Op[SetModelRequest, MappedModel]{"PUT", "/v1/models/{logical}", true, "map a model name"}

// SetModelRequest is what a model name stands for.
type SetModelRequest struct {
	Name   string    `path:"logical" json:"-"`
	Target string    `json:"target"`           // provider/model
	Who    *[]string `json:"who,omitempty"`    // may use it: all, admins, group:G, user:U; nil leaves it
	Window *int      `json:"window,omitempty"` // tokens that the target takes; 0 is what the table says, nil leaves it
	Force  bool      `json:"force,omitempty"`  // also where the provider does not list the model
}

// MappedModel is a model name as it is stored.
type MappedModel struct {
	store.ModelName
	// Unchecked says why nobody knows whether the provider has such a model.
	Unchecked string `json:"unchecked,omitempty"`
}

// SetDefaultModel makes a model name the default.
var SetDefaultModel = Op[ModelRequest, store.ModelName]{"POST", "/v1/models/{logical}/default", true, "make a model name the default"}

// SetFallbacks replaces a model name's fallbacks.
var SetFallbacks = Op[SetFallbacksRequest, MappedModel]{"PUT", "/v1/models/{logical}/fallbacks", true, "set a model name's fallbacks"}

// SetFallbacksRequest is a model name's fallbacks, in order.
type SetFallbacksRequest struct {
	Name      string   `path:"logical" json:"-"`
	Fallbacks []string `json:"fallbacks"`       // provider/model
	Force     bool     `json:"force,omitempty"` // also where a provider does not list the model
}

// RemoveModel removes a model name.
var RemoveModel = Op[ModelRequest, Empty]{"DELETE", "/v1/models/{logical}", true, "remove a model name"}

// GetPrice shows what provider/model costs.
var GetPrice = Op[PriceRequest, PriceView]{"GET", "/v1/prices/{model}", true, "show what a model costs"}

// PriceRequest names provider/model.
type PriceRequest struct {
	Model string `path:"model" json:"-"`
}

// PriceView is what a model costs and who says so.
type PriceView struct {
	store.Price
	Known  bool   `json:"known"`            // false: nobody knows; In, Cached and Out say nothing
	Source string `json:"source,omitempty"` // admin, table, provider (names the cost in its answers), local (costs nothing)
	AsOf   string `json:"as_of,omitempty"`  // of the table
	// Above is what calls with a prompt of more than so many tokens cost.
	Above *PriceAbove `json:"above,omitempty"`
}

// PriceAbove is a second price, for long prompts.
type PriceAbove struct {
	Tokens int64   `json:"tokens"`
	In     float64 `json:"in"`
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// SetPrice sets what provider/model costs.
var SetPrice = Op[SetPriceRequest, PriceView]{"PUT", "/v1/prices/{model}", true, "set what a model costs"}

// UnsetPrice forgets a price that was set and answers with what holds then.
var UnsetPrice = Op[PriceRequest, PriceView]{"DELETE", "/v1/prices/{model}", true, "forget a model's price that was set"}

// SetPriceRequest is a price, in US dollars per million tokens.
type SetPriceRequest struct {
	Model  string   `path:"model" json:"-"`
	In     float64  `json:"in"`
	Out    float64  `json:"out"`
	Cached *float64 `json:"cached,omitempty"` // nil is In
}
