package web

import "nize/store"

// placeWords are what the places besides conversations say.
var placeWords = []store.Text{
	store.Textf("By day"),
	store.Textf("Cost"),
	store.Textf("Day"),
	store.Textf("Default"),
	store.Textf("Default: {value}"),
	store.Textf("For everybody: {value}"),
	store.Textf("Nothing was used."),
	store.Textf("Save"),
	store.Textf("Saved."),
	store.Textf("Set for everybody"),
	store.Textf("Settings"),
	store.Textf("The most that is allowed here is {value}."),
	store.Textf("Tokens"),
	store.Textf("Usage"),
	store.Textf("Use that"),
	store.Textf("Your own"),
	store.Textf("automatic"),
	store.Textf("dark"),
	store.Textf("empty"),
	store.Textf("light"),
	store.Textf("off"),
	store.Textf("on"),
}
