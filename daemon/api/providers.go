package api

import "nize/store"

// ListProviders lists the providers, without their keys.
var ListProviders = Op[Empty, List[store.Provider]]{"GET", "/v1/providers", true, "list providers"}

// AddProvider adds a provider, or replaces its key and address if it is there.
var AddProvider = Op[AddProviderRequest, AddedProvider]{"POST", "/v1/providers", true, "add a provider, or give it a new key"}

// AddProviderRequest is a provider with its key.
type AddProviderRequest struct {
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"` // "" is Name where that is a kind, else what BaseURL is of
	BaseURL string `json:"base_url,omitempty"`
	Key     Secret `json:"key"` // "" for providers that need none
	// Try asks the service before anything is stored, and stores nothing where it
	// does not answer well.
	Try bool `json:"try,omitempty"`
}

// AddedProvider is a provider as it is stored, and what the service said.
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

// EnableProvider switches a provider on.
var EnableProvider = Op[ProviderRequest, store.Provider]{"POST", "/v1/providers/{name}/enable", true, "enable a provider"}

// DisableProvider switches a provider off.
var DisableProvider = Op[ProviderRequest, store.Provider]{"POST", "/v1/providers/{name}/disable", true, "disable a provider"}

// TestProvider tries a provider's key.
var TestProvider = Op[ProviderRequest, ProviderTest]{"POST", "/v1/providers/{name}/test", true, "test a provider's key"}

// ProviderTest is what a try of a provider's key gave.
type ProviderTest struct {
	OK     bool     `json:"ok"`
	TookMS float64  `json:"took_ms"`
	Models []string `json:"models,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hint   string   `json:"hint,omitempty"`
}
