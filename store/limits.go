package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, encoded as text in JSON ("512MiB").
type Size int64

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// ParseSize parses 512MiB, 2GiB, 64KiB or a plain number of bytes.
func ParseSize(text string) (Size, error) {
	number, unit := text, Size(1)
	for _, u := range sizeUnits {
		if head, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = head, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > 1<<50/int64(unit) {
		return 0, fmt.Errorf("%w size %q: write 512MiB or 2GiB", ErrInvalid, text)
	}
	return Size(n) * unit, nil
}

func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (s *Size) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSize(string(b))
	return err
}

// Rate is a number of calls per interval, encoded as "60/1m" in JSON. The zero Rate is
// unlimited.
type Rate struct {
	Calls int
	Per   Duration
}

// ParseRate parses 60/1m, 10/s or 1000/24h; "" and 0 are unlimited.
func ParseRate(text string) (Rate, error) {
	if text == "" || text == "0" {
		return Rate{}, nil
	}
	calls, per, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(calls)
	if per != "" && strings.Contains("smh", per) {
		per = "1" + per
	}
	d, perErr := ParseSpan(per)
	if !ok || err != nil || perErr != nil || n < 1 || n > MaxRateCalls || d < time.Second {
		return Rate{}, fmt.Errorf("%w rate %q: write calls and interval, such as 60/1m, with at most %d calls in 1s or more", ErrInvalid, text, MaxRateCalls)
	}
	return Rate{Calls: n, Per: Duration(d)}, nil
}

// MaxRateCalls limits how many of a server's calls are kept in memory.
const MaxRateCalls = 10_000

func (r Rate) String() string {
	if r.Calls == 0 {
		return "0"
	}
	return strconv.Itoa(r.Calls) + "/" + SpanText(time.Duration(r.Per))
}

func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
func (r *Rate) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRate(string(b))
	return err
}

// Origin is set if a server is defined by a watched file: a server that disappears from the
// file is removed only if it came from that file.
type Origin struct {
	File     string   `json:"file"`               // an absolute path
	Sealed   []string `json:"sealed,omitempty"`   // names of the credentials whose values were in the file
	Disabled bool     `json:"disabled,omitempty"` // the file's value when it was last applied
}
