package commands

import (
	"context"

	"nize/bots"
	"nize/bots/phrases"
)

// sayApprovals lists the pending calls that the person may approve.
func (cmd *Commands) sayApprovals(ctx context.Context, a bots.Asked) (bots.Answer, error) {
	w := phrases.For(a.Locale)
	calls, err := cmd.Approvals.WaitingFor(ctx, a.By)
	if err != nil {
		return bots.Answer{}, err
	}
	var lines []string
	for _, c := range calls {
		lines = append(lines, "- "+w.Say(phrases.ApprovalLine, c.ID, bots.Brief(c.Server+":"+c.Tool, 120), bots.Brief(c.ByName, 60)))
	}
	if len(lines) == 0 {
		return bots.Said(w.Say(phrases.ApprovalsNone)), nil
	}
	return bots.Said(bots.FirstLines(w, w.Say(phrases.ApprovalsHead), lines)), nil
}
