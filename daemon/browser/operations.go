package browser

import (
	"context"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// If the page gets more than nizectl, the operation has the same path and its response has
// additional fields.
var (
	listApprovals = api.Op[reading, api.List[waitingCard]](api.ListApprovals)
	listDecided   = api.Op[reading, api.List[decidedCard]]{Method: "GET", Path: "/v1/approvals/decided", Summary: "list the calls that the caller decided recently"}
	getApproval   = api.Op[cardRequest, cardView](api.GetApproval)
	decideCall    = api.Op[decideRequest, decided](api.DecideCall)
	getCall       = api.Op[api.CallRequest, callView](api.GetCall)
	getResult     = api.Download[resultRequest]{Method: "GET", Path: "/v1/calls/{id}/result", Summary: "download what a call returned"}
	whoAmI        = api.Op[api.Empty, person]{Method: "GET", Path: "/v1/me", Summary: "show who is signed in"}
)

// person is the signed-in user.
type person struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Role     store.Role `json:"role"`
	Language string     `json:"language,omitempty"` // the person's setting; "" is the browser's
	Theme    string     `json:"theme"`
	Zone     string     `json:"zone,omitempty"` // the person's setting; "" is the browser's
}

func (b *Browser) whoAmI(_ context.Context, by store.Caller, _ api.Empty) (person, error) {
	p := person{ID: by.User, Name: by.Name, Role: by.Role, Language: store.Language(b.Config, by.User, ""), Theme: b.Config.Get(by.User, "theme")}
	if zone := store.TimeZone(b.Config, by.User, store.Auto); zone != store.Auto {
		p.Zone = zone
	}
	return p, nil
}

// reading is a request's description of its reader.
type reading struct {
	Locale string `header:"Accept-Language" json:"-"`
	Zone   string `query:"zone" json:"-"`
}

// reader returns the reader of a response: their own settings take precedence over the
// browser's.
func (b *Browser) reader(by store.Caller, locale, zone string) bots.Reader {
	locale, _, _ = strings.Cut(locale, ",")
	r := bots.Reader{Locale: store.Language(b.Config, by.User, locale), Now: b.Now()}
	if at, err := time.LoadLocation(store.TimeZone(b.Config, by.User, zone)); err == nil {
		r.Zone = at
	}
	return r
}
