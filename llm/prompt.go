package llm

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"nize/store"
)

// A system prompt may contain placeholders for the tools and domains that the person may
// use in this conversation, and for their date. Everything else in braces stays as it is.
var placeholder = regexp.MustCompile(`\{\{ *(tool_names|domains|date) *\}\}`)

const (
	maxNamed     = 200     // names in one list
	maxNamedText = 8 << 10 // bytes of one list
)

// plainName matches the names that a prompt may contain. Servers choose names: one with
// spaces could pass for an instruction.
var plainName = regexp.MustCompile(`^[\pL\pN_.:/-]{1,128}$`)

// fillPrompt fills in the placeholders of a system prompt.
func (w *work) fillPrompt(ctx context.Context, by store.Caller, prompt string) (string, error) {
	var failed error
	filled := map[string]string{}
	fill := func(name string) (text string, err error) {
		switch name {
		case "date":
			return w.Now().In(w.zone()).Format("2006-01-02"), nil
		case "tool_names":
			if w.Direct == nil {
				return nameList(nil), nil
			}
			list, err := w.Direct(ctx, by, w.scope())
			if err != nil {
				return "", fmt.Errorf("listing the tools of a prompt: %w", err)
			}
			names := make([]string, len(list))
			for i, t := range list {
				names[i] = t.ID
			}
			return nameList(names), nil
		}
		if w.Domains == nil {
			return nameList(nil), nil
		}
		names, err := w.Domains(ctx, by, w.scope())
		if err != nil {
			return "", fmt.Errorf("listing the domains of a prompt: %w", err)
		}
		return nameList(names), nil
	}
	prompt = placeholder.ReplaceAllStringFunc(prompt, func(mark string) string {
		name := strings.Trim(mark, "{} ")
		text, known := filled[name]
		if !known {
			var err error
			if text, err = fill(name); err != nil {
				failed = err
			}
			filled[name] = text
		}
		return text
	})
	return prompt, failed
}

// nameList joins as many names as fit with commas.
func nameList(names []string) string {
	var list strings.Builder
	shown := 0
	for _, name := range names {
		if !plainName.MatchString(name) {
			continue
		}
		if shown == maxNamed || list.Len()+len(name) > maxNamedText {
			break
		}
		if shown++; shown > 1 {
			list.WriteString(", ")
		}
		list.WriteString(name)
	}
	switch left := len(names) - shown; {
	case shown == 0 && left == 0:
		return "(none)"
	case left > 0:
		return strings.TrimPrefix(fmt.Sprintf("%s and %d more", list.String(), left), " and ")
	}
	return list.String()
}
