package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/daemon/api"
	"nize/store"
)

// longestNumber is the maximum number of digits of an event's number; an id, which may
// consist of digits, is longer.
const longestNumber = 12

// auditShow prints an event by its number, or the events about a record by its id.
func auditShow(ctx context.Context, c *command.Call) error {
	var events []store.Event
	var err error
	given := strings.TrimSpace(c.Arg(0))
	if n, parseErr := strconv.ParseUint(given, 10, 64); parseErr == nil && len(given) <= longestNumber {
		events, err = eventNumbered(ctx, c, n)
	} else {
		events, err = eventsAbout(ctx, c, given)
	}
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return command.Failf(api.ExitNotFound, "no event %s: nizectl audit lists them, with --json their numbers and subjects", given)
	}
	if c.JSON {
		return c.PrintJSON(events)
	}
	for i, e := range events {
		if i > 0 {
			c.Line("")
		}
		showEvent(c, e)
	}
	return nil
}

// eventNumbered returns the event of that number; nil if there is none.
func eventNumbered(ctx context.Context, c *command.Call, n uint64) ([]store.Event, error) {
	for e, err := range api.ReadAudit.Call(ctx, c.API, api.AuditRequest{Before: n + 1, Limit: 1, Reason: c.Cmd.String("reason")}) {
		if err != nil {
			return nil, err
		}
		if e.Seq == n && e.Kind != api.LateKind {
			return []store.Event{e}, nil
		}
	}
	return nil, nil
}

// eventsAbout returns the events whose subject has the id, oldest first. An id of nize
// begins with its creation time, before which there is no event about it.
func eventsAbout(ctx context.Context, c *command.Call, given string) ([]store.Event, error) {
	q := api.AuditRequest{Reason: c.Cmd.String("reason"), Limit: mostEvents}
	if made, ok := store.TimeOfID(strings.ToUpper(given)); ok && made.Before(c.Now()) {
		q.Since = made.Add(-time.Second)
	}
	var all []store.Event
	var subjects []command.ID
	for e, err := range api.ReadAudit.Call(ctx, c.API, q) {
		if err != nil {
			return nil, err
		}
		if e.Subject == given {
			all, subjects = append(all, e), []command.ID{{ID: given}}
		} else if strings.HasPrefix(e.Subject, strings.ToUpper(given)) && store.ValidID(e.Subject) {
			all, subjects = append(all, e), append(subjects, command.ID{ID: e.Subject, About: cmp.Or(e.Tool, e.Kind)})
		}
	}
	id, err := command.WholeID(ctx, c.API, given, func(context.Context, *api.Client) ([]command.ID, error) { return subjects, nil })
	if err != nil {
		return nil, err
	}
	var events []store.Event
	for _, e := range all {
		if e.Subject == id {
			events = append(events, e)
		}
	}
	return events, nil
}

// mostEvents is how many of the newest events are searched for a subject.
const mostEvents = 200_000

// showEvent prints all fields of an event.
func showEvent(c *command.Call, e store.Event) {
	who := cmp.Or(e.UserName, e.User)
	if who == "" && e.Erased {
		who = "(erased)"
	}
	c.Field("event", fmt.Sprint(e.Seq))
	c.Field("time", e.At.Local().Format("2006-01-02 15:04:05.000 -07:00"))
	c.Field("who", who)
	c.Field("surface", string(e.Surface))
	c.Field("identity", e.Identity)
	c.Field("address", e.Address)
	c.Field("token", e.Token)
	c.Field("kind", e.Kind)
	subject := e.Subject
	if e.SubjectName != "" {
		subject += " (" + e.SubjectName + ")"
	}
	c.Field("subject", subject)
	c.Field("tool", e.Tool)
	c.Field("outcome", e.Outcome.Word().String())
	if len(e.Data) > 0 && string(e.Data) != "null" {
		c.Line("%s", c.Paint(command.Bold, "data:"))
		c.Line("%s", display.CleanLines(command.Indent(command.PrettyJSON(e.Data))))
	}
}
