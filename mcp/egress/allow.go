package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Allow holds the non-public addresses that an admin opens: hosts by name, whatever they
// resolve to, and networks, with all ports. The zero value opens nothing.
type Allow struct {
	hosts    map[string]bool
	networks []netip.Prefix
}

// ParseAllow parses a comma-separated list of hosts, addresses and networks; "" means none.
func ParseAllow(text string) (Allow, error) {
	var a Allow
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if ip, err := netip.ParseAddr(item); err == nil && ip.Zone() == "" {
			a.networks = append(a.networks, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		if p, err := netip.ParsePrefix(item); err == nil && p.Masked() == p && !p.Addr().Is4In6() {
			a.networks = append(a.networks, p)
			continue
		}
		if strings.Contains(item, "/") || checkHost(item) != nil {
			return Allow{}, fmt.Errorf("%q is not a host, an address or a network: write tools.example.com, 10.0.0.7 or 10.0.0.0/8", item)
		}
		if a.hosts == nil {
			a.hosts = map[string]bool{}
		}
		a.hosts[strings.ToLower(item)] = true
	}
	return a, nil
}

// Host reports whether a name is allowed, whatever it resolves to.
func (a Allow) Host(name string) bool { return a.hosts[strings.ToLower(name)] }

// Addr reports whether an address is in an allowed network.
func (a Allow) Addr(ip netip.Addr) bool {
	for _, p := range a.networks {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
