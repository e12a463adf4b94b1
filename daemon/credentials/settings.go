package credentials

import "nize/store"

// Settings are the settings of credentials.
var Settings = []store.Key{
	{Name: "limits.credentials", Category: store.AboutLimits, Label: store.Textf("Credentials of all people"), Kind: store.KindInt, Default: "20000", Min: 0, Max: 1000000, Help: store.Textf("credentials that are kept for all people together, apart from those of the system, of teams and of projects")},
	{Name: "limits.user.credentials", Category: store.AboutLimits, Label: store.Textf("Credentials per person"), Kind: store.KindInt, Default: "100", Min: 0, Max: 10000, Help: store.Textf("credentials that one person may have; 0 lets none be added")},
}
