package daemon

import "time"

// ahead is by how much the previous active node's clock may be ahead.
const ahead = time.Minute

// notBehind returns a clock: the local time, or that of the newest record if that is a
// little later. After a takeover, new records must not precede the stored ones, and work
// that was done when it was due must not become due again. If a record is far ahead, some
// node's clock was wrong, and only expiry follows the record.
func notBehind(here, record func() time.Time) func() time.Time {
	return func() time.Time {
		newest, now := record(), here()
		if by := newest.Sub(now); by > 0 && by <= ahead {
			return newest.In(now.Location())
		}
		return now
	}
}
