package web

import "nize/store"

// linkWords are the texts of the page that a link opens.
var linkWords = []store.Text{
	store.Textf("Asked by"),
	store.Textf("It has expired, the result was erased, or the address is not whole."),
	store.Textf("Open again"),
	store.Textf("Open the conversation"),
	store.Textf("Server"),
	store.Textf("Sign in as who asked for it."),
	store.Textf("There is nothing behind this link."),
	store.Textf("This result is for one person."),
	store.Textf("You are not signed in, so what it asks nize for is refused."),
}

func init() { words = append(words, linkWords...) }
