// Package invite builds the URL that adds the bot to a guild.
package invite

import (
	"net/url"
	"strconv"
)

// permissions are those that nize needs in a guild: view channels, send messages, create
// threads and send messages in them, attach files, read the message history.
const permissions = 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<35 | 1<<38

// URL returns the URL for an app; if guild is set, that guild is preselected.
func URL(app, guild string) string {
	q := url.Values{"client_id": {app}, "scope": {"bot applications.commands"}, "permissions": {strconv.Itoa(permissions)}}
	if guild != "" {
		q.Set("guild_id", guild)
		q.Set("disable_guild_select", "true")
	}
	return "https://discord.com/oauth2/authorize?" + q.Encode()
}
