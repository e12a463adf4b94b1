package signin

import "nize/store"

// Settings are the settings of signing in.
var Settings = []store.Key{
	{Name: "oauth.access_expiry", Category: store.AboutClients, Label: store.Textf("Life of access tokens"), Kind: store.KindDuration, Default: "1h", Min: 60, Max: 86400, Help: store.Textf("how long an access token works that a client got by signing in; it gets the next one by itself")},
	{Name: "oauth.clients", Category: store.AboutClients, Label: store.Textf("Clients that people may sign in to"), Kind: store.KindList, Default: "", Help: store.Textf("hosts whose clients may ask people to sign in, such as claude.ai; a client that registers itself counts by where it takes its code; empty is all")},
	{Name: "oauth.redirect_schemes", Category: store.AboutClients, Label: store.Textf("Redirect schemes"), Kind: store.KindList, Default: "cursor", Help: store.Textf("schemes besides https, and http on this machine, by which a client may take its code: those of programs that register one of their own")},
	{Name: "oauth.refresh_grace", Category: store.AboutClients, Label: store.Textf("Grace time of refresh tokens"), Kind: store.KindDuration, Default: "2m", Min: 0, Max: 3600, Help: store.Textf("how long a refresh token that was used still works, for clients that refresh several times at once; used later, it ends what was signed in")},
	{Name: "oauth.registration", Category: store.AboutClients, Label: store.Textf("Clients may register"), Kind: store.KindBool, Default: "true", Help: store.Textf("whether a client without a metadata document may register itself")},
}
