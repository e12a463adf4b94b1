package api

import (
	"time"

	"nize/store"
)

// GetUsage sums what model calls (by tool: tool calls) cost since a time. Members
// get their own.
var GetUsage = Op[GetUsageRequest, store.UsageReport]{"GET", "/v1/usage", false, "what model and tool calls cost"}

// GetUsageRequest says what to sum; each field is optional.
type GetUsageRequest struct {
	Since time.Time `query:"since" json:"-"`
	By    string    `query:"by" json:"-"`   // one of [store.UsageGroupings]; "" is day
	User  string    `query:"user" json:"-"` // "" is everybody for admins, else the caller
	Zone  string    `query:"zone" json:"-"` // in which days begin
	Top   int       `query:"top" json:"-"`  // at most so many rows; 0 is all
}
