package connect

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"nize/mcp/egress"
	"nize/mcp/upstream/oauth"
	"nize/store"
)

const (
	askTime     = 15 * time.Second // timeout of one request to a sign-in service
	resolveTime = 3 * time.Second
)

// Networks to which a server in a private network may redirect nize: those of its own kind.
// Link-local ones are in neither list, since clouds serve their credentials there.
var (
	private  = []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}
	loopback = []string{"127.0.0.0/8", "::1/128"}
)

// Client returns a function that returns the client for a server's authorization servers.
// It may reach public addresses and those in egress.allow. If the server itself is in a
// private network, which an admin chose by registering it, it may also reach private
// networks.
func Client(allow func() string) func(context.Context, store.Server) *oauth.Client {
	return func(ctx context.Context, server store.Server) *oauth.Client {
		return &oauth.Client{HTTP: Guarded(ctx, server.URL, allow, egress.Limits{Time: askTime, Bytes: oauth.MaxBody + 1})}
	}
}

// Guarded returns a client for a URL that an admin registered, with the rules of [Client].
// It follows no redirects.
func Guarded(ctx context.Context, address string, allow func() string, limits egress.Limits) *http.Client {
	open := networks(ctx, address)
	t := egress.NewTransport(egress.Options{Allow: func() string { return strings.Join(append(slices.Clone(open), allow()), ",") }})
	client := t.Client(limits)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// networks returns the networks that a URL's own location makes reachable.
func networks(ctx context.Context, address string) (open []string) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil // the server can't be reached either
	}
	within := func(networks []string) bool {
		return slices.ContainsFunc(ips, func(ip netip.Addr) bool {
			return slices.ContainsFunc(networks, func(n string) bool { return netip.MustParsePrefix(n).Contains(ip.Unmap()) })
		})
	}
	switch {
	case within(loopback):
		open = slices.Concat(loopback, private)
	case within(private):
		open = slices.Clone(private)
	}
	return append(open, u.Hostname())
}
