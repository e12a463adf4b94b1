package main

import (
	"context"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

func serverNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Servers(ctx)
	return each(items, func(s api.ServerView) string { return s.Server.Name }), err
}

// toolNames offers server.tool, since a colon ends a word in a shell; toolID
// reads it back.
func toolNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Tools(ctx, "")
	return each(items, func(t api.ToolView) string { return strings.Replace(t.ID, ":", ".", 1) }), err
}

func domainNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Domains(ctx)
	return each(items, func(d api.Domain) string { return d.ID }), err
}

func agentNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Agents(ctx)
	return each(list, func(a store.Agent) string { return a.ID }), err
}

// channelNames offers places without a colon, since that ends a word in a
// shell; the daemon reads them back.
func channelNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Channels(ctx)
	return each(list, func(v api.ChannelView) string { return v.Place[strings.LastIndexByte(v.Place, ':')+1:] }), err
}

func modelNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := c.Models(ctx)
	return each(list, func(m api.ModelView) string { return m.Name }), err
}

func userNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := c.Users(ctx)
	return each(items, func(u store.User) string { return u.Name }), err
}

// userNames are the names behind ids. Who may not list people gets none, and is
// shown the ids.
func (c *call) userNames(ctx context.Context) map[string]string {
	users, err := c.api.Users(ctx)
	if err != nil {
		return map[string]string{}
	}
	names := make(map[string]string, len(users))
	for _, u := range users {
		names[u.ID] = u.Name
	}
	return names
}
