package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/daemon/doctor"
)

func doctorCommand(a *command.App) *cli.Command {
	return a.Command(command.Leaf{Name: "doctor", Usage: "check the installation and suggest fixes", Run: doctorRun,
		More: "Exits 0 if there is no problem, 1 if there is one, and 3 without a daemon; then its files are checked.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "online", Usage: "ask the model providers too"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "omit checks that passed"},
			&cli.StringFlag{Name: "data-dir", Usage: "the daemon's data `DIR`, if none runs (default: $NIZE_DATA_DIR, or where nized puts it)"},
		}})
}

func doctorRun(ctx context.Context, c *command.Call) error {
	done := c.Busy("looking…")
	d, err := api.Doctor.Call(ctx, c.API, api.DoctorRequest{Online: c.Cmd.Bool("online")})
	done()
	if errors.Is(err, api.ErrNoDaemon) {
		dir := c.Cmd.String("data-dir")
		if dir == "" {
			dir = api.FindDataDir()
		}
		d = doctor.Examine(doctor.Look(dir, c.API.Socket))
	} else if err != nil {
		return err
	}
	if c.Cmd.Bool("quiet") {
		d.Findings = withoutOK(d.Findings)
	}
	if c.JSON {
		if err := c.PrintJSON(d); err != nil {
			return err
		}
	} else {
		printFindings(c, d)
	}
	switch {
	case err != nil:
		return err
	case !d.OK:
		return command.Failf(api.ExitFailed, "%s and %s", command.Count(d.Problems, "problem"), command.Count(d.Warnings, "warning"))
	case !c.JSON && d.Warnings > 0:
		c.Note("no problem, %s", command.Count(d.Warnings, "warning"))
	case !c.JSON:
		c.Note("all is well")
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

// printFindings prints one finding after the other, its text wrapped on a terminal, and the
// suggested command below it on a line of its own: a command that is cut to fit a column
// can't be used.
func printFindings(c *command.Call, d api.Diagnosis) {
	wide := 0
	for _, f := range d.Findings {
		wide = max(wide, len(f.Check))
	}
	for _, f := range d.Findings {
		text := f.Text.String()
		if f.Subject != "" {
			text = f.Subject + " " + text
		}
		level := c.Paint(levelColour(f.Level), fmt.Sprintf("%-8s", display.Clean(string(f.Level))))
		indent := 9 + wide + 2
		c.Line("%s %-*s  %s", level, wide, display.Clean(f.Check), c.Wrap(display.Clean(text), indent))
		if f.Cure != "" {
			c.Line("%s%s", strings.Repeat(" ", indent), c.Paint(command.Bold, display.Clean(f.Cure)))
		}
	}
}

func levelColour(l api.Level) string {
	switch l {
	case api.LevelOK:
		return command.Green
	case api.LevelWarning:
		return command.Yellow
	}
	return command.Red
}
