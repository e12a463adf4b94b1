package doctor

import (
	"time"

	"nize/daemon/api"
	"nize/store"
)

// Group is a group whose members come from a chat platform.
type Group struct {
	Name   string
	Shut   bool // the last check is too old to allow anything
	Looked time.Time
	Error  string // of the last check
}

func groups(f Facts) []api.Finding {
	var all []api.Finding
	for _, g := range f.Groups {
		cure := "nizectl groups show " + g.Name
		var found []api.Finding
		switch {
		case g.Shut && g.Error != "":
			found = problem(store.Textf("it grants nothing, since its members can't be looked up: %s", g.Error), cure)
		case g.Shut:
			found = warning(store.Textf("it grants nothing until its members are looked up"), cure)
		case g.Error != "":
			found = warning(store.Textf("its members were looked up %s ago and can't be looked up now: %s", span(f.Now.Sub(g.Looked)), g.Error), cure)
		default:
			found = ok(store.Textf("its members were looked up %s ago", span(f.Now.Sub(g.Looked))))
		}
		found[0].Subject = g.Name
		all = append(all, found...)
	}
	if len(all) == 0 {
		return ok(store.Textf("no group has its members on a chat platform"))
	}
	return all
}
