package main

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"nize/daemon/api"
)

// scriptHangup sends the daemon that answers a SIGHUP.
func scriptHangup(ts *testscript.TestScript, neg bool, args []string) {
	c := scriptClient(ts)
	defer c.Close()
	s, err := api.GetStatus.Call(context.Background(), c, api.Empty{})
	ts.Check(err)
	ts.Check(syscall.Kill(s.PID, syscall.SIGHUP))
}

// scriptWarned waits until a warning of the status matches.
func scriptWarned(ts *testscript.TestScript, neg bool, args []string) {
	c := scriptClient(ts)
	defer c.Close()
	pattern := regexp.MustCompile(strings.Join(args, " "))
	until(ts, "the warning", func(ctx context.Context) bool {
		s, err := api.GetStatus.Call(ctx, c, api.Empty{})
		return err == nil && slices.ContainsFunc(s.Warnings, pattern.MatchString)
	})
}

// scriptSetting waits until a setting has that value.
func scriptSetting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setting KEY VALUE")
	}
	c := scriptClient(ts)
	defer c.Close()
	until(ts, "the setting", func(ctx context.Context) bool {
		list, err := api.ListSettings.Call(ctx, c, api.ListSettingsRequest{})
		return err == nil && slices.ContainsFunc(list.Items, func(s api.Setting) bool { return s.Name == args[0] && s.Value == args[1] })
	})
}
