package store

import "strings"

// Auto is the value of the settings language and timezone that leaves them to
// the chat.
const Auto = "auto"

// UserConfig is a [Config] that knows what a user set for themselves, "" for
// nothing. The roof's is one.
type UserConfig interface {
	UserValue(user, key string) string
}

// Language is the BCP 47 locale in which nize speaks to a user in a chat of
// that locale ("" if the chat has none): the user's own choice, else the
// chat's, else the system's; "" is English.
func Language(c Config, user, chat string) string {
	choice := preferred(c, user, "language", chat)
	// The chat knows better which English or Chinese it is.
	if base, _, _ := strings.Cut(strings.ReplaceAll(chat, "_", "-"), "-"); strings.EqualFold(base, choice) {
		return chat
	}
	return choice
}

// TimeZone is the IANA name of the zone of the times that a user reads in a
// chat, found like [Language]; "" is UTC.
func TimeZone(c Config, user, chat string) string { return preferred(c, user, "timezone", chat) }

func preferred(c Config, user, key, chat string) string {
	if c == nil {
		return chat
	}
	if o, ok := c.(UserConfig); ok && user != "" {
		if own := o.UserValue(user, key); own != "" && own != Auto {
			return own
		}
	}
	if chat != "" {
		return chat
	}
	if system := c.Get("", key); system != Auto {
		return system
	}
	return ""
}
