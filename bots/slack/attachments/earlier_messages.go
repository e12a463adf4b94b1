package attachments

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"nize/bots/account"
	"nize/bots/slack/incoming"
	"nize/bots/slack/people"
	"nize/store"
)

// What was said in a thread before somebody addressed nize there, and nize has
// not heard: people's words among themselves, and those of programs. The model
// gets it once, as quotes, with who said what. nize's own messages are not in
// it: what nize said stands in the conversation, for those whom it is for.
//
// Nothing of it stands in the way of an answer: what can't be looked up is
// told to the model as not known.

const (
	// earlierTime bounds looking up what was said.
	earlierTime = 8 * time.Second
	// maxEarlier pages of earlierPage messages are looked through.
	maxEarlier, earlierPage = 5, 200
)

// gathered is what comes with a message from others.
type gathered struct {
	earlier *store.Earlier
	files   []incoming.File
	newest  string // ts of the newest message that was looked at
}

// earlierMessages looks up what was said in the thread of an event, before it and after
// what was heard last. about is the message that is asked about, if any.
func (ft *Fetcher) earlierMessages(ctx context.Context, e incoming.Event, th store.Thread, about string) gathered {
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	list, more, err := ft.listMessages(ctx, e, th.LastMessage)
	if err != nil {
		ft.Log.Warn("looking up what was said in a thread", "channel", e.Channel, "err", err)
		return gathered{earlier: &store.Earlier{Unread: true}}
	}
	heard, err := account.Heard(ctx, ft.Store, th.ID)
	if err != nil {
		ft.Log.Warn("reading what was heard in a thread", "thread", th.ID, "err", err)
		return gathered{earlier: &store.Earlier{Unread: true}}
	}
	list = slices.DeleteFunc(list, func(m incoming.Posted) bool {
		return m.User == ft.Self || m.Hidden || !incoming.Quoted[m.Subtype] || m.TS != about && (m.TS <= th.LastMessage || heard[m.Channel+":"+m.TS])
	})
	return ft.quoteMessages(ctx, list, more, about)
}

// Question is what somebody says to nize.
type Question struct {
	Text  string
	About *Subject // the message that it is about, of the shortcut
}

// Attachments is what came with a message: its files, messages that were forwarded,
// and what was said in the thread before.
type Attachments struct {
	Files       []store.File
	Earlier     *store.Earlier
	LastMessage string // ts up to which the thread is known then, "" where it need not be
}

// Fetch fetches what came with what somebody says.
func (ft *Fetcher) Fetch(ctx context.Context, p people.Person, e incoming.Event, s Question, th store.Thread) (c Attachments, err error) {
	var b gathered
	about := ""
	if s.About != nil {
		about = s.About.TS
	}
	if !e.Direct() {
		if incoming.StampForm.MatchString(e.TS) {
			c.LastMessage = e.TS
		}
		// Who is followed is alone with nize since: nothing can be new there.
		if e.Thread != "" && e.Thread != e.TS && (e.Addresses(ft.Self) || s.About != nil) {
			b = ft.earlierMessages(ctx, e, th, about)
			c.LastMessage = max(c.LastMessage, b.newest)
		}
	}
	own := incoming.DecodeFiles(e.Files)
	if s.About != nil {
		own = append(own, ft.addAbout(ctx, &b, s.About)...)
	}
	ft.addForwarded(ctx, &b, e.Attachments)
	if c.Files, err = ft.readFiles(ctx, p.Caller(), th.ID, distinct(append(own, b.files...))); err != nil {
		return Attachments{}, err
	}
	c.Earlier = b.earlier
	return c, nil
}

// distinct leaves out files that were named before.
func distinct(list []incoming.File) []incoming.File {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(f incoming.File) bool {
		was := seen[f.ID]
		seen[f.ID] = true
		return was
	})
}

// listMessages reads the messages of an event's thread that came before it, oldest
// first; more says that there are newer ones than were looked through.
func (ft *Fetcher) listMessages(ctx context.Context, e incoming.Event, since string) (list []incoming.Posted, more bool, err error) {
	form := url.Values{"channel": {e.Channel}, "ts": {e.Thread}, "limit": {strconv.Itoa(earlierPage)}}
	if since != "" {
		form.Set("oldest", since)
	}
	if incoming.StampForm.MatchString(e.TS) {
		form.Set("latest", e.TS)
	}
	for range maxEarlier {
		var page struct {
			Messages []json.RawMessage `json:"messages"`
			More     bool              `json:"has_more"`
			Meta     struct {
				Cursor string `json:"next_cursor"`
			} `json:"response_metadata"`
		}
		err := ft.Wire.Call(ctx, func(ctx context.Context) error {
			return ft.Wire.Raw.Ask(ctx, "conversations.replies", form, &page)
		})
		if err != nil {
			return nil, false, err
		}
		for _, raw := range page.Messages {
			var m incoming.Posted
			if json.Unmarshal(raw, &m) != nil || !incoming.StampForm.MatchString(m.TS) || form.Has("latest") && m.TS >= e.TS {
				continue
			}
			m.Channel = e.Channel
			list = append(list, m)
		}
		if more = page.More && page.Meta.Cursor != ""; !more {
			break
		}
		form.Set("cursor", page.Meta.Cursor)
	}
	slices.SortStableFunc(list, func(a, b incoming.Posted) int { return cmp.Compare(a.TS, b.TS) })
	return slices.CompactFunc(list, func(a, b incoming.Posted) bool { return a.TS == b.TS }), more, nil
}

// quoteMessages makes quotes of messages, the newest where not all fit.
func (ft *Fetcher) quoteMessages(ctx context.Context, list []incoming.Posted, more bool, about string) (b gathered) {
	if len(list) == 0 {
		return b
	}
	name, speaker := ft.People.NameFor(ctx), ft.speakerFor(ctx)
	b.newest = list[len(list)-1].TS
	out := &store.Earlier{}
	most, capacity := store.MaxQuotes, store.MaxQuoted
	if about != "" { // it has a place in any case
		most, capacity = most-1, capacity-store.MaxQuote
	}
	full := false
	for _, m := range slices.Backward(list) {
		if full && m.TS != about {
			out.Left++
			continue
		}
		q, files := m.Quote(ft.Self, name, speaker)
		if q.Text == "" {
			continue
		}
		if q.About = m.TS == about; !q.About {
			if full = len(out.Quotes) >= most || len(q.Text) > capacity; full {
				out.Left++
				continue
			}
			capacity -= len(q.Text)
		}
		out.Quotes = append(out.Quotes, q)
		b.files = append(b.files, files...)
	}
	if more { // there are newer ones that nobody looked at
		out.Unread = true
	}
	slices.Reverse(out.Quotes)
	b.earlier = out
	return b
}

// speakerFor tells who wrote a message. Who can't be looked up is nobody of the
// team.
func (ft *Fetcher) speakerFor(ctx context.Context) func(incoming.Posted) store.Speaker {
	known, names := map[string]store.Speaker{}, ft.People.NameFor(ctx)
	return func(m incoming.Posted) store.Speaker {
		if m.Bot != "" || m.Subtype == "bot_message" || m.User == "" || m.User == "USLACKBOT" {
			name := cmp.Or(m.Username, m.Profile.Name)
			if name == "" && m.User != "" {
				name = names(m.User)
			}
			name = cmp.Or(name, m.Bot, "?")
			return store.Speaker{Name: incoming.SpeakerName(name), Bot: true, Outside: true}
		}
		if s, ok := known[m.User]; ok {
			return s
		}
		s := store.Speaker{Name: incoming.SpeakerName(m.User), Outside: true}
		if incoming.IDForm.MatchString(m.User) && len(known) < people.MaxLookups {
			if p, err := ft.People.LookUp(ctx, m.User, people.Recent); err == nil {
				s = store.Speaker{Name: incoming.SpeakerName(p.Name), Identity: p.Identity(), Outside: !p.Member}
			}
		}
		known[m.User] = s
		return s
	}
}
