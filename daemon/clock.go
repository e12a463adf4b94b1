package daemon

import "time"

// ahead is by how much the clock of the machine that worked before may be.
const ahead = time.Minute

// notBehind is a clock: the time here, or that of the newest record where it is a
// little later. What is stored after a takeover must not come before what was stored
// then, and what was done when it was due is not due again. Where a record is far
// ahead, somebody's clock was wrong, and only what expires goes by the record.
func notBehind(here, record func() time.Time) func() time.Time {
	return func() time.Time {
		newest, now := record(), here()
		if by := newest.Sub(now); by > 0 && by <= ahead {
			return newest.In(now.Location())
		}
		return now
	}
}
