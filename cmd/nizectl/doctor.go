package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/daemon/doctor"
)

func (a *app) doctor() *cli.Command {
	return a.command(leaf{name: "doctor", usage: "look nize over: what is wrong, and the command that cures it", run: doctorRun,
		more: "Exits 0 if there is no problem, 1 if there is one; 3 without a daemon, of which the files are looked at.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: "online", Usage: "ask the model providers too"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "leave out what is well"},
			&cli.StringFlag{Name: "data-dir", Usage: "the daemon's data `DIR`, where none runs (default: $NIZE_DATA_DIR, or where nized puts it)"},
		}})
}

func doctorRun(ctx context.Context, c *call) error {
	done := c.busy("looking…")
	d, err := api.Doctor.Call(ctx, c.api, api.DoctorRequest{Online: c.cmd.Bool("online")})
	done()
	if errors.Is(err, api.ErrNoDaemon) {
		dir := c.cmd.String("data-dir")
		if dir == "" {
			dir = api.FindDataDir()
		}
		d = doctor.Examine(doctor.Look(dir, c.api.Socket))
	} else if err != nil {
		return err
	}
	if c.cmd.Bool("quiet") {
		d.Findings = withoutOK(d.Findings)
	}
	if c.json {
		if err := c.printJSON(d); err != nil {
			return err
		}
	} else {
		c.printFindings(d)
	}
	switch {
	case err != nil:
		return err
	case !d.OK:
		return failf(api.ExitFailed, "%s and %s", count(d.Problems, "problem"), count(d.Warnings, "warning"))
	case !c.json && d.Warnings > 0:
		c.note("no problem, %s", count(d.Warnings, "warning"))
	case !c.json:
		c.note("all is well")
	}
	return nil
}

func withoutOK(all []api.Finding) []api.Finding {
	rest := []api.Finding{}
	for _, f := range all {
		if f.Level != api.LevelOK {
			rest = append(rest, f)
		}
	}
	return rest
}

// printFindings prints one finding after the other, its text wrapped on a
// terminal, and its cure below it on a line of its own: a command that is cut
// to a column is of no use.
func (c *call) printFindings(d api.Diagnosis) {
	wide := 0
	for _, f := range d.Findings {
		wide = max(wide, len(f.Check))
	}
	for _, f := range d.Findings {
		text := f.Text
		if f.Subject != "" {
			text = f.Subject + " " + text
		}
		level := c.paint(levelColour(f.Level), fmt.Sprintf("%-8s", string(f.Level)))
		indent := 9 + wide + 2
		c.line("%s %-*s  %s", level, wide, display.Clean(f.Check), c.wrap(display.Clean(text), indent))
		if f.Cure != "" {
			c.line("%s%s", strings.Repeat(" ", indent), c.paint(bold, display.Clean(f.Cure)))
		}
	}
}

func levelColour(l api.Level) string {
	switch l {
	case api.LevelOK:
		return green
	case api.LevelWarning:
		return yellow
	}
	return red
}
