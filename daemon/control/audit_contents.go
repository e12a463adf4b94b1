package control

import (
	"encoding/json"
	"slices"
	"strings"

	"nize/store"
)

// contents are the members of an event's data that hold what a person asked, set or
// received, by the event's kind or the part of the kind before the dot. Everything else in
// the trail records who did what, when and with what result, which every admin may read.
var contents = map[string][]string{
	"call":         {"args", "output", "reason", "why", "decision.reason", "decision.args", "decision.pattern"},
	"meta":         {"args"},
	"hook.audit":   {"args"},
	"grant":        {"pattern", "exact"},
	"setting":      {"value"},
	"view.request": {"uri", "host"},
}

// withoutContents returns an event for an admin who gave no reason: the contents of other
// people's events are removed, and their member names are listed under "withheld".
func withoutContents(by store.Caller, e store.Event) store.Event {
	head, _, _ := strings.Cut(e.Kind, ".")
	names := slices.Concat(contents[e.Kind], contents[head])
	if e.User == by.User || len(names) == 0 || len(e.Data) == 0 || e.Kind == "call.read" || e.Kind == "grant.read" {
		return e
	}
	var data map[string]json.RawMessage
	if json.Unmarshal(e.Data, &data) != nil {
		e.Data = nil
		return e
	}
	if e.Kind == "setting.put" && (data["user"] == nil || string(data["user"]) == quoted(by.User)) {
		return e // a system setting, or the reader's own
	}
	var withheld []string
	for _, name := range names {
		in, of, nested := strings.Cut(name, ".")
		if !nested {
			if _, ok := data[in]; ok {
				delete(data, in)
				withheld = append(withheld, name)
			}
			continue
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(data[in], &inner) != nil || inner[of] == nil {
			continue
		}
		delete(inner, of)
		data[in], withheld = encoded(inner), append(withheld, name)
	}
	if len(withheld) > 0 {
		data["withheld"] = encoded(withheld)
		e.Data = encoded(data)
	}
	return e
}

func quoted(s string) string { return string(encoded(s)) }

// encoded returns v as JSON. It can't fail for strings and values decoded from JSON.
func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
