// Package monitor says how nized is: what is wrong, for the alerts; the facts
// for doctor; the status.
//
// [Monitor] is what the alerts manager checks by. Each of its checks says all
// that is wrong of its kinds now; what it cannot tell, as of a server that is
// just connecting, stays as it was. [Doctor], [Alerts] and [Status] are
// operations of the control API.
package monitor

import (
	"context"
	"log/slog"
	"time"

	"nize/daemon/alert"
	"nize/daemon/doctor"
	"nize/daemon/people"
	"nize/mcp/upstream"
	"nize/store"
)

// Store is what a Monitor reads.
type Store interface {
	ListServers(ctx context.Context) ([]store.Server, error)
	ListTools(ctx context.Context, server string) ([]store.Tool, error)
	ExpiringTokens(ctx context.Context, by time.Time) ([]store.Token, error)
	ListIncidents(ctx context.Context, q store.IncidentQuery) ([]store.Incident, error)
	GetUser(ctx context.Context, id string) (store.User, error)
	ListBudgets(ctx context.Context) ([]store.BudgetState, error)
	BudgetsFor(ctx context.Context, r store.Reservation) ([]store.BudgetState, error)
	Usage(ctx context.Context, q store.UsageQuery) (store.UsageReport, error)
}

// Pool is the servers that are connected.
type Pool interface {
	Status() []upstream.ServerStatus
	// ChildServers names the servers by the PIDs of their processes.
	ChildServers() map[int]string
}

// Monitor finds what is wrong. Only the goroutine of the alerts manager calls
// Check. It is made by New.
type Monitor struct {
	Options
	last          []outcome // by check
	migrationTold bool      // the failed migration was told
}

// Options are what a Monitor needs.
type Options struct {
	Store      Store
	Pool       Pool
	Directory  *people.Directory
	Config     store.Config
	DataDir    string
	Space      func(path string) (doctor.Space, error)
	Runs       Runs
	Migrations Migrations
	Clocks     Clocks
	Bots       *Bots
	Held       func() []store.Tool // of extensions that wait for an admin
	Now        func() time.Time
	Log        *slog.Logger
}

// New returns a monitor that has checked nothing yet.
func New(opt Options) *Monitor {
	return &Monitor{Options: opt, last: make([]outcome, len(checks))}
}

// check finds what is wrong of some kinds.
type check struct {
	kinds []string
	every time.Duration // 0 is every time
	run   func(*Monitor, context.Context, *alert.Result) error
}

var checks = []check{
	{[]string{alert.ServerDown, alert.LoginLost, alert.ToolHeld}, 0, (*Monitor).servers},
	{[]string{alert.BotDown}, 0, (*Monitor).chats},
	{[]string{alert.TokenEnds}, time.Minute, (*Monitor).tokens},
	{[]string{alert.BudgetLow, alert.BudgetOut}, 0, (*Monitor).budgets},
	{[]string{alert.Disk}, 0, (*Monitor).disk},
	{[]string{alert.Backup, alert.AuditFailed}, 0, (*Monitor).scheduled},
	{[]string{alert.Migration}, 0, (*Monitor).migration},
	{[]string{alert.Clock}, time.Minute, (*Monitor).clocks},
}

// outcome is what a check found last.
type outcome struct {
	result alert.Result
	next   time.Time
	err    string // that was logged
}

// Check runs every check that is due.
func (m *Monitor) Check(ctx context.Context) alert.Result {
	var all alert.Result
	now := m.Now()
	for i, c := range checks {
		o := &m.last[i]
		if !now.Before(o.next) {
			o.result, o.next = alert.Result{}, now.Add(c.every)
			err := c.run(m, ctx, &o.result)
			if err != nil {
				for _, kind := range c.kinds {
					o.result.Unknown = append(o.result.Unknown, alert.Key{Kind: kind})
				}
			}
			if err != nil && ctx.Err() == nil && err.Error() != o.err {
				o.err = err.Error()
				m.Log.Error("checking for incidents", "kinds", c.kinds, "err", err)
			} else if err == nil {
				o.err = ""
			}
		}
		all.Wrong = append(all.Wrong, o.result.Wrong...)
		all.Unknown = append(all.Unknown, o.result.Unknown...)
	}
	return all
}
