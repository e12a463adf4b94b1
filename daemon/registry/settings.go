package registry

import "nize/store"

// Settings are the settings of the registry.
var Settings = []store.Key{
	{Name: "registry.url", Category: store.AboutClients, Label: store.Textf("MCP registry"), Kind: store.KindText, Default: "https://registry.modelcontextprotocol.io", Help: store.Textf("MCP registry that servers search and servers add --registry ask: an https address, http on this machine, or off")},
}
