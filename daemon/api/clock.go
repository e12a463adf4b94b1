package api

import "time"

// The operations on the database's clock.
var (
	GetClock    = Op[Empty, Clock]{"GET", "/v1/database/clock", true, "show the clock of the database"}
	RepairClock = Op[Empty, Clock]{"POST", "/v1/database/clock", true, "set the database's stored time back to the current time"}
)

// Clock is the database's stored time, beside the current time. Tokens, sessions and
// approvals expire by the stored time, which never goes back.
type Clock struct {
	Stored  time.Time `json:"stored"`
	Present time.Time `json:"present"` // of the database server, or of this machine
	Machine time.Time `json:"machine"` // clock of nized's machine
	// Ahead is by how many seconds the stored time is ahead, if that exceeds the tolerated
	// difference between clocks.
	Ahead    float64 `json:"ahead"`
	Repaired bool    `json:"repaired"`
}
