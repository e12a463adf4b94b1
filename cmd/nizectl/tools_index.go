package main

import (
	"cmp"
	"context"
	"fmt"

	"nize/cmd/nizectl/command"
	"nize/daemon/api"
)

// toolsIndex prints what is embedded for searches, and the model.
func toolsIndex(ctx context.Context, c *command.Call) error {
	v, err := api.GetIndex.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(v)
	}
	c.Field("model", v.Model)
	if v.Wanted != "" {
		c.Field("next model", v.Wanted+", which serves once every tool has its vector")
	}
	c.Field("state", v.State)
	c.Field("embedded", fmt.Sprintf("%d of %s", v.Embedded, command.Count(v.Tools, "tool")))
	c.Field("computed", fmt.Sprintf("%s since nized started", command.Count(v.Computed, "vector")))
	switch {
	case v.Failures > 0:
		c.Field("failures", fmt.Sprintf("%d in a row, the last %s: %s", v.Failures, c.When(v.FailedAt), v.LastError))
	case v.LastError != "":
		c.Field("failure", v.LastError)
	}
	c.Line("")
	t := c.Table("SERVER", "TOOLS", "EMBEDDED", "PENDING", "WITHOUT", "HELD", "TAKEN IN", "NEWEST VECTOR", "LAST ERROR").Numbers(1, 2, 3, 4, 5).Text(8)
	for _, s := range v.Servers {
		t.Row(s.Name, fmt.Sprint(s.Tools), fmt.Sprint(s.Embedded), fmt.Sprint(s.Pending), fmt.Sprint(s.Without), fmt.Sprint(s.Held), c.When(s.Taken), c.When(s.Filled), cmp.Or(s.LastError, "-"))
	}
	t.Print("no servers")
	return nil
}
