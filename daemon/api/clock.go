package api

import "time"

// The operations on the database's clock.
var (
	GetClock    = Op[Empty, Clock]{"GET", "/v1/database/clock", true, "show the clock of the database"}
	RepairClock = Op[Empty, Clock]{"POST", "/v1/database/clock", true, "set the clock of the database back to the present"}
)

// Clock is the time of the database, by which tokens, sessions and approvals expire and
// which never goes back, beside the present.
type Clock struct {
	Stored  time.Time `json:"stored"`
	Present time.Time `json:"present"` // of the server that has the database, or of this machine
	Machine time.Time `json:"machine"` // by the clock of the machine of nized
	// Ahead is by how many seconds the stored time is ahead, if it is more than clocks may
	// differ.
	Ahead    float64 `json:"ahead"`
	Repaired bool    `json:"repaired"`
}
