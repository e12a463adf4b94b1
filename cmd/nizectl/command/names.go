package command

import (
	"context"
	"errors"
	"strings"

	"nize/daemon/api"
	"nize/store"
)

// ServerNames and the other …Names here are Completers used by more than one noun.
func ServerNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := api.ListServers.Call(ctx, c, api.Empty{})
	return Each(items.Items, func(s api.ServerView) string { return s.Server.Name }), err
}

func ToolNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := api.ListTools.Call(ctx, c, api.ListToolsRequest{})
	return Each(items.Items, func(t api.ToolView) string { return t.ID }), err
}

// audienceNames returns those with whom a server can be shared.
func audienceNames(ctx context.Context, c *api.Client) ([]string, error) {
	groups, err := api.ListGroups.Call(ctx, c, api.Empty{})
	users, usersErr := UserNames(ctx, c)
	names := append([]string{"all"}, Each(groups.Items, func(g api.GroupView) string { return "group:" + g.Name })...)
	return append(names, Each(users, func(u string) string { return "user:" + u })...), errors.Join(err, usersErr)
}

func DomainNames(ctx context.Context, c *api.Client) ([]string, error) {
	items, err := api.ListDomains.Call(ctx, c, api.Empty{})
	return Each(items.Items, func(d api.Domain) string { return d.ID }), err
}

func AgentNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListAgents.Call(ctx, c, api.Empty{})
	return Each(list.Items, func(a store.Agent) string { return a.ID }), err
}

// ChannelNames returns the ids that a platform shows; the daemon determines the platform.
func ChannelNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListChannels.Call(ctx, c, api.Empty{})
	return Each(list.Items, func(v api.ChannelView) string { return v.Place[strings.LastIndexByte(v.Place, ':')+1:] }), err
}

func ModelNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListModels.Call(ctx, c, api.Empty{})
	return Each(list.Items, func(m api.ModelView) string { return m.Name }), err
}

func UserNames(ctx context.Context, c *api.Client) ([]string, error) {
	list, err := api.ListUsers.Call(ctx, c, api.Empty{})
	return Each(list.Items, func(u store.User) string { return u.Name }), err
}

// UserNames returns the names of users by id. If the caller may not list users, it returns
// none, and ids are shown.
func (c *Call) UserNames(ctx context.Context) map[string]string {
	list, err := api.ListUsers.Call(ctx, c.API, api.Empty{})
	if err != nil {
		return map[string]string{}
	}
	names := make(map[string]string, len(list.Items))
	for _, u := range list.Items {
		names[u.ID] = u.Name
	}
	return names
}
