package documents

import "nize/store"

// Settings are the settings of documents.
var Settings = []store.Key{
	{Name: "limits.documents.count", Category: store.AboutLimits, Label: store.Textf("Documents of one owner"), Kind: store.KindInt, Default: "10000", Min: 0, Max: 100000, Help: store.Textf("documents of one person, team or project that are kept")},
	{Name: "limits.documents.size", Category: store.AboutLimits, Label: store.Textf("Largest document"), Kind: store.KindInt, Default: "8388608", Min: 1024, Max: 64 << 20, Help: store.Textf("bytes of a file that may be saved as a document, and of its text")},
	{Name: "limits.documents.stored", Category: store.AboutLimits, Label: store.Textf("Storage for documents"), Kind: store.KindInt, Default: "4294967296", Min: 0, Max: 1 << 40, Help: store.Textf("bytes of text of all documents together; nothing more is saved beyond them")},
	{Name: "limits.user.documents", Category: store.AboutLimits, Label: store.Textf("Storage for documents per person"), Kind: store.KindInt, Default: "268435456", Min: 1, Max: 1 << 40, Help: store.Textf("bytes of text in the documents that one person saved for themselves, a team or a project")},
	{Name: "retention.documents", Category: store.AboutRetention, Label: store.Textf("Keep documents"), Kind: store.KindDuration, Default: "1095d", Min: 3600, Help: store.Textf("how long a document is kept after it was saved")},
}
