package web

import "nize/store"

// viewWords are what the page says of tools' views.
var viewWords = []store.Text{
	store.Textf("Larger"),
	store.Textf("Smaller"),
	store.Textf("The view of {tool} did not start. This is the plain result:"),
	store.Textf("The view of {tool} is closed."),
	store.Textf("The view of {tool} was stopped: it sent too much."),
	store.Textf("shown by {server}"),
	store.Textf("{tool}, shown by {server}"),
}

func init() { words = append(words, viewWords...) }
