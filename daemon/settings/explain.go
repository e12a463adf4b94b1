package settings

import (
	"fmt"
	"os"

	"nize/daemon/api"
	"nize/store"
)

// explain lists the layers in order of precedence; the user's own value comes last, and
// overrides the others if the key allows it.
func (c *Config) explain(who, user string, k store.Key) api.Explanation {
	system := c.systemValue(k)
	e := api.Explanation{Setting: c.view(user, k)}
	for i, v := range c.layers.each(c.layers.current.Load(), k.Name) {
		name := []string{fromFlag, fromEnv, fromFile}[i]
		if i == 0 && v.where == "" {
			continue // the key has no flag
		}
		if k.UserOnly {
			continue // that layer can't set the key
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

// place describes in a sentence where a value was set.
func (v setValue) place() string {
	switch v.source {
	case fromEnv:
		return "environment variable " + v.where
	case fromFile:
		return "configuration file " + v.where
	}
	return v.source + " " + v.where
}

// howToChange describes how to change a value with that source.
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
