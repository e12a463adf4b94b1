// Package monitor reports the daemon's health: problems for the alerts, facts for doctor,
// and the status.
//
// The alerts manager calls [Monitor]. Each of its checks returns all current problems of
// its kinds. If a check can't determine a state, for example because a server is just
// connecting, the previous state is kept. [Doctor], [Alerts] and [Status] are operations of
// the control API.
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

// Store has the records that a Monitor reads.
type Store interface {
	ListServers(ctx context.Context) ([]store.Server, error)
	ListTools(ctx context.Context, server string) ([]store.Tool, error)
	ExpiringTokens(ctx context.Context, by time.Time) ([]store.Token, error)
	ListIncidents(ctx context.Context, q store.IncidentQuery) ([]store.Incident, error)
	CountIncidents(ctx context.Context) (active, due int, err error)
	ListBudgets(ctx context.Context) ([]store.BudgetState, error)
	NearlyUsedDefaults(ctx context.Context, userDaily int64) ([]store.BudgetState, error)
}

// Pool has the connected servers.
type Pool interface {
	Status() []upstream.ServerStatus
	// ChildServers returns the servers' names by the PIDs of their processes.
	ChildServers() map[int]string
}

// Monitor detects problems. Only the goroutine of the alerts manager may call Check. Use
// New to create one.
type Monitor struct {
	Options
	last          []outcome // by check
	migrationTold bool      // the failed migration was reported
}

// Options are a Monitor's dependencies.
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
	Held       func() []store.Tool // tools of extensions that await acceptance
	Now        func() time.Time
	Log        *slog.Logger
}

// New returns a Monitor that has checked nothing yet.
func New(opt Options) *Monitor {
	return &Monitor{Options: opt, last: make([]outcome, len(checks))}
}

// check detects problems of some kinds.
type check struct {
	kinds []string
	every time.Duration // 0 means every time
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

// outcome is a check's last result.
type outcome struct {
	result alert.Result
	next   time.Time
	err    string // the last error logged
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
