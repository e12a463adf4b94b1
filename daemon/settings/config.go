package daemon

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"nize/daemon/api"
	"nize/store"
)

// config answers what a setting is: flag, environment, file, stored
// system value, default; then the user's own value where the key allows one.
// Stored values are held decoded, since settings are read on every call.
type config struct {
	stored store.Settings
	layers *Layers

	mu     sync.RWMutex
	system map[string]string
	users  map[string]map[string]string // by user, as they are asked for
}

var (
	_ store.Config     = (*config)(nil)
	_ store.UserConfig = (*config)(nil)
)

func newConfig(ctx context.Context, stored store.Settings, layers *Layers) (*config, error) {
	c := &config{stored: stored, layers: layers}
	return c, c.reload(ctx)
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
	k, err := findKey(key)
	if err != nil {
		panic(err) // keys are literals of ours
	}
	v := c.decide(user, k)
	return v.value, v.source
}

// decide goes through the layers.
func (c *config) decide(user string, k store.Key) said {
	system := c.ofSystem(k)
	if user == "" || !k.User {
		return system
	}
	own, ok := c.of(user)[k.Name]
	if !ok {
		return system
	}
	if bounded(k, own, system.value) != own {
		return system
	}
	return said{value: own, source: fromUser}
}

// Own implements store.OwnConfig.
func (c *config) UserValue(user, key string) string {
	if k, err := findKey(key); err != nil || !k.User {
		return ""
	}
	return c.of(user)[key]
}

// ofSystem is the value for nobody in particular.
func (c *config) ofSystem(k store.Key) said {
	if s, ok := c.layers.find(k.Name); ok {
		return s
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if v, ok := c.system[k.Name]; ok {
		return said{value: v, source: fromSystem}
	}
	return said{value: c.layers.fallback(k.Name), source: fromDefault}
}

// bounded is a user's value within the system's: not more of it, and
// not on where the system is off. Text and choices have no more and less.
func bounded(k store.Key, own, system string) string {
	switch k.Kind {
	case store.KindBool:
		if system == "false" {
			return system
		}
	case store.KindInt:
		mine, err := strconv.Atoi(own)
		most, err2 := strconv.Atoi(system)
		if err == nil && err2 == nil && mine > most { // both were checked
			return system
		}
	}
	return own
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
	v := c.decide(user, k)
	return api.Setting{Key: k, Value: v.value, Source: v.source, Where: v.where}
}

// put checks and stores a value; "" unsets it.
func (c *config) put(ctx context.Context, by store.Caller, user, key, value string) (api.Setting, error) {
	k, err := findKey(key)
	if err != nil {
		return api.Setting{}, err
	}
	if user != "" && !k.User {
		return api.Setting{}, fmt.Errorf("%w setting: %s is the system's, and nobody has a value of their own", store.ErrInvalid, key)
	}
	if user == "" && k.UserOnly {
		return api.Setting{}, fmt.Errorf("%s is each person's own: %w a value for the system; set somebody's with --user", key, store.ErrInvalid)
	}
	if user == "" && !by.IsAdmin() {
		return api.Setting{}, fmt.Errorf("only admins set the system's %s: %w; set your own with --user", key, store.ErrRefused)
	}
	if user != "" && user != by.User && !by.IsAdmin() {
		return api.Setting{}, fmt.Errorf("only admins set other people's settings: %w", store.ErrRefused)
	}
	if err := c.settable(user, k); err != nil {
		return api.Setting{}, err
	}
	if value != "" {
		if value, err = checkValue(k, value); err != nil {
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

// settable refuses what a stored value would not change: a key that something
// outside the database sets, and the daemon's own keys.
func (c *config) settable(user string, k store.Key) error {
	if user != "" {
		return nil
	}
	own, isOwn := ownOf(k.Name)
	if s, ok := c.layers.find(k.Name); ok {
		return &api.Error{Code: "conflict", Message: fmt.Sprintf("%s is set by the %s, which goes before stored values: %s", k.Name, placeOf(s), c.changeIt(s, k))}
	}
	if isOwn {
		return &api.Error{Code: "refused", Message: fmt.Sprintf("%s is read before the database is open, so it can't be stored there: %s", own.Name, c.changeIt(said{source: fromDefault}, k))}
	}
	return nil
}
