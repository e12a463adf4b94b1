package store

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a setting's value.
type Kind string

const (
	KindBool      Kind = "boolean"
	KindInt       Kind = "number"
	KindFloat     Kind = "fraction"
	KindDuration  Kind = "duration" // 90s, 15m, 24h, 30d
	KindText      Kind = "text"
	KindEnum      Kind = "choice"
	KindList      Kind = "list"      // comma-separated
	KindApprovers Kind = "approvers" // a [Policy]
	KindAccess    Kind = "access"    // an [Access]
	KindRate      Kind = "rate"      // a [Rate]
	KindZone      Kind = "zone"      // an IANA name, or auto
)

// maxText limits the text value of a setting, in bytes.
const maxText = 64 << 10

// Check returns value in its normal form, or ErrInvalid with the expected form.
func (k Key) Check(value string) (string, error) {
	switch k.Kind {
	case KindBool, KindInt, KindFloat, KindDuration, KindRate:
		return k.checkQuantity(value)
	case KindApprovers, KindAccess:
		return k.checkPeople(value)
	case KindList:
		var items []string
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		return strings.Join(items, ","), nil
	case KindEnum:
		if !slices.Contains(k.Choices, value) {
			return "", k.wants(Textf("one of %s", strings.Join(k.Choices, ", ")), value)
		}
	case KindZone:
		if value == Auto {
			return value, nil
		}
		if _, err := time.LoadLocation(value); err != nil || value == "" || value == "Local" {
			return "", k.wants(Textf("the name of a time zone, such as Europe/Berlin or UTC, or auto"), value)
		}
	case KindText:
		if len(value) > maxText {
			return "", k.wants(Textf("at most 64 KiB of text"), value)
		}
		if u, err := url.Parse(value); k.Address != (Text{}) && value != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
			return "", k.wants(k.Address, value)
		}
	}
	return value, nil
}

func (k Key) wants(what Text, value string) error {
	return Errorf("%w value %q for %s: want %s", ErrInvalid, Clip(value, 80), k.Name, what)
}

// checkQuantity checks booleans, numbers, durations and rates.
func (k Key) checkQuantity(value string) (string, error) {
	switch k.Kind {
	case KindBool:
		switch strings.ToLower(value) {
		case "on", "yes":
			return "true", nil
		case "off", "no":
			return "false", nil
		}
		b, err := strconv.ParseBool(value)
		if err != nil {
			return "", k.wants(Textf("true or false"), value)
		}
		return strconv.FormatBool(b), nil
	case KindInt:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || !k.inRange(float64(n)) {
			return "", k.wants(Textf("a whole number from %.0f to %.0f", k.Min, k.Max), value)
		}
		return strconv.FormatInt(n, 10), nil
	case KindFloat:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f >= k.Min && f <= k.Max) { // NaN fails both comparisons
			return "", k.wants(Textf("a number from %g to %g", k.Min, k.Max), value)
		}
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	case KindRate:
		r, err := ParseRate(value)
		if err != nil {
			return "", k.wants(Textf("a number in a span of time, such as 20/5m, or 0"), value)
		}
		return r.String(), nil
	}
	d, err := ParseSpan(value)
	if err != nil || !k.inRange(d.Seconds()) {
		want := Textf("a duration such as 90s, 15m, 24h or 30d, at least %s", seconds(k.Min))
		if k.Max > 0 {
			want = Textf("%s and at most %s", want, seconds(k.Max))
		}
		return "", k.wants(want, value)
	}
	return value, nil
}

func (k Key) inRange(f float64) bool {
	return (k.Min == 0 && k.Max == 0) || (f >= k.Min && (k.Max == 0 || f <= k.Max))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// checkPeople checks approver and access policies.
func (k Key) checkPeople(value string) (string, error) {
	if k.Kind == KindAccess {
		a, err := ParseAccess(value)
		if err != nil {
			return "", err
		}
		return a.String(), nil
	}
	if strings.TrimSpace(value) == "" {
		return "", nil
	}
	a, err := ParsePolicy(value)
	if err != nil {
		return "", err
	}
	return string(a.Policy()), nil
}
