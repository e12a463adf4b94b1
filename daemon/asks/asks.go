// Package asks lets other programs submit their own risky steps for approval.
//
// An ask has the card, the rules and the audit trail of a call, but the program that
// submits it runs the step. It is a safety measure, not a security boundary: a program that
// doesn't ask isn't stopped. It is effective only if the user who runs the program can't
// remove the hook.
package asks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"nize/daemon/api"
	"nize/daemon/mux"
	"nize/mcp"
	"nize/store"
)

// maxWait bounds how long one request waits for a decision.
const maxWait = 10 * time.Minute

// Asks implements the operations on asks.
type Asks struct {
	Gateway *mcp.Gateway
	Calls   interface {
		ListCalls(ctx context.Context, q store.CallQuery) ([]store.Call, error)
	}
	Now func() time.Time
}

// Mount registers the operations.
func (a *Asks) Mount(m *mux.Mux) {
	mux.Handle(m, api.PostAsk, a.Post)
	mux.Handle(m, api.AskStats, a.Stats)
	mux.Handle(m, api.GetAsk, a.Get)
	mux.Handle(m, api.CancelAsk, a.Cancel)
}

// Post submits an ask, and waits for a decision as long as the request specifies.
func (a *Asks) Post(ctx context.Context, by store.Caller, req api.AskRequest) (none api.Ask, err error) {
	wait, err := span("wait", req.Wait, maxWait)
	if err != nil {
		return none, err
	}
	expires, err := span("expires", req.Expires, 24*time.Hour)
	if err != nil {
		return none, err
	}
	where := api.AskContext{}
	if req.Context != nil {
		where = *req.Context
	}
	c, err := a.Gateway.Ask(ctx, by, store.AskRequest{
		Source: req.Source, Tool: req.Tool, Args: req.Arguments, Why: req.Why, Expires: expires,
		Ask: store.Ask{Title: req.Title, Cwd: where.Cwd, Host: where.Host, Session: where.Session, Repository: where.Repository, Key: req.Key},
	})
	if err != nil {
		return none, err
	}
	if c.State.Final() && c.Successor == "" || wait == 0 && c.Successor == "" {
		return answer(c), nil
	}
	return a.find(ctx, by, c.ID, wait)
}

// Get returns one of the caller's asks when it is decided, or when the request's waiting
// time is over.
func (a *Asks) Get(ctx context.Context, by store.Caller, req api.GetAskRequest) (none api.Ask, err error) {
	wait, err := span("wait", req.Wait, maxWait)
	if err != nil {
		return none, err
	}
	return a.find(ctx, by, req.ID, wait)
}

func (a *Asks) find(ctx context.Context, by store.Caller, id string, wait time.Duration) (none api.Ask, err error) {
	c, err := a.Gateway.FindAsk(ctx, by, id, wait)
	if err != nil {
		return none, err
	}
	return answer(c), nil
}

// Cancel withdraws one of the caller's asks.
func (a *Asks) Cancel(ctx context.Context, by store.Caller, req api.CancelAskRequest) (none api.Ask, err error) {
	c, err := a.Gateway.CancelAsk(ctx, by, req.ID)
	if err != nil {
		return none, err
	}
	return answer(c), nil
}

// span parses a duration in a request; "" is zero.
func span(name, text string, most time.Duration) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := store.ParseSpan(text)
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("%w %s %q: use a time up to %s, such as 30s", store.ErrInvalid, name, store.Clip(text, 40), store.SpanText(most))
	}
	return d, nil
}

// answer returns an ask in the form for the program that submitted it.
func answer(c *store.Call) api.Ask {
	out := api.Ask{ID: c.ID, State: string(c.State), Digest: c.Digest, Arguments: c.Args, Standing: c.Ask.Grant}
	if c.State != store.Pending { // while pending, Reason is why approval is needed, which is for the approver
		out.Reason = c.Reason.String()
	}
	if n := len(c.Decisions); n > 0 && c.State.Final() && c.Decisions[n-1].By != store.System.User {
		out.DecidedBy = cmp.Or(c.Decisions[n-1].Name, c.Decisions[n-1].By)
	}
	return out
}

// mostCounted bounds how many asks one request for statistics reads.
const mostCounted = 20_000

// Stats counts asks by tool.
func (a *Asks) Stats(ctx context.Context, by store.Caller, req api.AskStatsRequest) (none api.AskStatsAnswer, err error) {
	since := req.Since
	if since.IsZero() {
		since = a.Now().AddDate(0, 0, -30)
	}
	q := store.CallQuery{Asks: true, Limit: mostCounted}
	if !by.IsAdmin() {
		q.User = by.User
	}
	calls, err := a.Calls.ListCalls(ctx, q)
	if err != nil {
		return none, fmt.Errorf("counting asks: %w", err)
	}
	out := api.AskStatsAnswer{Since: since, Partial: len(calls) == mostCounted && calls[len(calls)-1].Created.After(since)}
	rows, times := map[string]*api.AskStatsRow{}, map[string][]time.Duration{}
	for _, c := range calls {
		if c.Created.Before(since) || c.Successor != "" {
			continue
		}
		row := rows[c.ToolID()]
		if row == nil {
			row = &api.AskStatsRow{Tool: c.ToolID()}
			rows[c.ToolID()] = row
		}
		for _, r := range []*api.AskStatsRow{row, &out.Total} {
			count(r, c)
		}
		if by, took, ok := decided(c); ok && by != "" {
			times[row.Tool] = append(times[row.Tool], took)
			times[""] = append(times[""], took)
		}
	}
	for tool, row := range rows {
		row.MedianMS = median(times[tool])
		out.Rows = append(out.Rows, *row)
	}
	out.Total.MedianMS = median(times[""])
	slices.SortFunc(out.Rows, func(x, y api.AskStatsRow) int {
		return cmp.Or(cmp.Compare(y.Asked, x.Asked), strings.Compare(x.Tool, y.Tool))
	})
	return out, nil
}

// decided returns which person decided an ask, and how long that took.
func decided(c store.Call) (by string, took time.Duration, ok bool) {
	if len(c.Decisions) == 0 {
		return "", 0, false
	}
	last := c.Decisions[len(c.Decisions)-1]
	if last.By == store.System.User || last.Verb != store.Approve && last.Verb != store.Deny {
		return "", 0, false
	}
	return cmp.Or(last.Name, last.By), last.At.Sub(c.Created), true
}

func count(r *api.AskStatsRow, c store.Call) {
	r.Asked++
	by, _, person := decided(c)
	switch c.State {
	case store.Approved:
		switch {
		case c.Ask.Grant != "":
			r.Standing++
		case person:
			r.Approved++
		default:
			r.Rules++
		}
	case store.Refused:
		r.Refused++
	case store.Expired:
		r.Expired++
	case store.Cancelled:
		r.Cancelled++
	default:
		r.Waiting++
	}
	if person && c.State.Final() {
		if r.People == nil {
			r.People = map[string]int{}
		}
		r.People[by]++
	}
}

func median(d []time.Duration) int64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2].Milliseconds()
}
