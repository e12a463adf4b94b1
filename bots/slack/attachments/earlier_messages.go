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

// Earlier messages of a thread that nize has not read yet: what people and programs wrote
// before nize was addressed. The model gets them once, as quotes with their authors. nize's
// own messages are not included: the conversation has them, for the people they are meant
// for.
//
// None of this prevents an answer: if something can't be read, the model is told that it is
// unknown.

const (
	// earlierTime limits the lookup of earlier messages.
	earlierTime = 8 * time.Second
	// At most maxEarlier pages of earlierPage messages are read.
	maxEarlier, earlierPage = 5, 200
)

// gathered is what accompanies a message from other authors.
type gathered struct {
	earlier *store.Earlier
	files   []incoming.File
	newest  string // ts of the newest message that was read
}

// earlierMessages reads the messages in an event's thread between the last one that nize
// has read and the event. about is the ts of the message that the question is about, if
// any.
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
	list = slices.DeleteFunc(list, func(m incoming.Message) bool {
		return m.User == ft.Self || m.Hidden || !incoming.Quoted[m.SubType] || m.Timestamp != about && (m.Timestamp <= th.LastMessage || heard[m.Channel+":"+m.Timestamp])
	})
	return ft.quoteMessages(ctx, list, more, about)
}

// Question is what a person asks nize.
type Question struct {
	Text  string
	About *Subject // the message that the shortcut was used on
}

// Attachments is what accompanies a message: its files, forwarded messages, and earlier
// messages of the thread.
type Attachments struct {
	Files       []store.File
	Earlier     *store.Earlier
	LastMessage string // ts of the last message of the thread known afterwards, "" if irrelevant
}

// Fetch fetches the attachments of a person's message.
func (ft *Fetcher) Fetch(ctx context.Context, p people.Person, e incoming.Event, s Question, th store.Thread) (c Attachments, err error) {
	var b gathered
	about := ""
	if s.About != nil {
		about = s.About.TS
	}
	if !e.Direct() {
		if incoming.StampForm.MatchString(e.Timestamp) {
			c.LastMessage = e.Timestamp
		}
		// In a thread that nize follows without being mentioned, only this person has
		// written since, so there is nothing new.
		if e.ThreadTimestamp != "" && e.ThreadTimestamp != e.Timestamp && (e.Addresses(ft.Self) || s.About != nil) {
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

// distinct removes duplicate files.
func distinct(list []incoming.File) []incoming.File {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(f incoming.File) bool {
		was := seen[f.ID]
		seen[f.ID] = true
		return was
	})
}

// listMessages returns the messages of an event's thread before the event, oldest first;
// more reports that there are newer ones that were not read.
func (ft *Fetcher) listMessages(ctx context.Context, e incoming.Event, since string) (list []incoming.Message, more bool, err error) {
	form := url.Values{"channel": {e.Channel}, "ts": {e.ThreadTimestamp}, "limit": {strconv.Itoa(earlierPage)}}
	if since != "" {
		form.Set("oldest", since)
	}
	if incoming.StampForm.MatchString(e.Timestamp) {
		form.Set("latest", e.Timestamp)
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
			var m incoming.Message
			if json.Unmarshal(raw, &m) != nil || !incoming.StampForm.MatchString(m.Timestamp) || form.Has("latest") && m.Timestamp >= e.Timestamp {
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
	slices.SortStableFunc(list, func(a, b incoming.Message) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return slices.CompactFunc(list, func(a, b incoming.Message) bool { return a.Timestamp == b.Timestamp }), more, nil
}

// quoteMessages turns messages into quotes, and keeps the newest if not all fit.
func (ft *Fetcher) quoteMessages(ctx context.Context, list []incoming.Message, more bool, about string) (b gathered) {
	if len(list) == 0 {
		return b
	}
	name, speaker := ft.People.NameFor(ctx), ft.speakerFor(ctx)
	b.newest = list[len(list)-1].Timestamp
	out := &store.Earlier{}
	most, capacity := store.MaxQuotes, store.MaxQuoted
	if about != "" { // it must always fit
		most, capacity = most-1, capacity-store.MaxQuote
	}
	full := false
	for _, m := range slices.Backward(list) {
		if full && m.Timestamp != about {
			out.Left++
			continue
		}
		q, files := m.Quote(ft.Self, name, speaker)
		if q.Text == "" {
			continue
		}
		if q.About = m.Timestamp == about; !q.About {
			if full = len(out.Quotes) >= most || len(q.Text) > capacity; full {
				out.Left++
				continue
			}
			capacity -= len(q.Text)
		}
		out.Quotes = append(out.Quotes, q)
		b.files = append(b.files, files...)
	}
	if more { // newer messages were not read
		out.Unread = true
	}
	slices.Reverse(out.Quotes)
	b.earlier = out
	return b
}

// speakerFor returns a function that returns a message's author. If the author can't be
// looked up, they count as not being in the team.
func (ft *Fetcher) speakerFor(ctx context.Context) func(*incoming.Message) store.Speaker {
	known, names := map[string]store.Speaker{}, ft.People.NameFor(ctx)
	return func(m *incoming.Message) store.Speaker {
		if m.BotID != "" || m.SubType == "bot_message" || m.User == "" || m.User == "USLACKBOT" {
			name := m.Username
			if name == "" && m.BotProfile != nil {
				name = m.BotProfile.Name
			}
			if name == "" && m.User != "" {
				name = names(m.User)
			}
			name = cmp.Or(name, m.BotID, "?")
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
