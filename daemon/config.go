package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"nize/daemon/api"
	"nize/store"
)

// config answers what a setting is (SPEC 18): environment, stored system
// value, default; then the user's own value where the key allows one. Stored
// values are held decoded, since settings are read on every call.
type config struct {
	stored store.Settings
	env    func(string) string

	mu     sync.RWMutex
	system map[string]string
	users  map[string]map[string]string // by user, as they are asked for
}

var _ store.Config = (*config)(nil)

func newConfig(ctx context.Context, stored store.Settings, env func(string) string) (*config, error) {
	c := &config{stored: stored, env: env}
	for _, k := range store.Keys {
		if v := env(envName(k.Name)); v != "" {
			if _, err := k.Check(v); err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", envName(k.Name), err)
			}
		}
	}
	return c, c.reload(ctx)
}

// envName is NIZE_ and the key: agent.tools.maxSteps is NIZE_AGENT_TOOLS_MAXSTEPS.
func envName(key string) string {
	return "NIZE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// reload forgets what was read.
func (c *config) reload(ctx context.Context) error {
	system, err := c.stored.ListSettings(ctx, "")
	if err != nil {
		return fmt.Errorf("reading settings: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.system, c.users = system, map[string]map[string]string{}
	return nil
}

// Get implements store.Config.
func (c *config) Get(user, key string) string {
	value, _ := c.lookup(user, key)
	return value
}

// lookup returns the value in force and where it comes from.
func (c *config) lookup(user, key string) (value, source string) {
	k, err := store.FindKey(key)
	if err != nil {
		panic(err) // keys are literals of ours
	}
	if user != "" && k.User {
		if v, ok := c.of(user)[key]; ok {
			return v, "user"
		}
	}
	if v := c.env(envName(key)); v != "" {
		if normal, err := k.Check(v); err == nil {
			return normal, "environment"
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if v, ok := c.system[key]; ok {
		return v, "system"
	}
	return k.Default, "default"
}

func (c *config) of(user string) map[string]string {
	c.mu.RLock()
	own, ok := c.users[user]
	c.mu.RUnlock()
	if ok {
		return own
	}
	own, err := c.stored.ListSettings(context.Background(), user)
	if err != nil {
		return nil // the system's value holds
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.users) > 10_000 {
		c.users = map[string]map[string]string{}
	}
	c.users[user] = own
	return own
}

func (c *config) view(user string, k store.Key) api.Setting {
	value, source := c.lookup(user, k.Name)
	s := api.Setting{Key: k, Value: value, Source: source}
	if source == "environment" {
		s.Where = envName(k.Name)
	}
	return s
}

// put checks and stores a value; "" unsets it.
func (c *config) put(ctx context.Context, by store.Caller, user, key, value string) (api.Setting, error) {
	k, err := store.FindKey(key)
	if err != nil {
		return api.Setting{}, err
	}
	if user != "" && !k.User {
		return api.Setting{}, fmt.Errorf("%s is the system's: %w a value for one user", key, store.ErrInvalid)
	}
	if user == "" && !by.IsAdmin() {
		return api.Setting{}, fmt.Errorf("only admins set the system's %s: %w; set your own with --user", key, store.ErrRefused)
	}
	if user != "" && user != by.User && !by.IsAdmin() {
		return api.Setting{}, fmt.Errorf("only admins set other people's settings: %w", store.ErrRefused)
	}
	if user == "" && c.env(envName(key)) != "" {
		return api.Setting{}, fmt.Errorf("%s is set by the environment variable %s: %w; change it there", key, envName(key), store.ErrConflict)
	}
	if value != "" {
		if value, err = k.Check(value); err != nil {
			return api.Setting{}, err
		}
	}
	if err := c.stored.PutSetting(ctx, by, user, key, value); err != nil {
		return api.Setting{}, fmt.Errorf("storing %s: %w", key, err)
	}
	if err := c.reload(ctx); err != nil {
		return api.Setting{}, err
	}
	return c.view(user, k), nil
}
