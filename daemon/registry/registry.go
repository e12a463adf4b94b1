// Package registry asks an MCP registry what servers there are: the official
// one, or another that speaks its API (v0.1).
//
// What it answers is written by whoever published a server. It is bounded in
// size and handed on as data: nothing is run, stored or followed here, and a
// redirect is not either.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/store"
)

const (
	// Off is the address that asks nobody.
	Off = "off"

	patience  = 15 * time.Second
	maxAnswer = 4 << 20
	maxText   = 2000 // of a description and the like
	maxList   = 100  // packages, arguments, variables of one server
	maxLimit  = 100
)

// Registry is the one at an address.
type Registry struct {
	Address   func() string // registry.url as it is now
	Transport http.RoundTripper
}

// CheckAddress says why an address will not do: what comes over clear text
// anybody between could have written.
func CheckAddress(text string) error {
	if text == Off {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("want an https address, http on this machine, or off")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// entry is one server as the API wraps it.
type entry struct {
	Server api.RegistryServer `json:"server"`
	Meta   struct {
		Official struct {
			Status   string `json:"status"`
			IsLatest *bool  `json:"isLatest"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

func (e entry) server() api.RegistryServer {
	s := e.Server
	s.Status = e.Meta.Official.Status
	bound(&s)
	return s
}

// Search finds servers by a part of their name.
func (r *Registry) Search(ctx context.Context, _ store.Caller, req api.SearchRegistryRequest) (api.RegistryPage, error) {
	if req.Limit < 0 || req.Limit > maxLimit {
		return api.RegistryPage{}, fmt.Errorf("%w limit %d: use 1 to %d", store.ErrInvalid, req.Limit, maxLimit)
	}
	if req.Limit == 0 {
		req.Limit = 30
	}
	query := url.Values{"version": {"latest"}, "limit": {strconv.Itoa(req.Limit)}}
	for key, value := range map[string]string{"search": req.Search, "cursor": req.Cursor} {
		if value != "" {
			query.Set(key, value)
		}
	}
	var answer struct {
		Servers  []entry `json:"servers"`
		Metadata struct {
			Next string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := r.get(ctx, "/v0.1/servers", query, &answer); err != nil {
		return api.RegistryPage{}, err
	}
	page := api.RegistryPage{Servers: []api.RegistryServer{}, Next: store.Clip(answer.Metadata.Next, maxText)}
	for _, e := range answer.Servers {
		old := e.Meta.Official.IsLatest != nil && !*e.Meta.Official.IsLatest
		if !old && e.Meta.Official.Status != "deleted" && len(page.Servers) < req.Limit {
			page.Servers = append(page.Servers, e.server())
		}
	}
	return page, nil
}

// Get shows one server.
func (r *Registry) Get(ctx context.Context, _ store.Caller, req api.RegistryServerRequest) (api.RegistryServer, error) {
	version := req.Version
	if version == "" {
		version = "latest"
	}
	var e entry
	err := r.get(ctx, "/v0.1/servers/"+segment(req.Name)+"/versions/"+segment(version), nil, &e)
	if errors.Is(err, store.ErrNotFound) {
		return api.RegistryServer{}, fmt.Errorf("server %q %w in the registry at %s: nizectl servers search WORD", store.Clip(req.Name, 200), store.ErrNotFound, r.Address())
	}
	if err != nil {
		return api.RegistryServer{}, err
	}
	s := e.server()
	if s.Name != req.Name || s.Status == "deleted" {
		return api.RegistryServer{}, fmt.Errorf("server %q %w in the registry at %s", store.Clip(req.Name, 200), store.ErrNotFound, r.Address())
	}
	return s, nil
}

// segment is one name in a path; a version may hold a plus, which some take for
// a space.
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), "+", "%2B") }

// get asks, and decodes a JSON answer.
func (r *Registry) get(ctx context.Context, path string, query url.Values, into any) error {
	address := r.Address()
	if address == Off {
		return store.Mark(fmt.Errorf("no registry is asked, since registry.url is off"), store.ErrRefused)
	}
	if err := CheckAddress(address); err != nil {
		return fmt.Errorf("%w registry.url: %w", store.ErrInvalid, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", store.SpanText(patience)))
	defer cancel()
	target := strings.TrimRight(address, "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("%w registry.url: %w", store.ErrInvalid, err)
	}
	req.Header.Set("Accept", "application/json")
	client := http.Client{Transport: r.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return unavailable(address, store.NetworkError(err).Error())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return store.ErrNotFound
	case resp.StatusCode != http.StatusOK:
		return unavailable(address, "it answered HTTP "+strconv.Itoa(resp.StatusCode))
	case err != nil:
		return unavailable(address, err.Error())
	case len(body) > maxAnswer:
		return unavailable(address, fmt.Sprintf("its answer is over %d MiB", maxAnswer>>20))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return unavailable(address, "its answer is not that of a registry: "+store.Clip(err.Error(), 200))
	}
	return nil
}

func unavailable(address, why string) error {
	return &api.Error{Code: "unavailable", Message: fmt.Sprintf("the MCP registry at %s can't be asked: %s; servers add with a command or --url needs none", address, why)}
}

// bound cuts what is too long or too much: a description to a readable length,
// lists to a size that somebody could answer.
func bound(s *api.RegistryServer) {
	for _, t := range []*string{&s.Name, &s.Title, &s.Description, &s.Version, &s.Status, &s.WebsiteURL} {
		*t = store.Clip(*t, maxText)
	}
	s.Packages, s.Remotes = firstOf(s.Packages), firstOf(s.Remotes)
	for i := range s.Packages {
		p := &s.Packages[i]
		p.RuntimeArguments, p.PackageArguments, p.Environment = firstOf(p.RuntimeArguments), firstOf(p.PackageArguments), firstOf(p.Environment)
	}
	for i := range s.Remotes {
		s.Remotes[i].Headers = firstOf(s.Remotes[i].Headers)
	}
}

func firstOf[T any](list []T) []T { return list[:min(len(list), maxList)] }
