package web

import "nize/store"

// viewWords are the texts about tools' views.
var viewWords = []store.Text{
	store.Textf("Larger"),
	store.Textf("Smaller"),
	store.Textf("The view of {tool} did not start. This is the plain result:"),
	store.Textf("The view of {tool} is closed."),
	store.Textf("The view of {tool} was stopped: it sent too much."),
	store.Textf("The view of {tool} was stopped: it took the keyboard."),
	store.Textf("shown by {server}"),
	store.Textf("{tool}, shown by {server}"),
	store.Textf("Dismiss"),
	store.Textf("Open"),
	store.Textf("Save file"),
	store.Textf("{server} suggests:"),
	store.Textf("{server} wants to open an address"),
	store.Textf("{server} wants to save a file"),
}

func init() { words = append(words, viewWords...) }
