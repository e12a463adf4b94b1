package api

import "nize/store"

// ListModels lists the model names.
var ListModels = Op[Empty, List[ModelView]]{"GET", "/v1/models", false, "list model names"}

// ModelView is a model name in a list.
type ModelView struct {
	store.ModelName
	Available bool       `json:"available"`    // its provider is enabled and has a key
	Why       store.Text `json:"why,omitzero"` // reason if it is not available
	Images    bool       `json:"images"`       // Target accepts images: models.images
	// EffectiveWindow is the context window of Target in tokens: the configured one, else
	// that of the built-in table; 0 if unknown.
	EffectiveWindow int `json:"effective_window,omitempty"`
	// Price is that of Target, if it is known.
	Price PriceView `json:"price"`
}

// ModelRequest names a model name.
type ModelRequest struct {
	Name string `path:"logical" json:"-"`
}

// SetModel maps a model name to provider/model and keeps its fallbacks. The first name
// becomes the default.
var SetModel = Op[SetModelRequest, MappedModel]{"PUT", "/v1/models/{logical}", true, "map a model name"}

// SetModelRequest is the target of a model name.
type SetModelRequest struct {
	Name   string    `path:"logical" json:"-"`
	Target string    `json:"target"`           // provider/model
	Who    *[]string `json:"who,omitempty"`    // who may use it: all, admins, group:G, user:U; nil leaves it
	Window *int      `json:"window,omitempty"` // context window of the target in tokens; 0 is the table's, nil leaves it
	Force  bool      `json:"force,omitempty"`  // even if the provider does not list the model
}

// MappedModel is a model name as stored.
type MappedModel struct {
	store.ModelName
	// Unchecked is the reason why nize couldn't check whether the provider has the model.
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
	Force     bool     `json:"force,omitempty"` // even if a provider does not list the model
}

// RemoveModel removes a model name.
var RemoveModel = Op[ModelRequest, Empty]{"DELETE", "/v1/models/{logical}", true, "remove a model name"}

// GetPrice returns the price of provider/model.
var GetPrice = Op[PriceRequest, PriceView]{"GET", "/v1/prices/{model}", true, "show the price of a model"}

// PriceRequest names provider/model.
type PriceRequest struct {
	Model string `path:"model" json:"-"`
}

// PriceView is a model's price and its source.
type PriceView struct {
	store.Price
	Known  bool   `json:"known"`            // if false, In, Cached and Out are meaningless
	Source string `json:"source,omitempty"` // admin, table, provider (responses contain the cost), local (free)
	AsOf   string `json:"as_of,omitempty"`  // of the table
	// Above is the price of calls whose prompt exceeds a number of tokens.
	Above *PriceAbove `json:"above,omitempty"`
}

// PriceAbove is a second price, for long prompts.
type PriceAbove struct {
	Tokens int64   `json:"tokens"`
	In     float64 `json:"in"`
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// SetPrice sets the price of provider/model.
var SetPrice = Op[SetPriceRequest, PriceView]{"PUT", "/v1/prices/{model}", true, "set the price of a model"}

// UnsetPrice removes a price that was set and returns the one then in force.
var UnsetPrice = Op[PriceRequest, PriceView]{"DELETE", "/v1/prices/{model}", true, "remove a price that was set"}

// SetPriceRequest is a price, in US dollars per million tokens.
type SetPriceRequest struct {
	Model  string   `path:"model" json:"-"`
	In     float64  `json:"in"`
	Out    float64  `json:"out"`
	Cached *float64 `json:"cached,omitempty"` // nil means In
}
