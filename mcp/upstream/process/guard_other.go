//go:build unix && !linux

package process

import (
	"context"
	"log/slog"
)

// Guard spawns directly on this system, which has no subreaper: children die with a daemon
// that shuts down cleanly, but not with one that is killed.
type Guard struct{}

// GuardMain returns immediately, because there is no guard process on this system.
func GuardMain() {}

// StartGuard logs once that the protection is weaker on this system.
func StartGuard(_ context.Context, log *slog.Logger) (*Guard, error) {
	if log != nil {
		log.Warn("on this system child processes may outlive a daemon that is killed")
	}
	return &Guard{}, nil
}

// Spawn starts a command as a child of the daemon.
func (*Guard) Spawn(cmd Command) (Child, error) { return SpawnDirect(cmd) }

// Close does nothing: the pool ends its children itself.
func (*Guard) Close() error { return nil }
