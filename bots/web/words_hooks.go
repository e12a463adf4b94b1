package web

import "nize/store"

// hookWords are the texts of the hooks in the settings.
var hookWords = []store.Text{
	store.Textf("Hooks"),
	store.Textf("What runs before and after your calls, in this order. Yours run inside those of admins, which run first and last."),
	store.Textf("keeps a record"),
	store.Textf("decides which tools may be used"),
	store.Textf("limits how often"),
	store.Textf("changes or forbids arguments"),
	store.Textf("shortens results"),
	store.Textf("removes keys from results"),
	store.Textf("calls a program"),
	store.Textf("calls a service"),
	store.Textf("all tools"),
	store.Textf("all tools of {server}"),
	store.Textf("built in"),
	store.Textf("set by an admin"),
	store.Textf("Enabled"),
	store.Textf("Added."),
	store.Textf("Add a hook"),
	store.Textf("Name of a new hook"),
	store.Textf("What it does"),
	store.Textf("Only on this server"),
	store.Textf("every server"),
	store.Textf("Configuration, as JSON"),
	store.Textf("The configuration is not valid JSON."),
}
