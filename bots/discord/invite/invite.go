// Package invite makes the address at which the bot is let into a guild.
package invite

import (
	"net/url"
	"strconv"
)

// permissions are what nize does in a guild: see channels, write, open threads and
// write in them, attach files, read what was said.
const permissions = 1<<10 | 1<<11 | 1<<15 | 1<<16 | 1<<35 | 1<<38

// URL is the address for an app; with a guild, that one is chosen there.
func URL(app, guild string) string {
	q := url.Values{"client_id": {app}, "scope": {"bot applications.commands"}, "permissions": {strconv.Itoa(permissions)}}
	if guild != "" {
		q.Set("guild_id", guild)
		q.Set("disable_guild_select", "true")
	}
	return "https://discord.com/oauth2/authorize?" + q.Encode()
}
