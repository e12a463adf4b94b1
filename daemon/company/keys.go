package company

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// key has the fields of a provider's key that nize checks; go-oidc decodes the key itself.
type key struct {
	Type string `json:"kty"`
	Use  string `json:"use"`
}

// fetchKeys returns the keys that a provider publishes.
func fetchKeys(ctx context.Context, client *http.Client, address string) ([]key, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading the provider's keys: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading the provider's keys: it answered %s", res.Status)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the provider's keys: %w", err)
	}
	var set struct {
		Keys []key `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("reading the provider's keys: they are not a JSON Web Key Set")
	}
	return set.Keys, nil
}
