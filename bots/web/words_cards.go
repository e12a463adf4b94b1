package web

import "nize/store"

// cardWords are what cards, results and notifications say.
var cardWords = []store.Text{
	store.Textf("(needed)"),
	store.Textf("All of them run together once each card was on the screen, whole."),
	store.Textf("Always allow"),
	store.Textf("Deny always"),
	store.Textf("Edit"),
	store.Textf("Cancel with a reason"),
	store.Textf("Cancel with this reason"),
	store.Textf("For others to decide"),
	store.Textf("Leave out"),
	store.Textf("Nothing was run: see what is said above."),
	store.Textf("Notifications: off"),
	store.Textf("Notifications: on"),
	store.Textf("Raw"),
	store.Textf("Run all {n}"),
	store.Textf("Scroll up: one line not seen yet"),
	store.Textf("Scroll up: {n} lines not seen yet"),
	store.Textf("Show more: {n} of {all} characters"),
	store.Textf("Show more: {n} of {all} lines"),
	store.Textf("The form shows what was there before: the JSON beside it can’t be read."),
	store.Textf("This browser does not allow them here."),
	store.Textf("This call is cancelled, and such calls are refused from now on."),
	store.Textf("This call is run, and such calls run without asking from now on."),
	store.Textf("This is no JSON: line {line}, column {column}"),
	store.Textf("This is no value yet."),
	store.Textf("This is the beginning; the file has all {n} bytes."),
	store.Textf("Why not? The model reads it."),
	store.Textf("With what is not seen in it:"),
	store.Textf("no"),
	store.Textf("yes"),
	store.Textf("one more: {name}"),
	store.Textf("{n} characters"),
}
