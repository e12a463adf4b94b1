// Package registry queries an MCP registry: the official one, or another with the same API
// (v0.1).
//
// Its responses are written by the publishers of servers. They are bounded in size and
// passed on as data: nothing is run or stored here, and no link or redirect is followed.
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
	"nize/daemon/mux"
	"nize/store"
)

const (
	// Off is the value that disables lookups.
	Off = "off"

	patience  = 15 * time.Second
	maxAnswer = 4 << 20
	maxText   = 2000 // of a description and similar texts
	maxList   = 100  // packages, arguments or variables of one server
	maxLimit  = 100
)

// Registry queries the registry at an address.
type Registry struct {
	Address   func() string // the current registry.url
	Transport http.RoundTripper
}

// Mount registers the operations.
func (r *Registry) Mount(m *mux.Mux) {
	mux.Handle(m, api.SearchRegistry, r.Search)
	mux.Handle(m, api.GetRegistryServer, r.Get)
}

// CheckAddress returns an error for an unacceptable address: over plain HTTP, anyone on the
// path could change the responses.
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

// entry is one server in the API's wrapper.
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

// Search returns the servers whose names contain a text.
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

// Get returns one server.
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

// segment escapes a name for a path. It also escapes a plus, which a version may contain
// and some servers decode as a space.
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), "+", "%2B") }

// get sends a request and decodes the JSON response.
func (r *Registry) get(ctx context.Context, path string, query url.Values, into any) error {
	address := r.Address()
	if address == Off {
		return store.Mark(fmt.Errorf("registry lookups are disabled (registry.url is off)"), store.ErrRefused)
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

// bound truncates texts to a readable length and lists to a reasonable size.
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
