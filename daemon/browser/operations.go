package browser

import (
	"context"
	"net/http"
	"strings"
	"time"

	"nize/bots"
	"nize/daemon/api"
	"nize/store"
)

// Where the page is told more than nizectl, the operation has the same address and
// its answer has what is added.
var (
	listApprovals = api.Op[reading, api.List[Card]](api.ListApprovals)
	getApproval   = api.Op[cardRequest, Card](api.GetApproval)
	getCall       = api.Op[api.CallRequest, callView](api.GetCall)
	whoAmI        = api.Op[api.Empty, person]{Method: "GET", Path: "/v1/me", Summary: "say who is signed in"}
)

// person is who is signed in.
type person struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Role     store.Role `json:"role"`
	Language string     `json:"language,omitempty"` // theirs; "" is the browser's
	Theme    string     `json:"theme"`
}

func (b *Browser) whoAmI(_ context.Context, by store.Caller, _ api.Empty) (person, error) {
	return person{ID: by.User, Name: by.Name, Role: by.Role, Language: store.Language(b.Config, by.User, ""), Theme: b.Config.Get(by.User, "theme")}, nil
}

// Card is a card with its words in the reader's language.
type Card struct {
	store.Card
	Words bots.CardParts `json:"words"`
}

// cardRequest names a call, and says who reads its card.
type cardRequest struct {
	ID string `path:"id" json:"-"`
	reading
}

// reading is what a request says of its reader.
type reading struct {
	Locale string `header:"Accept-Language" json:"-"`
	Zone   string `query:"zone" json:"-"`
}

// reader is who reads: their own settings go before what the browser says.
func (b *Browser) reader(by store.Caller, locale, zone string) bots.Reader {
	locale, _, _ = strings.Cut(locale, ",")
	r := bots.Reader{Locale: store.Language(b.Config, by.User, locale), Now: b.Now()}
	if at, err := time.LoadLocation(store.TimeZone(b.Config, by.User, zone)); err == nil {
		r.Zone = at
	}
	return r
}

func (b *Browser) card(card store.Card, r bots.Reader) Card {
	return Card{card, bots.PartsOf(card, r)}
}

// listApprovals lists the cards of waiting calls that the caller may see.
func (b *Browser) listApprovals(ctx context.Context, by store.Caller, req reading) (none api.List[Card], err error) {
	all, err := b.Approvals.List(ctx, by, api.Empty{})
	if err != nil {
		return none, err
	}
	r := b.reader(by, req.Locale, req.Zone)
	var list []Card
	for _, c := range all.Items {
		list = append(list, b.card(c, r))
	}
	return api.Items(list), nil
}

// getApproval shows one card, also of a call that is decided.
func (b *Browser) getApproval(ctx context.Context, by store.Caller, req cardRequest) (none Card, err error) {
	card, err := b.Approvals.Get(ctx, by, api.CallRequest{ID: req.ID})
	if err != nil {
		return none, err
	}
	return b.card(card, b.reader(by, req.Locale, req.Zone)), nil
}

// decide settles a waiting call by its card on a screen, which the digest names.
func (b *Browser) decide(ctx context.Context, by store.Caller, req api.DecideCallRequest) (none store.Call, err error) {
	switch {
	case req.Digest == "":
		return none, store.Errorf("%w decision: digest is required", store.ErrInvalid)
	case req.Verb == store.RunAll: // it would decide about cards that nobody says were on the screen
		return none, store.Errorf("%w decision: run each of the calls on its own card", store.ErrInvalid)
	}
	if req.Verb == store.Cancel { // who asked takes it back, and everybody else says no: as in every chat
		asked, err := b.Approvals.GetCall(ctx, by, api.CallRequest{ID: req.ID})
		if err != nil {
			return none, err
		}
		if asked.By != by.User {
			req.Verb = store.Deny
		}
	}
	call, err := b.Approvals.Decide(ctx, by, req)
	if call.By != by.User {
		call.Result = nil // its requester's
	}
	return call, err
}

// tooLate is the card that a decision was about, as it stands.
func (b *Browser) tooLate(r *http.Request) *Card {
	id, ok := strings.CutPrefix(r.URL.Path, "/v1/approvals/")
	by, in := b.Person(r)
	if !ok || !in {
		return nil
	}
	by.Surface, by.Token = store.OnWeb, ""
	card, err := b.getApproval(r.Context(), by, cardRequest{id, reading{r.Header.Get("Accept-Language"), r.URL.Query().Get("zone")}})
	if err != nil {
		return nil
	}
	return &card
}

// callView is a call as a person looks into it: numbers as they were written, and
// nothing that would steer what shows it.
type callView struct {
	store.Call
	ArgsText string       `json:"args_text"`
	Output   []outputPart `json:"output"`
}

// outputPart is one item of a result. An image is told from its bytes.
type outputPart struct {
	Text string `json:"text,omitempty"`
	JSON bool   `json:"json,omitempty"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data,omitempty"`
	Size int    `json:"size,omitempty"`
}

// getCall shows one call, with its result to its requester.
func (b *Browser) getCall(ctx context.Context, by store.Caller, req api.CallRequest) (none callView, err error) {
	call, err := b.Approvals.GetCall(ctx, by, req)
	if err != nil {
		return none, err
	}
	v := callView{Call: call, Output: []outputPart{}}
	v.ArgsText, _ = bots.PrettyJSON(call.Args)
	for _, image := range bots.ImagesOf(call).List {
		v.Output = append(v.Output, outputPart{Type: image.Type, Data: image.Data, Size: len(image.Data)})
	}
	for _, p := range bots.ResultParts(call.Result) {
		switch pretty, ok := bots.PrettyJSON([]byte(p.Text)); {
		case p.Data != nil && !strings.HasPrefix(p.Kind, "image/"):
			v.Output = append(v.Output, outputPart{Type: bots.Escape(p.Kind), Size: len(p.Data)})
		case p.Text == "":
		case ok:
			v.Output = append(v.Output, outputPart{Text: pretty, JSON: true})
		default:
			v.Output = append(v.Output, outputPart{Text: bots.Plain(p.Text)})
		}
	}
	v.Args, v.Result = nil, nil // they are said above, whole
	return v, nil
}
