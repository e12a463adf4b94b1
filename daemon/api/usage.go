package api

import (
	"time"

	"nize/store"
)

// GetUsage sums the cost of model calls (by tool: of tool calls) since a time. Members get
// their own.
var GetUsage = Op[GetUsageRequest, store.UsageReport]{"GET", "/v1/usage", false, "sum the cost of model and tool calls"}

// GetUsageRequest selects what to sum; each field is optional.
type GetUsageRequest struct {
	Since time.Time `query:"since" json:"-"`
	By    string    `query:"by" json:"-"`   // one of [store.UsageGroupings]; "" is day
	User  string    `query:"user" json:"-"` // "" is everyone for admins, else the caller
	Zone  string    `query:"zone" json:"-"` // time zone of the days
	Top   int       `query:"top" json:"-"`  // maximum number of rows; 0 is all
}
