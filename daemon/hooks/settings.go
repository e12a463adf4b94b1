package hooks

import "nize/store"

// Settings are the settings of hooks.
var Settings = []store.Key{
	{Name: "limits.user.hooks", Category: store.AboutLimits, Label: store.Textf("Hooks per person"), Kind: store.KindInt, Default: "20", Min: 0, Max: 1000, Help: store.Textf("hooks that one person may set for their own calls; 0 lets none be set")},
}
