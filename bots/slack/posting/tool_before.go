package posting

import (
	"context"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"nize/bots/slack/view"
	"nize/store"
)

// After a restart, the other lines of a message about tools are read from the message
// itself, so that changing one line doesn't remove the others.

// readTools reads the message about tools at at.Message.
func (tl *tools) readTools(ctx context.Context, at store.Address) (view.ToolsBefore, error) {
	second, _, _ := strings.Cut(at.Message, ".")
	list, err := tl.messages.List(ctx, at, second+".000000")
	if err != nil {
		return view.ToolsBefore{}, err
	}
	n := slices.IndexFunc(list, func(m slackgo.Message) bool { return m.Timestamp == at.Message })
	if n < 0 {
		return view.ToolsBefore{}, nil
	}
	return view.ToolsIn(list[n]), nil
}
