package views

import "nize/store"

// Settings are the settings of views.
var Settings = []store.Key{
	{Name: "limits.user.views", Category: store.AboutLimits, Label: store.Textf("Views being opened per person"), Kind: store.KindInt, Default: "16777216", Min: 1 << 20, Max: 1 << 30, Help: store.Textf("bytes of views that one person may be opening at once; beyond that, the oldest is dropped")},
	{Name: "limits.views", Category: store.AboutLimits, Label: store.Textf("Views being opened"), Kind: store.KindInt, Default: "67108864", Min: 1 << 20, Max: 1 << 34, Help: store.Textf("bytes of views that may be opening at once, for everybody together; beyond that, the person with the most loses the oldest")},
	{Name: "web.link_expiry", Category: store.AboutClients, Label: store.Textf("Links to views"), Kind: store.KindDuration, Default: "24h", Min: 60, Max: 30 * 86400, Help: store.Textf("how long a link in a chat opens the view of a result, counted from when its tool had run")},
}
