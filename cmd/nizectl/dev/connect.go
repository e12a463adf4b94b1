package dev

import (
	"context"
	"errors"
	"time"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// connected is the additional --json output with --connect.
type connected struct {
	Claim  string    `json:"claim"` // the message that makes its sender an admin
	Until  time.Time `json:"claim_expires"`
	Away   string    `json:"away,omitempty"`   // the workspace whose account is inactive meanwhile
	Mended bool      `json:"mended,omitempty"` // the remains of an earlier run were restored first
}

// putBackTime is how long the daemon may take to restore everything.
const putBackTime = 30 * time.Second

// connect makes the daemon use the double until the command is interrupted. The daemon
// restores its own state when this command requests it, or by itself when this process ends
// for any reason.
func connect(ctx context.Context, c *command.Call, d double) error {
	req := api.ConnectDoubleRequest{Name: d.name, APIURL: d.out.APIURL, Team: d.team, People: d.people()}
	for _, token := range d.tokens {
		req.Tokens = append(req.Tokens, api.NewSecret(token))
	}
	// A signal must not cut this connection: the daemon first gets a request to restore its
	// state, which returns the result.
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	begun := make(chan api.ConnectedDouble, 1) // capacity for the single line
	ended := make(chan error, 1)               // the error that ended it
	go func() {
		var last error
		for line, err := range api.ConnectDouble.Call(held, c.API, req) {
			if last = err; err == nil {
				begun <- line
			}
		}
		ended <- last
	}()
	select {
	case made := <-begun:
		if err := printConnected(c, d, made); err != nil {
			release()
			<-ended
			return err
		}
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		why := "nized has let go of it"
		if err != nil {
			why = display.Clean(err.Error())
		}
		return command.Failf(api.ExitNoDaemon, "%s; the previous connection is restored when nized starts, unless it already is", why)
	case <-ctx.Done():
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTime)
	defer cancel()
	_, err := api.DisconnectDouble.Call(undo, c.API, api.BotRequest{Name: d.name})
	release()
	<-ended
	if err != nil && !errors.Is(err, store.ErrNotFound) { // returned if nothing had begun
		return command.Failf(api.ExitCode(err), "nized could not restore the previous connection: %s; it tries again when it starts, and before the next nizectl dev %s --connect", display.Clean(err.Error()), d.name)
	}
	c.Note("nized is as it was before")
	return nil
}

// printConnected prints the page's URL and the message to type there.
func printConnected(c *command.Call, d double, made api.ConnectedDouble) (err error) {
	d.page.Suggest(made.Send)
	if c.JSON {
		d.out.connected = &connected{Claim: made.Send, Until: made.Expires, Away: made.Away, Mended: made.Mended}
		return printed(c, c.PrintJSON(d.out))
	}
	c.Line("nized is connected to a pretended %s, until Ctrl-C. Open in a browser: %s", d.title, d.out.Page)
	c.Line("")
	c.Line("The first message is already entered there and makes you an admin: %s", display.Clean(made.Send))
	if made.Mended {
		c.Note("an earlier run was interrupted; its changes were undone first")
	}
	if made.Away != "" {
		c.Note("nized is disconnected from %s meanwhile; it answers messages there when this has ended", display.Clean(made.Away))
	}
	return printed(c, nil)
}
