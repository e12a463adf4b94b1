package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// linesEvery is the minimum interval between lines if there is no terminal.
const linesEvery = 5 * time.Second

// followProgress shows the progress of a call on standard error until the returned function
// is called. The call does not depend on it: an error, such as an older nized without
// progress, only means that less is shown.
func followProgress(ctx context.Context, c *command.Call, tool, follow string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	idle := c.Busy("calling %s …", tool)
	var all sync.WaitGroup
	all.Go(func() {
		again := time.NewTicker(pollEvery)
		defer again.Stop()
		for showProgress(ctx, c, tool, follow) {
			select { // the call may not have begun yet
			case <-again.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		all.Wait()
		idle()
	}
}

// showProgress shows the progress until the stream ends, and reports whether it ended
// without an error.
func showProgress(ctx context.Context, c *command.Call, tool, follow string) (ok bool) {
	show, wipe := c.Progress()
	defer wipe()
	if !c.ErrTTY {
		var last time.Time
		show = func(format string, args ...any) {
			if now := c.Now(); now.Sub(last) >= linesEvery {
				last = now
				c.Note(format, args...)
			}
		}
	}
	for p, err := range api.FollowProgress.Call(ctx, c.API, api.FollowProgressRequest{Follow: follow}) {
		if err != nil {
			return false
		}
		if text := progressText(p); text != "" {
			show("%s: %s", tool, text)
		}
	}
	return true
}

// progressText formats the progress of a call.
func progressText(p api.Progress) string {
	var parts []string
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch {
	case p.Total > 0 && p.Done >= 0 && p.Done <= p.Total:
		parts = append(parts, fmt.Sprintf("%.0f %%", 100*p.Done/p.Total))
	case p.Message == "" && p.Done > 0:
		parts = append(parts, number(p.Done))
	}
	if p.Message != "" {
		parts = append(parts, display.Clean(p.Message))
	}
	return strings.Join(parts, " ")
}
