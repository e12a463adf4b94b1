package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"nize/daemon/api"
	"nize/store"
)

// explainSetting tells what every layer says of a setting, which one decided,
// and how to change it.
func (d *Daemon) explainSetting(ctx context.Context, by store.Caller, r *http.Request) (any, error) {
	k, err := findKey(r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	who, user := r.URL.Query().Get("user"), ""
	if who != "" {
		if user, err = d.directory.Owner(ctx, by, who); err != nil {
			return nil, err
		}
	}
	if user != "" && !k.User {
		return nil, fmt.Errorf("%w setting: %s is the system's, and nobody has a value of their own", store.ErrInvalid, k.Name)
	}
	if k.Private && !by.IsAdmin() {
		return nil, fmt.Errorf("%s is for admins: %w", k.Name, store.ErrRefused)
	}
	return d.config.explain(who, user, k), nil
}

// explain builds the layers in the order in which they are asked; the user's
// own comes last and wins where it may.
func (c *config) explain(who, user string, k store.Key) api.Explanation {
	system := c.ofSystem(k)
	e := api.Explanation{Setting: c.view(user, k)}
	for i, s := range c.layers.of(c.layers.now.Load(), k.Name) {
		name := []string{fromFlag, fromEnv, fromFile}[i]
		if i == 0 && s.where == "" {
			continue // there is no such flag
		}
		if k.UserOnly {
			continue // refused there
		}
		e.Layers = append(e.Layers, api.Layer{Name: name, Set: s.source != "", Value: s.value, Where: s.where, Decides: e.Source == name})
	}
	if _, own := ownOf(k.Name); !own && !k.UserOnly {
		c.mu.RLock()
		stored, set := c.system[k.Name]
		c.mu.RUnlock()
		e.Layers = append(e.Layers, api.Layer{Name: fromSystem, Set: set, Value: stored, Where: "nizectl config set " + k.Name, Decides: e.Source == fromSystem})
	}
	e.Layers = append(e.Layers, api.Layer{Name: fromDefault, Set: true, Value: c.layers.fallback(k.Name), Decides: e.Source == fromDefault})
	e.Change = c.changeIt(system, k)
	if user != "" {
		own, set := c.of(user)[k.Name]
		l := api.Layer{Name: fromUser, Set: set, Value: own, Where: "nizectl config set --user " + who + " " + k.Name, Decides: e.Source == fromUser}
		if set && bounded(k, own, system.value) != own {
			l.Note = "the system's value bounds it"
		} else {
			e.Change = l.Where + " VALUE"
		}
		e.Layers = append(e.Layers, l)
	}
	return e
}

// placeOf names where a value stands, in a sentence.
func placeOf(s said) string {
	switch s.source {
	case fromEnv:
		return "environment variable " + s.where
	case fromFile:
		return "configuration file " + s.where
	}
	return s.source + " " + s.where
}

// changeIt says how to change a value that comes from there.
func (c *config) changeIt(s said, k store.Key) string {
	own, isOwn := ownOf(k.Name)
	reload := fmt.Sprintf("kill -HUP %d", os.Getpid())
	if isOwn && !own.live {
		reload = "restart nized"
	}
	switch {
	case s.source == fromFlag || s.source == fromEnv:
		return "change " + s.where + " where nized is started, and restart it"
	case s.source == fromFile:
		return "edit " + s.where + ", then " + reload
	case isOwn:
		return "write " + k.Name + " into " + c.layers.path + ", then " + reload
	}
	if k.UserOnly {
		return "nizectl config set " + k.Name + " VALUE --user USER"
	}
	return "nizectl config set " + k.Name + " VALUE"
}
