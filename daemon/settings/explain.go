package settings

import (
	"fmt"
	"os"

	"nize/daemon/api"
	"nize/store"
)

// explain builds the layers in the order in which they are asked; the user's
// own comes last and wins where it may.
func (c *Config) explain(who, user string, k store.Key) api.Explanation {
	system := c.systemValue(k)
	e := api.Explanation{Setting: c.view(user, k)}
	for i, v := range c.layers.each(c.layers.current.Load(), k.Name) {
		name := []string{fromFlag, fromEnv, fromFile}[i]
		if i == 0 && v.where == "" {
			continue // there is no such flag
		}
		if k.UserOnly {
			continue // refused there
		}
		e.Layers = append(e.Layers, api.Layer{Name: name, Set: v.source != "", Value: v.value, Where: v.where, Decides: e.Source == name})
	}
	if _, ok := findDaemonKey(k.Name); !ok && !k.UserOnly {
		c.mu.RLock()
		stored, set := c.system[k.Name]
		c.mu.RUnlock()
		e.Layers = append(e.Layers, api.Layer{Name: fromSystem, Set: set, Value: stored, Where: "nizectl config set " + k.Name, Decides: e.Source == fromSystem})
	}
	e.Layers = append(e.Layers, api.Layer{Name: fromDefault, Set: true, Value: c.layers.fallback(k.Name), Decides: e.Source == fromDefault})
	e.Change = c.howToChange(system, k)
	if user != "" {
		own, set := c.userValues(user)[k.Name]
		l := api.Layer{Name: fromUser, Set: set, Value: own, Where: "nizectl config set --user " + who + " " + k.Name, Decides: e.Source == fromUser}
		if set && clamp(k, own, c.bound(k)) != own {
			l.Note = "a limit of the system bounds it"
		}
		if l.Decides || l.Note == "" {
			e.Change = l.Where + " VALUE"
		}
		e.Layers = append(e.Layers, l)
	}
	return e
}

// place names where a value was set, in a sentence.
func (v setValue) place() string {
	switch v.source {
	case fromEnv:
		return "environment variable " + v.where
	case fromFile:
		return "configuration file " + v.where
	}
	return v.source + " " + v.where
}

// howToChange says how to change a value that comes from there.
func (c *Config) howToChange(v setValue, k store.Key) string {
	_, isDaemons := findDaemonKey(k.Name)
	reload := fmt.Sprintf("kill -HUP %d", os.Getpid())
	if NeedsRestart(k.Name) {
		reload = "restart nized"
	}
	switch {
	case v.source == fromFlag || v.source == fromEnv:
		return "change " + v.where + " where nized is started, and restart it"
	case v.source == fromFile:
		return "edit " + v.where + ", then " + reload
	case isDaemons:
		return "write " + k.Name + " into " + c.layers.path + ", then " + reload
	}
	if k.UserOnly {
		return "nizectl config set " + k.Name + " VALUE --user USER"
	}
	return "nizectl config set " + k.Name + " VALUE"
}
