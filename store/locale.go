package store

import "strings"

// Auto is the value of the settings language and timezone that selects the chat's value.
const Auto = "auto"

// UserConfig is a [Config] that also returns what a user set for themselves, "" for
// nothing. The daemon's Config implements it.
type UserConfig interface {
	UserValue(user, key string) string
}

// Language returns the BCP 47 locale of nize's messages to a user in a chat of that locale
// ("" if the chat has none): the user's own choice, else the chat's, else the system's; ""
// is English.
func Language(c Config, user, chat string) string {
	choice := preferred(c, user, "language", chat)
	// The chat specifies the variant of English or Chinese.
	if base, _, _ := strings.Cut(strings.ReplaceAll(chat, "_", "-"), "-"); strings.EqualFold(base, choice) {
		return chat
	}
	return choice
}

// TimeZone returns the IANA name of the zone for times shown to a user in a chat,
// determined like [Language]; "" is UTC.
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
