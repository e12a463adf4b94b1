package api

import "nize/store"

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
