package settings

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"nize/daemon/api"
	"nize/store"
)

// Config returns the effective values of settings: from flag, environment, file, stored
// system value or default; then the user's own value if the key allows one. It caches
// stored values decoded, since settings are read on every call.
type Config struct {
	stored store.Settings
	layers *Layers

	mu     sync.RWMutex
	system map[string]string
	users  map[string]map[string]string // by user, read on demand
	stale  bool                         // a value was stored, but the values could not be reread
}

var (
	_ store.Config     = (*Config)(nil)
	_ store.UserConfig = (*Config)(nil)
)

// NewConfig reads the stored values.
func NewConfig(ctx context.Context, stored store.Settings, layers *Layers) (*Config, error) {
	c := &Config{stored: stored, layers: layers}
	return c, c.reload(ctx)
}

// reload drops the cached values and reads the system's.
func (c *Config) reload(ctx context.Context) error {
	system, err := c.stored.ListSettings(ctx, "")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = err != nil
	if err != nil {
		return fmt.Errorf("reading settings: %w", err)
	}
	c.system, c.users = system, map[string]map[string]string{}
	return nil
}

// Get implements store.Config.
func (c *Config) Get(user, key string) string {
	k, err := c.layers.keys.find(key)
	if err != nil {
		panic(err) // keys are literals in this program
	}
	return c.lookup(user, k).value
}

// UserValue implements store.UserConfig.
func (c *Config) UserValue(user, key string) string {
	if k, err := c.layers.keys.find(key); err != nil || !k.User {
		return ""
	}
	return c.userValues(user)[key]
}

// personal is a Config with one person's own values.
type personal struct {
	*Config
	user string
	own  map[string]string
}

// Get implements store.Config.
func (p personal) Get(user, key string) string {
	if user != p.user {
		return p.Config.Get(user, key)
	}
	k, err := p.layers.keys.find(key)
	if err != nil {
		panic(err) // keys are literals in this program
	}
	return p.lookupIn(p.own, user, k).value
}

// ReadUser returns c with a user's own values. It returns an error if they can't be read,
// or if another process may have changed them, see [store.ReadConfig].
func (c *Config) ReadUser(ctx context.Context, user string) (store.Config, error) {
	if err := c.current(ctx); err != nil {
		return nil, err
	}
	own, err := c.readUser(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of user %s: %w", user, err)
	}
	return personal{c, user, own}, nil
}

// current returns an error if the values can't be read, or if another process may have
// changed them.
func (c *Config) current(ctx context.Context) error {
	if s, ok := c.stored.(interface{ Term() context.Context }); ok && s.Term().Err() != nil {
		return fmt.Errorf("reading settings: %w", store.ErrNoDatabase)
	}
	return c.refresh(ctx)
}

// readable returns an error if a user's effective values, or the system's if user is "",
// can't be read.
func (c *Config) readable(ctx context.Context, user string) error {
	if user == "" {
		return c.current(ctx)
	}
	_, err := c.ReadUser(ctx, user)
	return err
}

// userValues returns a user's own values. If they can't be read it returns none, so that
// the system's values apply; decisions that depend on them must use ReadUser.
func (c *Config) userValues(user string) map[string]string {
	own, _ := c.readUser(context.Background(), user) // see the comment above
	return own
}

// refresh rereads the values if they could not be read after the last change.
func (c *Config) refresh(ctx context.Context) error {
	c.mu.RLock()
	stale := c.stale
	c.mu.RUnlock()
	if !stale {
		return nil
	}
	return c.reload(ctx)
}

// lookup returns the effective value and its source.
func (c *Config) lookup(user string, k store.Key) setValue {
	var own map[string]string
	if user != "" && k.User {
		own = c.userValues(user)
	}
	return c.lookupIn(own, user, k)
}

func (c *Config) lookupIn(values map[string]string, user string, k store.Key) setValue {
	system := c.systemValue(k)
	if user == "" || !k.User {
		return system
	}
	own, ok := values[k.Name]
	if !ok {
		return system
	}
	within := clamp(k, own, c.bound(k))
	if within != own && k.Bound == "" {
		return system
	}
	// If the Bound was lowered below the user's value, the Bound applies, not the system's
	// value: a user who asked for more must not get less than one who asked for exactly the
	// bound.
	return setValue{value: within, source: fromUser}
}

// systemValue returns the value without a user's own.
func (c *Config) systemValue(k store.Key) setValue {
	if v, ok := c.layers.lookup(k.Name); ok {
		return v
	}
	_ = c.refresh(context.Background()) // on an error, use the cached values
	c.mu.RLock()
	defer c.mu.RUnlock()
	if v, ok := c.system[k.Name]; ok {
		return setValue{value: v, source: fromSystem}
	}
	return setValue{value: c.layers.fallback(k.Name), source: fromDefault}
}

// bound returns the upper bound of a user's value: the system's value, or that of the key's
// Bound if it is higher.
func (c *Config) bound(k store.Key) string {
	system := c.systemValue(k).value
	if k.Bound == "" {
		return system
	}
	limit, err := c.layers.keys.find(k.Bound)
	if err != nil {
		panic(err) // keys are literals in this program
	}
	most, err := strconv.Atoi(c.systemValue(limit).value)
	if now, err2 := strconv.Atoi(system); err != nil || err2 == nil && now > most {
		return system
	}
	return strconv.Itoa(most)
}

// checkBound returns an error if a value exceeds that of the key's Bound.
func (c *Config) checkBound(k store.Key, user, value string) error {
	if k.Bound == "" || value == "" {
		return nil
	}
	most := c.bound(k)
	if user == "" {
		limit, err := c.layers.keys.find(k.Bound)
		if err != nil {
			return err
		}
		most = c.systemValue(limit).value
	}
	if clamp(k, value, most) != value {
		return fmt.Errorf("%w value %q for %s: at most %s (%s, which an admin sets)", store.ErrInvalid, store.Clip(value, 100), k.Name, most, k.Bound)
	}
	return nil
}

// clamp limits a user's value to a bound: a number to at most the bound, a bool to false if
// the system's is false. Strings and choices are not limited.
func clamp(k store.Key, own, system string) string {
	switch k.Kind {
	case store.KindBool:
		if system == "false" {
			return system
		}
	case store.KindInt:
		mine, err := strconv.Atoi(own)
		most, err2 := strconv.Atoi(system)
		if err == nil && err2 == nil && mine > most { // both are validated
			return system
		}
	}
	return own
}

// readUser returns a user's own values.
func (c *Config) readUser(ctx context.Context, user string) (map[string]string, error) {
	c.mu.RLock()
	own, ok := c.users[user]
	c.mu.RUnlock()
	if ok {
		return own, nil
	}
	own, err := c.stored.ListSettings(ctx, user)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.users) > 10_000 {
		c.users = map[string]map[string]string{}
	}
	c.users[user] = own
	return own, nil
}

func (c *Config) view(user string, k store.Key) api.Setting {
	v := c.lookup(user, k)
	s := api.Setting{Key: k, Display: k.Display(), Scope: "system", Value: v.value, Source: v.source, Where: v.where}
	if k.User {
		s.Scope = "user"
	}
	s.Min, s.Max = k.Range()
	if k.Bound != "" && user != "" {
		s.Max = c.bound(k)
	}
	s.CategoryLabel = store.Categories[categoryOf(k)].Label
	return s
}

// categoryOf returns the index of a key's category.
func categoryOf(k store.Key) int {
	return slices.IndexFunc(store.Categories, func(c store.CategoryName) bool { return c.ID == k.Category })
}

// Put validates and stores a value; "" unsets it.
func (c *Config) Put(ctx context.Context, by store.Caller, user, key, value string) (api.Setting, error) {
	k, err := c.layers.keys.find(key)
	if err != nil {
		return api.Setting{}, err
	}
	if user != "" && !k.User {
		return api.Setting{}, notPersonal(k)
	}
	if user == "" && k.UserOnly {
		return api.Setting{}, fmt.Errorf("%w system value: %s is each person's own; set it with --user", store.ErrInvalid, key)
	}
	if user == "" && !by.IsAdmin() {
		return api.Setting{}, store.Mark(fmt.Errorf("only admins set the system's %s; set your own with --user", key), store.ErrRefused)
	}
	if user != "" && user != by.User && !by.IsAdmin() {
		return api.Setting{}, store.Mark(fmt.Errorf("only admins set other people's settings"), store.ErrRefused)
	}
	if user == "" {
		if err := c.checkStorable(k); err != nil {
			return api.Setting{}, err
		}
	}
	if value != "" {
		if value, err = checkValue(k, value, c.layers.src.IsChannel); err != nil {
			return api.Setting{}, err
		}
		if err := c.checkBound(k, user, value); err != nil {
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

func notPersonal(k store.Key) error {
	return store.Errorf("%w setting: %s is a system setting; people can't have a value of their own", store.ErrInvalid, k.Name)
}

// checkStorable returns an error for keys that a stored system value can't change: those
// set outside the database, and the daemon's own.
func (c *Config) checkStorable(k store.Key) error {
	if v, ok := c.layers.lookup(k.Name); ok {
		return &api.Error{Code: "conflict", Message: fmt.Sprintf("%s is set by the %s, which goes before stored values: %s", k.Name, v.place(), c.howToChange(v, k))}
	}
	if _, ok := findDaemonKey(k.Name); ok {
		return &api.Error{Code: "refused", Message: fmt.Sprintf("%s is read before the database is open, so it can't be stored there: %s", k.Name, c.howToChange(setValue{source: fromDefault}, k))}
	}
	return nil
}
