package api

import "nize/store"

// ListUnmetRequests ranks what was asked for and no tool could do, within 30
// days.
var ListUnmetRequests = Op[Empty, List[store.UnmetRequest]]{"GET", "/v1/tools/wanted", true, "rank what no tool could do"}

// ForgetUnmetRequests forgets what a text would count for, or all.
var ForgetUnmetRequests = Op[ForgetUnmetRequestsRequest, Forgotten]{"DELETE", "/v1/tools/wanted", true, "forget what no tool could do"}

// ForgetUnmetRequestsRequest says which: by text, or all.
type ForgetUnmetRequestsRequest struct {
	Text string `query:"text" json:"-"`
	All  bool   `query:"all" json:"-"`
}

// Forgotten counts what was forgotten.
type Forgotten struct {
	Forgotten int `json:"forgotten"`
}
