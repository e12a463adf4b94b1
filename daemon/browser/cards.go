package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"nize/bots"
	"nize/bots/phrases"
	"nize/daemon/api"
	"nize/store"
)

// Card is a card with texts in the reader's language.
type Card struct {
	store.Card
	Words bots.CardParts `json:"words"`
}

// waitingCard is the card of a pending call, with its requester's message.
type waitingCard struct {
	Card
	Said string `json:"said,omitempty"`
}

// decidedCard is the card of a call that its reader decided, with the time.
type decidedCard struct {
	Card
	At time.Time `json:"at"`
}

// cardRequest names a call, and describes the reader of its card.
type cardRequest struct {
	ID string `path:"id" json:"-"`
	reading
}

func (b *Browser) card(card store.Card, r bots.Reader) Card {
	return Card{card, bots.PartsOf(card, r)}
}

// listApprovals returns the cards of pending calls that the caller may see.
func (b *Browser) listApprovals(ctx context.Context, by store.Caller, req reading) (none api.List[waitingCard], err error) {
	cards, calls, err := b.Approvals.Cards(ctx, by)
	if err != nil {
		return none, err
	}
	r := b.reader(by, req.Locale, req.Zone)
	list, turns := make([]waitingCard, 0, len(cards)), map[string][]store.Turn{}
	for i, c := range cards {
		said, err := b.askedFor(ctx, by, c, calls[i], turns)
		if err != nil {
			return none, err
		}
		list = append(list, waitingCard{b.card(c, r), said})
	}
	return api.Items(list), nil
}

// maxSaid is how much of the requester's message is shown above a card.
const maxSaid = 200

// turnsAbove is how many turns are searched for the requester's message.
const turnsAbove = 50

// askedFor returns, in one line, what the requester of a call wrote before it. Others get
// it only if it was written where others read along: a private message to nize stays
// private, even if others decide on the call. known has the turns of the conversations that
// were read for earlier cards.
func (b *Browser) askedFor(ctx context.Context, by store.Caller, card store.Card, call store.Call, known map[string][]store.Turn) (string, error) {
	if card.Withheld || card.Requester != by.User && (card.In.Channel == "" || card.InPrivateTurn) {
		return "", nil
	}
	if call.Thread == "" {
		return "", nil
	}
	turns, ok := known[call.Thread]
	if !ok {
		var err error
		turns, err = b.Store.TurnsBefore(ctx, call.Thread, 0, turnsAbove)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", fmt.Errorf("reading what was asked for: %w", err)
		}
		known[call.Thread] = turns
	}
	for _, t := range slices.Backward(store.InForce(turns)) {
		if t.Role == store.FromUser && t.By.User == call.By && !t.At.After(call.Created) {
			return bots.Brief(t.Text, maxSaid), nil
		}
	}
	return "", nil
}

// decidedFor is how long a decision is listed for the person who made it, and maxDecided is
// how many are listed.
const (
	decidedFor = 30 * 24 * time.Hour
	maxDecided = 50
)

// listDecided returns the calls that the caller decided in the last 30 days, latest first.
// It omits calls that the caller may no longer see.
func (b *Browser) listDecided(ctx context.Context, by store.Caller, req reading) (none api.List[decidedCard], err error) {
	var decisions []store.Event
	for _, verb := range []store.Verb{store.Approve, store.Deny, store.Cancel} {
		some, err := b.Store.Events(ctx, store.EventQuery{User: by.User, Kind: "call." + string(verb), Since: b.Now().Add(-decidedFor), Limit: maxDecided})
		if err != nil {
			return none, fmt.Errorf("reading decisions: %w", err)
		}
		decisions = append(decisions, some...)
	}
	slices.SortFunc(decisions, func(x, y store.Event) int { return cmp.Compare(y.Seq, x.Seq) })
	r := b.reader(by, req.Locale, req.Zone)
	var list []decidedCard
	for _, e := range decisions[:min(len(decisions), maxDecided)] {
		card, err := b.Approvals.Get(ctx, by, api.CallRequest{ID: e.Subject})
		if errors.Is(err, store.ErrNotFound) {
			continue // erased, or no longer visible to the caller
		}
		if err != nil {
			return none, err
		}
		if shown := b.card(card, r); shown.Words.Settled != nil {
			list = append(list, decidedCard{shown, e.At})
		}
	}
	return api.Items(list), nil
}

// cardView is a card with the data for its dialogs.
type cardView struct {
	Card
	// Schema is the tool's input schema, with hidden characters escaped. It is a string so
	// that numbers stay as the server wrote them.
	Schema string `json:"schema,omitempty"`
	// Allow and Deny are the questions of a standing answer; empty if none can be given.
	Allow []bots.StandingQuestion `json:"allow,omitempty"`
	Deny  []bots.StandingQuestion `json:"deny,omitempty"`
}

// getApproval returns one card, including that of a decided call.
func (b *Browser) getApproval(ctx context.Context, by store.Caller, req cardRequest) (none cardView, err error) {
	card, err := b.Approvals.Get(ctx, by, api.CallRequest{ID: req.ID})
	if err != nil {
		return none, err
	}
	r := b.reader(by, req.Locale, req.Zone)
	v := cardView{Card: b.card(card, r)}
	if card.State != store.Pending || card.Approved {
		return v, nil
	}
	schema, err := bots.FormSchema(card, func(tool string) (json.RawMessage, error) { return b.Schema(ctx, tool) })
	switch {
	case err == nil:
		v.Schema, _ = bots.PrettyJSON(schema)
	case !errors.Is(err, store.ErrNotFound): // the tool was removed, which the card shows
		return none, err
	}
	words, may := phrases.For(r.Locale), bots.ScopesOf(card, card.In.Channel != "", by.IsAdmin())
	v.Deny = bots.StandingQuestions(true, may, words)
	if card.Always {
		v.Allow = bots.StandingQuestions(false, may, words)
	}
	return v, nil
}

// decideRequest is a decision made on displayed cards.
type decideRequest struct {
	api.DecideCallRequest
	// Standing holds the answers to a standing answer's questions.
	Standing map[string]string `json:"standing,omitempty"`
	// Cards are the digests of the cards that were shown completely, by call: run_all runs
	// these.
	Cards map[string]string `json:"cards,omitempty"`
	reading
}

// decided is a call after a decision, and the standing answer that was stored.
type decided struct {
	store.Call
	Kept string `json:"kept,omitempty"`
}

// decide decides on a pending call whose card was displayed; the digest identifies what was
// shown.
func (b *Browser) decide(ctx context.Context, by store.Caller, req decideRequest) (none decided, err error) {
	if req.Digest == "" {
		return none, store.Errorf("%w decision: digest is required", store.ErrInvalid)
	}
	if req.Verb == store.RunAll {
		return none, b.runAll(ctx, by, req)
	}
	if req.Verb == store.Cancel { // cancelling is for the requester; from anyone else it is a denial, as in every chat
		asked, err := b.Approvals.GetCall(ctx, by, api.CallRequest{ID: req.ID})
		if err != nil {
			return none, err
		}
		if asked.By != by.User {
			req.Verb = store.Deny
		}
	}
	kept := store.Decision{Verb: req.Verb}
	if req.Standing != nil {
		if kept, err = bots.ReadStanding(func(name string) string { return req.Standing[name] }, b.Now()); err != nil {
			return none, err
		}
		kept.Verb = req.Verb
		req.Always, req.For, req.Until, req.Exact, req.Pattern, req.Line, req.Here = true, kept.For, kept.Until, kept.Exact, kept.Pattern, kept.Line, kept.Here
	}
	call, err := b.Approvals.Decide(ctx, by, req.DecideCallRequest)
	out := decided{Call: call}
	if err == nil && kept.Always {
		out.Kept = bots.KeptWords(call.ToolID(), call.Ask != nil, kept, b.reader(by, req.Locale, req.Zone))
	}
	if call.By != by.User {
		out.Result = nil // only its requester may see it
	}
	return out, err
}

// maxStep bounds how many calls of a step run_all runs.
const maxStep = 100

// runAll approves the calls of a step whose cards were displayed, each by the digest of its
// card. It checks all of them first and runs nothing if one differs from what was shown. It
// ignores calls that were decided in the meantime.
func (b *Browser) runAll(ctx context.Context, by store.Caller, req decideRequest) error {
	if req.Cards[req.ID] != req.Digest || len(req.Cards) > maxStep {
		return store.Errorf("%w decision: say which cards were on the screen", store.ErrInvalid)
	}
	first, err := b.Approvals.GetCall(ctx, by, api.CallRequest{ID: req.ID})
	if err != nil {
		return err
	}
	ids := []string{req.ID}
	for id, digest := range req.Cards {
		call, err := b.Approvals.GetCall(ctx, by, api.CallRequest{ID: id})
		switch {
		case err != nil:
			return err
		case call.Step == "" || call.Step != first.Step || call.Thread != first.Thread || call.Replaces != "":
			return store.Errorf("%w decision: call %s is of another step", store.ErrInvalid, id)
		case call.Digest != digest:
			return store.Mark(store.Errorf("call %s changed since you opened it; review it again", id), store.ErrConflict)
		}
		if id != req.ID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // in the order of the requests
	var problems []error
	for _, id := range ids {
		_, err := b.Approvals.Decide(ctx, by, api.DecideCallRequest{ID: id, Verb: store.Approve, Digest: req.Cards[id]})
		if err != nil && (id == req.ID || !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired)) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// tooLate returns the current card of the call that a decision was about.
func (b *Browser) tooLate(r *http.Request) *Card {
	id, ok := strings.CutPrefix(r.URL.Path, "/v1/approvals/")
	by, err := b.Person(r)
	if !ok || err != nil {
		return nil
	}
	by.Surface, by.Token = store.OnWeb, ""
	card, err := b.getApproval(r.Context(), by, cardRequest{id, reading{r.Header.Get("Accept-Language"), r.URL.Query().Get("zone")}})
	if err != nil {
		return nil
	}
	return &card.Card
}

// callView is a call for display: numbers as they were written, and no control characters.
type callView struct {
	store.Call
	ArgsText string       `json:"args_text"`
	Output   []outputPart `json:"output"`
}

// outputPart is one item of a result. An image is recognized by its bytes. If Size is set,
// the text is long and only its beginning is included. A file is downloaded by its number
// among the files.
type outputPart struct {
	Text string `json:"text,omitempty"`
	JSON bool   `json:"json,omitempty"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data,omitempty"`
	Size int    `json:"size,omitempty"`
	Name string `json:"name,omitempty"`
	File int    `json:"file,omitempty"` // from 1
}

// maxInline is how much of one item a page gets inline; the whole item is a download.
const maxInline = 1 << 20

// getCall returns one call, with its result if the caller is its requester.
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
	files := 0
	for _, p := range bots.ResultParts(call.Result) {
		switch pretty, ok := bots.PrettyJSON([]byte(p.Text)); {
		case p.Name != "":
			files++
			v.Output = append(v.Output, outputPart{Type: bots.Escape(p.Kind), Size: len(p.Data), Name: p.Name, File: files})
		case p.Text == "":
		case len(p.Text) > maxInline:
			v.Output = append(v.Output, outputPart{Text: bots.Plain(store.Clip(p.Text, maxInline/16)), Size: len(p.Text)})
		case ok:
			v.Output = append(v.Output, outputPart{Text: pretty, JSON: true})
		default:
			v.Output = append(v.Output, outputPart{Text: bots.Plain(p.Text)})
		}
	}
	v.Args, v.Result = nil, nil // both are complete in the fields above
	return v, nil
}

// resultRequest names a call, and a file of its result unless File is 0.
type resultRequest struct {
	ID   string `path:"id" json:"-"`
	File int    `query:"file" json:"-"`
}

// getResult returns a call's result to its requester, byte for byte as a file, or one of
// the files in it.
func (b *Browser) getResult(ctx context.Context, by store.Caller, req resultRequest) (none api.File, err error) {
	call, err := b.Approvals.GetCall(ctx, by, api.CallRequest{ID: req.ID})
	if err == nil && (call.Result == nil || len(call.Result.Raw) == 0) {
		err = store.Errorf("a result of call %q %w", req.ID, store.ErrNotFound)
	}
	if err != nil {
		return none, err
	}
	data := []byte(call.Result.Raw)
	if req.File != 0 {
		files := slices.DeleteFunc(bots.ResultParts(call.Result), func(p bots.ResultPart) bool { return p.Name == "" })
		if req.File < 0 || req.File > len(files) {
			return none, store.Errorf("a result of call %q %w", req.ID, store.ErrNotFound)
		}
		data = files[req.File-1].Data
	}
	return api.File{ReadCloser: io.NopCloser(bytes.NewReader(data)), Size: int64(len(data))}, nil
}
