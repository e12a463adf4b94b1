package browser

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/web"
	"nize/daemon/api"
	"nize/store"
)

// Where the page is told more than nizectl, the operation has the same address and
// its answer has what is added.
var (
	showConversation = api.Op[showRequest, conversation]{Method: "GET", Path: api.ShowConversation.Path, Summary: "show a conversation"}
	listApprovals    = api.Op[reading, api.List[Card]](api.ListApprovals)
	getApproval      = api.Op[cardRequest, Card](api.GetApproval)
	getCall          = api.Op[api.CallRequest, callView](api.GetCall)
	whoAmI           = api.Op[api.Empty, person]{Method: "GET", Path: "/v1/me", Summary: "say who is signed in"}
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

// send takes a message, and shows it in every tab.
func (b *Browser) send(ctx context.Context, by store.Caller, req api.SendMessageRequest) (none api.Empty, err error) {
	if _, err := b.Conversations.Send(ctx, by, req); err != nil {
		return none, err
	}
	in := store.Inbound{Key: req.Conversation + ":" + req.Key, By: by, Text: req.Text}
	in.Mask()
	b.Platform.Said(req.Conversation, web.Said(in, b.Now()))
	return none, nil
}

// pageSize is how many messages a page gets at a time.
const pageSize = 50

// showRequest names a conversation and the turn before which its messages are read;
// 0 is the end.
type showRequest struct {
	ID     string `path:"id" json:"-"`
	Before int    `query:"before" json:"-"`
	reading
}

// conversation is a part of one.
type conversation struct {
	Thread   store.Thread  `json:"thread"`
	Messages []web.Message `json:"messages"`
	From     int           `json:"from"` // the turn that the first message is of
	More     bool          `json:"more"` // something was said before it
}

func (b *Browser) show(ctx context.Context, by store.Caller, req showRequest) (conversation, error) {
	return b.read(ctx, by, req.ID, req.Before, b.reader(by, req.Locale, req.Zone))
}

// read reads the messages of a conversation that are before a turn, as its reader
// may read them. Nobody gives a reason here, so admins read no others'.
func (b *Browser) read(ctx context.Context, by store.Caller, id string, before int, r bots.Reader) (none conversation, err error) {
	queued, err := b.queued(ctx, id) // before the turns: what leaves the queue is one
	if err != nil {
		return none, err
	}
	by.Role = store.Member
	view, err := b.Conversations.Show(ctx, by, api.ShowConversationRequest{ID: id})
	if err != nil {
		return none, err
	}
	turns := view.Turns
	if before > 0 {
		queued = nil
		turns = slices.DeleteFunc(turns, func(t store.Turn) bool { return t.N >= before })
	}
	from, n := len(turns), 0
	for ; from > 0; from-- {
		if n += web.CountMessages(turns[from-1]); n > pageSize && from < len(turns) {
			break
		}
	}
	out := conversation{Thread: view.Thread, More: from > 0}
	turns = turns[from:]
	if len(turns) > 0 {
		out.From = turns[0].N
	}
	rec := web.Record{Turns: turns, Cards: map[string]store.Card{}, Queued: queued}
	if rec.Calls, err = b.callsOf(ctx, id, turns); err != nil {
		return none, err
	}
	for _, c := range rec.Calls {
		if !web.Asked(c) {
			continue
		}
		card, err := b.Approvals.Get(ctx, by, api.CallRequest{ID: c.ID})
		if errors.Is(err, store.ErrNotFound) {
			continue // it is for others to see
		}
		if err != nil {
			return none, err
		}
		rec.Cards[c.ID] = card
	}
	r.At = view.Thread.Address
	out.Messages = web.History(rec, r)
	return out, nil
}

// maxCalls bounds how many calls of a conversation are looked through.
const maxCalls = 10_000

// callsOf reads the calls that turns asked for, and what was made in their place.
func (b *Browser) callsOf(ctx context.Context, thread string, turns []store.Turn) ([]store.Call, error) {
	var oldest string
	for _, t := range turns {
		if len(t.Calls) > 0 {
			oldest = t.Calls[0].ID
			break
		}
	}
	if oldest == "" {
		return nil, nil
	}
	all, err := b.Store.ListCalls(ctx, store.CallQuery{Thread: thread, Limit: maxCalls})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c store.Call) bool { return c.ID < oldest }), nil // ids are in the order of time
}

// queued are the messages of a conversation that wait for their turn.
func (b *Browser) queued(ctx context.Context, thread string) (list []store.Inbound, err error) {
	items, err := b.Store.Pending(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if in, ok := web.QueuedIn(item, thread); ok {
			list = append(list, in)
		}
	}
	return list, nil
}
