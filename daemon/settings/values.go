package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"nize/daemon/registry"
	"nize/daemon/trace"
	"nize/mcp/egress"
	"nize/store"
	"nize/store/webhook"
)

// NoSchedule disables a schedule.
const NoSchedule = "off"

// IsChannel reports whether a text, NAME:CHANNEL, names a channel of a chat platform; nil
// means there is no platform.
type IsChannel func(text string) bool

// checkValue returns a value in normal form, or an error. It checks the value's type, and
// conditions that only the daemon can check.
func checkValue(k store.Key, value string, channel IsChannel) (string, error) {
	value, err := k.Check(value)
	if err != nil {
		return "", err
	}
	switch k.Name {
	case "index.schedule":
		_, err = ParseSchedule(value)
	case "alerts.to":
		if value != "" && (channel == nil || !channel(value)) {
			err = webhook.CheckURL(value)
		}
	case "discord.access":
		if role, ok := strings.CutPrefix(value, "role:"); value != "admins" && value != "everyone" && (!ok || role == "" || strings.Trim(role, "0123456789") != "") {
			err = errors.New("use admins, everyone or role:ID, with the id of a role; nizectl bots access discord --role NAME finds it")
		}
	case "audit.schedule", "backup.schedule":
		err = checkOptionalSchedule(value)
	case "egress.allow":
		_, err = egress.ParseAllow(value)
	case "listen":
		_, _, err = net.SplitHostPort(value)
	case "registry.url":
		err = registry.CheckAddress(value)
	case "otel.endpoint":
		if value != "" {
			err = trace.CheckEndpoint(value)
		}
	case "advertise":
		value, err = parseAdvertised(value)
	case "public_url":
		_, err = ParsePublicURL(value)
	case "http.trusted_proxies":
		_, err = ParseProxies(value)
	case "http.widgets_origin":
		_, err = ParseWidgetsOrigin(value)
	}
	if err != nil {
		return "", fmt.Errorf("%w value %q for %s: %w", store.ErrInvalid, value, k.Name, err)
	}
	return value, nil
}

// Schedule computes when something is next due.
type Schedule interface {
	Next(after time.Time) time.Time
}

// ParseSchedule parses a cron line.
func ParseSchedule(line string) (Schedule, error) {
	s, err := cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("%w schedule %q: write a cron line such as \"0 */6 * * *\", or @every 6h", store.ErrInvalid, line)
	}
	return s, nil
}

// checkOptionalSchedule returns an error for a text that [NextTime] can't parse.
func checkOptionalSchedule(line string) error {
	if line == NoSchedule {
		return nil
	}
	if _, err := ParseSchedule(line); err != nil {
		return fmt.Errorf("%w; %s is never", err, NoSchedule)
	}
	return nil
}

// NextTime returns when an optional schedule is next due after that time; the zero time if
// never.
func NextTime(line string, after time.Time) time.Time {
	if line == NoSchedule {
		return time.Time{}
	}
	s, err := ParseSchedule(line)
	if err != nil {
		return time.Time{} // validated when it was set
	}
	return s.Next(after)
}

// ParsePublicURL parses an https origin; "" is none.
func ParsePublicURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("want an https origin such as https://nize.example.com")
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// parseAdvertised parses an origin and returns it in normal form, or unchanged with an
// error; "" is none.
func parseAdvertised(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return text, errors.New("want an origin such as http://10.0.0.5:19560")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// widgetsOrigin matches origins that are also valid in a Content-Security-Policy. Names
// below localhost never leave the machine.
var widgetsOrigin = regexp.MustCompile(`^(?:https://\*(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+|http://\*(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\.localhost)(?::[1-9][0-9]{0,4})?$`)

// ParseWidgetsOrigin parses an origin whose first label is *, and returns it in browsers'
// form; "" is none.
func ParseWidgetsOrigin(text string) (string, error) {
	origin := strings.TrimSuffix(strings.ToLower(text), "/")
	if text != "" && !widgetsOrigin.MatchString(origin) {
		return "", errors.New("want an https origin with * as its first label, such as https://*.apps.example.com, or http below localhost")
	}
	usual := ":443"
	if strings.HasPrefix(origin, "http:") {
		usual = ":80"
	}
	return strings.TrimSuffix(origin, usual), nil
}

// ParseProxies parses comma-separated networks and addresses.
func ParseProxies(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		if ip, err := netip.ParseAddr(item); err == nil {
			list = append(list, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(item)
		if err != nil || p.Masked() != p {
			return nil, fmt.Errorf("%q is not an address or a network: write 10.0.0.7 or 10.0.0.0/8", item)
		}
		list = append(list, p)
	}
	return list, nil
}
