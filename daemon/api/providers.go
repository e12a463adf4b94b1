package api

import "nize/store"

// ListProviders lists the providers, without their keys.
var ListProviders = Op[Empty, List[store.Provider]]{"GET", "/v1/providers", true, "list providers"}

// AddProvider adds a provider, or replaces the key and address of an existing one.
var AddProvider = Op[AddProviderRequest, AddedProvider]{"POST", "/v1/providers", true, "add a provider, or give it a new key"}

// AddProviderRequest is a provider with its key.
type AddProviderRequest struct {
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"` // "" is Name if that is a kind, else the kind that BaseURL belongs to
	BaseURL string `json:"base_url,omitempty"`
	Key     Secret `json:"key"` // "" for providers that need none
	// Try tests the service first and stores nothing if the test fails.
	Try bool `json:"try,omitempty"`
}

// AddedProvider is a provider as stored, and the service's response.
type AddedProvider struct {
	store.Provider
	Found *ProviderTest `json:"found,omitempty"`
}

// ProviderRequest names a provider.
type ProviderRequest struct {
	Name string `path:"name" json:"-"`
}

// RemoveProvider removes a provider and its key.
var RemoveProvider = Op[ProviderRequest, Empty]{"DELETE", "/v1/providers/{name}", true, "remove a provider"}

// EnableProvider enables a provider.
var EnableProvider = Op[ProviderRequest, store.Provider]{"POST", "/v1/providers/{name}/enable", true, "enable a provider"}

// DisableProvider disables a provider.
var DisableProvider = Op[ProviderRequest, store.Provider]{"POST", "/v1/providers/{name}/disable", true, "disable a provider"}

// TestProvider tests a provider's key.
var TestProvider = Op[ProviderRequest, ProviderTest]{"POST", "/v1/providers/{name}/test", true, "test a provider's key"}

// ProviderTest is the result of testing a provider's key.
type ProviderTest struct {
	OK     bool     `json:"ok"`
	TookMS float64  `json:"took_ms"`
	Models []string `json:"models,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hint   string   `json:"hint,omitempty"`
}
