package api

import (
	"context"
	"net/url"

	"nize/store"
)

// AddProvider adds a provider, or replaces its key and address if it is there.
type AddProvider struct {
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"` // "" is Name where that is a kind
	BaseURL string `json:"base_url,omitempty"`
	Key     Secret `json:"key"` // "" for providers that need none
}

// ProviderTest is what a try of a provider's key gave.
type ProviderTest struct {
	OK     bool     `json:"ok"`
	TookMS float64  `json:"took_ms"`
	Models []string `json:"models,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hint   string   `json:"hint,omitempty"`
}

// ModelView is a model name in a list.
type ModelView struct {
	store.ModelName
	Available bool   `json:"available"`     // its provider is enabled and has a key
	Why       string `json:"why,omitempty"` // why not
	Images    bool   `json:"images"`        // Target takes images: models.images
	// Price is that of Target, as far as it is known.
	Price PriceView `json:"price"`
}

// SetModel maps a model name.
type SetModel struct {
	Target string    `json:"target"`        // provider/model
	Who    *[]string `json:"who,omitempty"` // may use it: all, admins, group:G, user:U; nil leaves it
}

// SetFallbacks replaces a model name's fallbacks, in order.
type SetFallbacks struct {
	Fallbacks []string `json:"fallbacks"` // provider/model
}

// Providers lists the providers, without their keys.
func (c *Client) Providers(ctx context.Context) ([]store.Provider, error) {
	return list[store.Provider](ctx, c, request{method: "GET", path: "/v1/providers"})
}

// AddProvider adds a provider.
func (c *Client) AddProvider(ctx context.Context, p AddProvider) (store.Provider, error) {
	return do[store.Provider](ctx, c, request{method: "POST", path: "/v1/providers", body: p})
}

// RemoveProvider removes a provider and its key.
func (c *Client) RemoveProvider(ctx context.Context, name string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/providers/" + url.PathEscape(name)})
}

// TestProvider tries a provider's key.
func (c *Client) TestProvider(ctx context.Context, name string) (ProviderTest, error) {
	return do[ProviderTest](ctx, c, request{method: "POST", path: "/v1/providers/" + url.PathEscape(name) + "/test"})
}

// EnableProvider switches a provider on or off.
func (c *Client) EnableProvider(ctx context.Context, name string, on bool) (store.Provider, error) {
	verb := "/enable"
	if !on {
		verb = "/disable"
	}
	return do[store.Provider](ctx, c, request{method: "POST", path: "/v1/providers/" + url.PathEscape(name) + verb})
}

// Models lists the model names.
func (c *Client) Models(ctx context.Context) ([]ModelView, error) {
	return list[ModelView](ctx, c, request{method: "GET", path: "/v1/models"})
}

// SetModel maps a model name to provider/model and keeps its fallbacks. The
// first name is the default.
func (c *Client) SetModel(ctx context.Context, logical string, s SetModel) (store.ModelName, error) {
	return do[store.ModelName](ctx, c, request{method: "PUT", path: "/v1/models/" + url.PathEscape(logical), body: s})
}

// DefaultModel makes a model name the default.
func (c *Client) DefaultModel(ctx context.Context, logical string) (store.ModelName, error) {
	return do[store.ModelName](ctx, c, request{method: "POST", path: "/v1/models/" + url.PathEscape(logical) + "/default"})
}

// SetFallbacks replaces a model name's fallbacks.
func (c *Client) SetFallbacks(ctx context.Context, logical string, f SetFallbacks) (store.ModelName, error) {
	return do[store.ModelName](ctx, c, request{method: "PUT", path: "/v1/models/" + url.PathEscape(logical) + "/fallbacks", body: f})
}

// RemoveModel removes a model name.
func (c *Client) RemoveModel(ctx context.Context, logical string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/models/" + url.PathEscape(logical)})
}

// Agents lists the agents.
func (c *Client) Agents(ctx context.Context) ([]store.Agent, error) {
	return list[store.Agent](ctx, c, request{method: "GET", path: "/v1/agents"})
}

// PutAgent makes an agent or replaces it whole.
func (c *Client) PutAgent(ctx context.Context, a store.Agent) (store.Agent, error) {
	return do[store.Agent](ctx, c, request{method: "PUT", path: "/v1/agents/" + url.PathEscape(a.ID), body: a})
}

// RemoveAgent removes an agent.
func (c *Client) RemoveAgent(ctx context.Context, id string) error {
	return exec(ctx, c, request{method: "DELETE", path: "/v1/agents/" + url.PathEscape(id)})
}
