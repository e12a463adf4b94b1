package company

import "nize/store"

// Settings are the settings of the company's identity provider.
var Settings = []store.Key{
	{Name: "oidc.admin_groups", Category: store.AboutClients, Label: store.Textf("Admins by group"), Kind: store.KindList, Default: "", Help: store.Textf("groups of the identity provider whose members are admins; a role that came this way ends with the membership; empty is none")},
	{Name: "oidc.allowed_groups", Category: store.AboutClients, Label: store.Textf("Groups that may sign in"), Kind: store.KindList, Default: "", Help: store.Textf("groups of the identity provider whose members may sign in; if empty, everyone whom the provider lets in")},
	{Name: "oidc.link_by_email", Category: store.AboutClients, Label: store.Textf("Link people by email address"), Kind: store.KindBool, Default: "false", Help: store.Textf("whether a person who signs in with the identity provider for the first time becomes the one person in nize with the same email address, if the provider verified it; otherwise they become a new member")},
	{Name: "oidc.required", Category: store.AboutClients, Label: store.Textf("Sign in with the identity provider alone"), Kind: store.KindBool, Default: "false", Help: store.Textf("whether browsers and MCP clients sign in with the identity provider alone, without codes and links; the control socket stays as it is")},
}
