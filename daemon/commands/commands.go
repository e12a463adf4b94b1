// Package commands implements the chat commands, the dialog of a channel, and the content
// of the App Home.
//
// It calls the operations that nizectl calls, never the store, so people see only what they
// may see, by the same rules as over the control socket.
package commands

import (
	"context"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/connect"
	"nize/daemon/control"
	"nize/daemon/credentials"
	"nize/daemon/people"
	"nize/daemon/settings"
	"nize/daemon/signin"
	"nize/daemon/spending"
	"nize/store"
)

// Commands implements the commands about nize itself.
type Commands struct {
	Agents        *control.Agents
	Approvals     *control.Approvals
	Budgets       *spending.Budgets
	Channels      *control.Channels
	Conversations *control.Conversations
	Credentials   *credentials.Credentials
	Connect       *connect.Connect
	Grants        *control.Grants
	Links         *people.Links
	Models        *control.Models
	Servers       *control.Servers
	Settings      *settings.Settings
	Keys          []store.Key // of all settings
	SignIns       *signin.Server
	Tokens        *control.Tokens
	Tools         *control.Tools
	Usage         *spending.Usage
	// BaseURL returns the URL at which MCP clients reach nized; known is true if an admin
	// set it.
	BaseURL func() (url string, known bool)
	Now     func() time.Time
}

// List returns the commands.
func (cmd *Commands) List() []bots.Command {
	one := func(words string) bool { return !strings.ContainsAny(words, " \n") }
	any := func(string) bool { return true }
	return []bots.Command{
		{Name: "tools", Args: "QUERY", About: phrases.AboutTools, Group: phrases.HelpTools, Fits: any, Run: cmd.sayTools},
		{Name: "servers", Args: "[allow|deny NAME]", About: phrases.AboutServers, Group: phrases.HelpTools, Fits: isServerWords, Most: 2, Run: cmd.sayServers},
		{Name: "agent", Args: "[NAME]", About: phrases.AboutAgent, Group: phrases.HelpTalk, Fits: one, Most: 1, Run: cmd.sayAgent},
		{Name: "model", Args: "[NAME]", About: phrases.AboutModel, Group: phrases.HelpTalk, Fits: one, Most: 1, Run: cmd.sayModel},
		{Name: "streaming", Args: "[on|off]", About: phrases.AboutStreaming, Group: phrases.HelpTalk, Fits: isStreaming, Most: 1, Run: cmd.sayStreaming},
		{Name: "usage", Args: "[DAYS]", About: phrases.AboutUsage, Group: phrases.HelpYou, Fits: isDays, Most: 1, Run: cmd.sayUsage},
		{Name: "approvals", About: phrases.AboutApprovals, Group: phrases.HelpTools, Run: cmd.sayApprovals},
		{Name: "settings", Args: "[show|NAME VALUE|revoke ID]", About: phrases.AboutSettings, Group: phrases.HelpYou, Fits: cmd.isSetting, Form: settingsForm{cmd}, Most: 2, Run: cmd.saySettings},
		{Name: "channel", Args: "[NAME VALUE]", About: phrases.AboutChannel, Group: phrases.HelpTalk, Fits: isChannelWords, Form: channelForm{cmd}, Most: 2, Here: func(a bots.Asked) bool { return a.At.Shared() }, Run: cmd.sayChannel},
		{Name: "credentials", Args: "[connect|disconnect SERVER]", About: phrases.AboutCredentials, Group: phrases.HelpYou, Fits: maybeCredential, Most: 3, Run: cmd.sayCredentials},
		{Name: "connect", About: phrases.AboutConnect, Group: phrases.HelpYou, Run: cmd.sayConnect},
		{Name: "tokens", Args: "[revoke NAME]", About: phrases.AboutTokens, Group: phrases.HelpYou, Fits: isTokenWords, Secret: makesToken, Most: 2, Run: cmd.sayTokens},
		{Name: "login", Args: "CODE", About: phrases.AboutLogin, Group: phrases.HelpYou, Fits: maybeLogin, Most: 2, Run: cmd.sayLogin},
		{Name: "link", Args: "[CODE]", About: phrases.AboutLink, Group: phrases.HelpYou, Fits: maybeLink, Most: 2, Run: cmd.sayLink},
		{Name: "privacy", About: phrases.AboutPrivacy, Group: phrases.HelpYou, Run: cmd.sayPrivacy},
		{Name: "forget", About: phrases.AboutForget, Group: phrases.HelpTalk, Fits: isForget, Most: 1, Here: bots.InThread, Run: cmd.sayForget},
	}
}

// zoneOf returns a person's time zone, UTC if it is unknown.
func zoneOf(a bots.Asked) *time.Location {
	if at, err := time.LoadLocation(a.Zone); err == nil {
		return at
	}
	return time.UTC
}

// scopeAt returns the restriction of tools in the conversation of a command, or in its
// channel.
func (cmd *Commands) scopeAt(ctx context.Context, a bots.Asked) (store.Scope, error) {
	if a.Thread == "" {
		return store.Scope{Place: a.At.Place()}, nil
	}
	th, err := cmd.Conversations.Find(ctx, a.Thread)
	if err != nil {
		return store.Scope{}, err
	}
	return store.Scope{Agent: th.Agent, Servers: th.Servers, Thread: th.ID}, nil
}
