package bots

import (
	"encoding/json"
	"slices"
	"strings"

	"nize/bots/phrases"
	"nize/store"
	"nize/store/hooks"
)

// HookWords is a parsed command about a person's own hooks.
type HookWords struct {
	Verb string     // "" lists them; otherwise add, remove, on, off
	Hook hooks.Hook // its name; for add also type, scope and configuration
}

// ReadHookWords parses
//
//	add NAME TYPE [SERVER|TOOL] [CONFIG]
//	remove NAME, on NAME, off NAME
func ReadHookWords(words string) (w HookWords, err error) {
	wrong := store.Errorf("%w: write `hooks`, `hooks add NAME TYPE [SERVER] [CONFIG]`, or `hooks remove`, `on` or `off` with a name", store.ErrInvalid)
	words = strings.TrimSpace(words)
	if words == "" {
		return w, nil
	}
	// The configuration is a JSON object and begins with its brace. Chats wrap it in code
	// spans and curl its quotes.
	config := ""
	if i := strings.IndexByte(words, '{'); i >= 0 {
		words, config = words[:i], strings.Trim(strings.TrimSpace(words[i:]), "`")
		if !json.Valid([]byte(config)) {
			config = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "\u00a0", " ").Replace(config)
		}
	}
	f := strings.Fields(strings.Trim(strings.TrimSpace(words), "`"))
	switch {
	case len(f) < 2:
		return w, wrong
	case f[0] == "add" && (len(f) == 3 || len(f) == 4):
		if config != "" && !json.Valid([]byte(config)) {
			return w, store.Errorf("%w: the configuration of a hook is a JSON object, such as `%s`", store.ErrInvalid, hookExample)
		}
		w.Hook = hooks.Hook{Type: strings.ReplaceAll(strings.ToLower(f[2]), "_", "-"), Scope: hooks.User, Config: json.RawMessage(config)}
		if len(f) == 4 {
			if strings.Contains(f[3], ":") {
				w.Hook.Tool = f[3]
			} else {
				w.Hook.Scope, w.Hook.ScopeID = hooks.UserServer, f[3]
			}
		}
	case len(f) == 2 && config == "" && (f[0] == "remove" || f[0] == "on" || f[0] == "off"):
	default:
		return w, wrong
	}
	w.Verb, w.Hook.Name = f[0], f[1]
	return w, nil
}

// KnownType reports whether the type of a hook to add exists.
func (w HookWords) KnownType() bool { return slices.Contains(hooks.Types, w.Hook.Type) }

// hookExample is a configuration for people to copy.
const hookExample = `{"calls":5,"per":"1h"}`

// HookHelp explains how to set hooks; prefix, such as "/nize ", precedes the command.
func HookHelp(w phrases.Catalogue, prefix string) string {
	return w.Say(phrases.HooksHow, prefix, strings.Join(hooks.PersonalTypes, "`, `"), prefix+"hooks add few rate-limit SERVER "+hookExample)
}

// hookDoes describes each type.
var hookDoes = map[string]phrases.Key{
	hooks.Audit: phrases.HookAudits, hooks.Access: phrases.HookAccess, hooks.RateLimit: phrases.HookLimits, hooks.Sanitizer: phrases.HookSanitizes,
	hooks.Truncation: phrases.HookTruncates, hooks.Redaction: phrases.HookRedacts, hooks.Exec: phrases.HookExecs, hooks.Webhook: phrases.HookAsks,
}

// HookLine describes one hook in a list, for the person whose calls it affects.
func HookLine(w phrases.Catalogue, h hooks.Hook, builtIn bool) string {
	around := w.Say(phrases.HookAllTools)
	switch server := h.ScopeID[strings.IndexByte(h.ScopeID, '/')+1:]; {
	case h.Tool != "":
		around = Brief(h.Tool, 120)
	case h.Scope == hooks.Server || h.Scope == hooks.UserServer:
		around = w.Say(phrases.HookToolsOf, Brief(server, 60))
	}
	from := w.Say(phrases.HookOfAdmin)
	switch {
	case builtIn:
		from = w.Say(phrases.HookBuiltIn)
	case h.Owner != "":
		from = w.Say(phrases.HookYours)
	}
	parts := []string{w.Say(hookDoes[h.Type]), around, from}
	if !h.Enabled {
		parts = append(parts, w.Say(phrases.HookOff))
	}
	return w.Say(phrases.HookLine, Brief(h.Name, 60), strings.Join(parts, w.Say(phrases.Comma)))
}

// HookAround reports whether a hook may apply to a person's calls: an enabled hook of the
// admins, or one of their own.
func HookAround(h hooks.Hook, user string) bool {
	of, _, _ := strings.Cut(h.ScopeID, "/")
	switch {
	case h.Owner != "":
		return h.Owner == user
	case h.Scope == hooks.User || h.Scope == hooks.UserServer:
		return of == user && h.Enabled
	}
	return h.Enabled
}
