package commands

import (
	"context"
	"slices"
	"strings"

	"nize/bots"
	"nize/bots/phrases"
)

// sayTools finds tools by what they do.
func (cmd *Commands) sayTools(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	if a.Words == "" {
		return bots.Said(w.Say(phrases.ToolsWhat)), nil
	}
	scope, err := cmd.scopeAt(ctx, a)
	if err != nil {
		return bots.Answer{}, err
	}
	found, near, err := cmd.Tools.Find(ctx, a.By, scope, a.Words, 8)
	if err != nil {
		return bots.Answer{}, err
	}
	var lines []string
	if len(found) == 0 {
		lines = append(lines, w.Say(phrases.ToolsNone, bots.Brief(a.Words, 100)))
	}
	if len(near) > 0 {
		lines = append(lines, w.Say(phrases.ToolsNear))
	}
	for _, h := range slices.Concat(found, near) {
		lines = append(lines, "- "+bots.Brief(h.Tool.ID(), 120)+": "+bots.Brief(h.Tool.Description, 160))
	}
	return bots.Said(strings.Join(lines, "\n")), nil
}
