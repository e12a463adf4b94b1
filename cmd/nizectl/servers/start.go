package servers

import (
	"context"
	"strings"
	"sync"
	"time"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
)

// showStart shows on a terminal that a server is being contacted, for how long, and the
// last line that it wrote: the first start of a package can take minutes and would
// otherwise seem to hang. The returned function ends it.
func showStart(ctx context.Context, c *command.Call, name string) (done func()) {
	show, wipe := c.Progress()
	if !c.ErrTTY {
		return wipe
	}
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	said := ""
	var running sync.WaitGroup
	running.Go(func() {
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for ctx.Err() == nil { // the daemon has no data before it is contacted
			for line, err := range api.ServerLogs.Call(ctx, c.API, api.ServerLogsRequest{Name: name, Follow: true}) {
				if text := strings.TrimSpace(line.Text); err == nil && text != "" {
					mu.Lock()
					said = text
					mu.Unlock()
				}
			}
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	})
	running.Go(func() {
		began := c.Now()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			mu.Lock()
			text := said
			mu.Unlock()
			show("%s", startLine(name, c.Now().Sub(began), text, c.Columns()))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
		wipe()
	}
}

// startLine returns a line that fits one row, because a wrapped one can't be replaced.
func startLine(name string, took time.Duration, said string, columns int) string {
	line := "contacting " + name + " …"
	if took >= 2*time.Second {
		line += " " + command.Span(took)
	}
	if said != "" && took >= 2*time.Second {
		line += ": " + display.Clean(said)
	}
	if columns <= 1 {
		columns = 80
	}
	return display.Shorten(line, columns-1, "…")
}
