// Package posting posts a conversation's messages on Discord, each exactly once.
//
// A text is a message that is edited while it grows, at the pace that Discord allows,
// followed by further messages if it is too long for one. Cards, lines of tools and notices
// are edited messages too. The bot token is used for all of them, because an interaction's
// token expires after fifteen minutes.
//
// Each post carries a nonce, so that Discord creates the message once however often it is
// sent. If the process ended before the response arrived, the message is looked for before
// it is posted again. Edits of one message never overlap, and the newest edit is repeated
// while an earlier one may still arrive.
package posting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/view"
	"nize/bots/discord/wire"
	"nize/bots/outbox"
	"nize/bots/phrases"
	"nize/store"
)

// Store is the part of the store that posting needs.
type Store interface {
	outbox.SentStore
	GetUser(ctx context.Context, id string) (store.User, error)
	GetChannel(ctx context.Context, place string) (store.Channel, error)
	GetPlace(ctx context.Context, owner, name string) (store.Address, error)
}

// Options configure a [Poster].
type Options struct {
	Wire   *wire.Client
	People *people.Directory
	Store  Store
	Calls  bots.Calls
	Now    func() time.Time
	Pace   time.Duration // pause between two edits of a text
	Log    *slog.Logger
	Guild  string
	Self   string // nize's own user id
}

// Poster posts the messages of conversations.
type Poster struct {
	o     Options
	sent  *outbox.Sent
	texts outbox.Unfinished[writing]
	tools bots.ToolMessages[view.ToolsBefore]
}

// New returns a Poster.
func New(o Options) *Poster {
	po := &Poster{o: o, tools: bots.ToolMessages[view.ToolsBefore]{Most: view.MaxToolLines}}
	po.sent = outbox.NewSent(o.Store, po, o.Now, o.Log)
	return po
}

// channelOf returns the Discord channel for messages at an address: Discord's threads are
// channels. A direct channel has no threads; there, an address's thread is the message that
// others reply to.
func channelOf(at store.Address) string {
	if at.Direct {
		return at.Channel
	}
	return cmp.Or(at.Thread, at.Channel)
}

// repliesTo returns the message that messages at an address reply to, "" for none.
func repliesTo(at store.Address) string {
	if !at.Direct || at.Thread == at.Channel || !incoming.IDForm.MatchString(at.Thread) {
		return "" // the conversation in a direct channel has the channel's id
	}
	return at.Thread
}

// Show posts m, or edits it at at.Message, and returns its id.
func (po *Poster) Show(ctx context.Context, at store.Address, m store.Message) (string, error) {
	id, err := po.show(ctx, at, m)
	if code := wire.Code(err); code == discordgo.ErrCodeUnknownChannel || code == discordgo.ErrCodeMissingAccess || code == discordgo.ErrCodeMissingPermissions || code == discordgo.ErrCodePerformedOperationOnArchivedThread {
		po.tellClosed(ctx, at, m)
	}
	return id, err
}

func (po *Poster) show(ctx context.Context, at store.Address, m store.Message) (string, error) {
	switch m.Kind {
	case store.TextMessage:
		return po.showText(ctx, at, m)
	case store.CardMessage:
		if m.Card == nil {
			return "", fmt.Errorf("%w message: a card without its call", store.ErrInvalid)
		}
		return po.showCard(ctx, at, m)
	case store.ToolMessage:
		if m.Tool == nil {
			return "", fmt.Errorf("%w message: no tool", store.ErrInvalid)
		}
		return po.showTool(ctx, at, m)
	case store.ImagesMessage:
		return po.showImages(ctx, at, m)
	}
	if m.Card != nil { // about a call, for one person
		m.Text = bots.ReminderText(*m.Card, po.Reader(ctx, at).Locale)
	}
	if m.Share != nil {
		return po.Put(ctx, at, m.ID, view.Share(m, po.WordsOf(ctx, m.Only)))
	}
	return po.Put(ctx, at, m.ID, view.Notice(m.Text))
}

// Put posts a message, or edits the one at at.Message.
func (po *Poster) Put(ctx context.Context, at store.Address, id string, m view.Message, files ...wire.File) (string, error) {
	if at.Message != "" {
		return at.Message, po.edit(ctx, at, m)
	}
	message, found, err := po.sent.Post(ctx, at, id, func(ctx context.Context) (string, error) {
		return po.post(ctx, at, id, m, files...)
	}, wire.Unsure)
	if err == nil && found { // it may show an older state
		at.Message = message
		if err = po.edit(ctx, at, m); err == nil {
			po.sent.Settle(at, id, message)
		}
	}
	return message, err
}

func (po *Poster) post(ctx context.Context, at store.Address, id string, m view.Message, files ...wire.File) (string, error) {
	var made struct {
		ID string `json:"id"`
	}
	if to := repliesTo(at); to != "" {
		m.Reference = &discordgo.MessageReference{MessageID: to, FailIfNotExists: new(bool)} // Discord posts an ordinary message if it no longer exists
	}
	err := po.o.Wire.Do(ctx, wire.Request{
		Method: "POST", Path: "channels/" + channelOf(at) + "/messages",
		Body: m.WithNonce(at.Channel + "/" + at.Thread + "/" + id), Files: files, Into: &made,
	})
	if err == nil && !incoming.IDForm.MatchString(made.ID) {
		err = fmt.Errorf("%w answer of Discord's: a message without an id", store.ErrInvalid)
	}
	return made.ID, err
}

// edit replaces a message after any other edit of it.
func (po *Poster) edit(ctx context.Context, at store.Address, m view.Message) error {
	return po.sent.Edit(ctx, store.Address{Channel: channelOf(at), Message: at.Message}, func(ctx context.Context) error {
		return po.replace(ctx, at, m)
	}, wire.Unsure)
}

func (po *Poster) replace(ctx context.Context, at store.Address, m view.Message) error {
	err := po.o.Wire.Do(ctx, wire.Request{Method: "PATCH", Path: "channels/" + channelOf(at) + "/messages/" + at.Message, Body: m.Edit()})
	if wire.Code(err) == discordgo.ErrCodePerformedOperationOnArchivedThread { // the thread is archived: unarchive it, as a post would
		if err = po.o.Wire.Do(ctx, wire.Request{Method: "PATCH", Path: "channels/" + channelOf(at), Body: discordgo.ChannelEdit{Archived: new(bool)}}); err == nil {
			err = po.o.Wire.Do(ctx, wire.Request{Method: "PATCH", Path: "channels/" + channelOf(at) + "/messages/" + at.Message, Body: m.Edit()})
		}
	}
	return err
}

// delete deletes a message; it succeeds if the message no longer exists.
func (po *Poster) delete(ctx context.Context, at store.Address, id string) error {
	err := po.o.Wire.Do(ctx, wire.Request{Method: "DELETE", Path: "channels/" + channelOf(at) + "/messages/" + id})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// maxPages limits how far a channel is read.
const maxPages = 10

// List returns the messages of a channel after the one given, oldest first.
func (po *Poster) List(ctx context.Context, channel, after string, most int) (list []incoming.Message, err error) {
	for range maxPages {
		var page []json.RawMessage
		limit := min(100, most-len(list))
		if err := po.o.Wire.Do(ctx, wire.Request{Method: "GET", Path: fmt.Sprintf("channels/%s/messages?limit=%d&after=%s", channel, limit, cmp.Or(after, "0")), Into: &page}); err != nil {
			return nil, err
		}
		var read []incoming.Message
		for _, raw := range page {
			if m, err := incoming.DecodeMessage(raw); err == nil {
				read = append(read, m)
			}
		}
		slices.SortFunc(read, func(a, b incoming.Message) int {
			if incoming.Later(a.ID, b.ID) {
				return 1
			}
			return -1
		})
		list = append(list, read...)
		if len(page) < limit || len(read) == 0 || len(list) >= most {
			return list, nil
		}
		after = read[len(read)-1].ID
	}
	return list, nil
}

// Sent implements [outbox.Lister].
func (po *Poster) Sent(ctx context.Context, in store.Address, since time.Time, after string) ([]outbox.SentMessage, error) {
	from := after
	if first := incoming.IDAt(since); !since.IsZero() && incoming.Later(first, after) {
		from = first
	}
	if from == "" && incoming.IDForm.MatchString(in.Thread) && !in.Direct {
		from = in.Thread // the thread's id is that of the message that began it
	}
	list, err := po.List(ctx, channelOf(in), from, 1000)
	if err != nil {
		return nil, err
	}
	locale := po.Reader(ctx, in).Locale
	var out []outbox.SentMessage
	for _, m := range list {
		if m.Author.ID != po.o.Self || m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply {
			continue
		}
		buttons := buttonsOf(m)
		bare := len(m.Attachments) == 0 && len(buttons) == 0 && len(m.Embeds) == 0
		out = append(out, outbox.SentMessage{ID: m.ID, Text: bare && view.IsText(m.Content), Is: func(want store.Message) bool {
			if call, ok := outbox.CallOfImages(want.ID); ok {
				return isImagesOf(m, call)
			}
			if words, ok := outbox.SaidWords(want.ID); ok {
				_, page, _ := strings.Cut(words, "/")
				return m.Content == view.Text(page).Content
			}
			if name, ok := outbox.FileName(want.ID); ok {
				return slices.ContainsFunc(m.Attachments, func(f *discordgo.MessageAttachment) bool { return f.Filename == name })
			}
			return view.IsPostOf(m.Content, buttons, want, locale)
		}})
	}
	return out, nil
}

// buttonsOf returns the ids of a message's buttons.
func buttonsOf(m incoming.Message) (ids []string) {
	for _, c := range m.Components {
		row, _ := c.(*discordgo.ActionsRow)
		if row == nil {
			continue
		}
		for _, c := range row.Components {
			switch c := c.(type) {
			case *discordgo.Button:
				ids = append(ids, c.CustomID)
			case *discordgo.SelectMenu:
				ids = append(ids, c.CustomID)
			}
		}
	}
	return ids
}

// RepeatEdits repeats edits of messages that an earlier edit may still change, until ctx
// ends.
func (po *Poster) RepeatEdits(ctx context.Context) { po.sent.RepeatEdits(ctx) }

// Find returns the place of m in a thread, see [outbox.Finder].
func (po *Poster) Find(ctx context.Context, in store.Address, m store.Message) (store.Address, error) {
	return po.sent.Find(ctx, in, m)
}

// Reader returns the reader of a thread.
func (po *Poster) Reader(ctx context.Context, at store.Address) bots.Reader {
	return bots.ReaderAt(ctx, bots.Readers{Threads: po.o.Store, Now: po.o.Now, Log: po.o.Log, Alone: func() (locale, zone string, err error) {
		id, err := po.o.People.ReaderOf(ctx, at.Channel)
		if err != nil || id == "" {
			return "", "", err
		}
		p, err := po.o.People.Who(ctx, id, time.Hour) // including their settings
		return p.Locale, p.Zone, err
	}}, at)
}

// WordsOf returns nize's texts in a user's language.
func (po *Poster) WordsOf(ctx context.Context, user string) phrases.Catalogue {
	if u, err := po.o.Store.GetUser(ctx, user); err == nil {
		for _, id := range people.IDs(u) {
			if p, err := po.o.People.Who(ctx, id, people.Recent); err == nil && p.Member {
				return p.Words()
			}
		}
	}
	return phrases.For("")
}

// tellClosed tells the requester, once a day per thread, that an answer could not be shown
// in its channel.
func (po *Poster) tellClosed(ctx context.Context, at store.Address, m store.Message) {
	awaited := m.Final && (m.Kind == store.TextMessage || m.Kind == store.NoticeMessage) || m.Card != nil && m.Card.State == store.Pending
	if m.For == nil || !awaited || at.Direct {
		return
	}
	id := people.IDOf(m.For.Identity)
	if id == "" {
		return
	}
	p, err := po.o.People.Who(ctx, id, people.Recent)
	if err != nil || p.User.ID == "" {
		return
	}
	if first, err := po.o.People.FirstToday(ctx, "shut:"+id+":"+channelOf(at)); err != nil || !first {
		return
	}
	if err := po.Direct(ctx, p, p.Words().Say(phrases.PlaceShut, "<#"+at.Channel+">")); err != nil && ctx.Err() == nil {
		po.o.Log.Warn("telling somebody that a channel is closed", "channel", at.Channel, "err", err)
	}
}

// Direct posts a text of nize's own in a person's direct channel, once per action of
// theirs.
func (po *Poster) Direct(ctx context.Context, p people.Person, text string, buttons ...discordgo.MessageComponent) error {
	channel, err := po.o.People.OpenDM(ctx, p.ID)
	if err != nil {
		return err
	}
	act := po.act(p)
	pages := view.Pages(text)
	for i, page := range pages {
		m := view.Text(page)
		if i == len(pages)-1 {
			m = view.Text(page, buttons...)
		}
		if err := po.postOnce(ctx, channel, outbox.SaidID(act, fmt.Sprintf("%d/%s", i, page)), act, m); err != nil {
			return err
		}
	}
	return nil
}

// act returns the id of p's action, or a new one if the action is not stored.
func (po *Poster) act(p people.Person) string { return cmp.Or(p.Act, store.NewID(po.o.Now())) }

func (po *Poster) postOnce(ctx context.Context, channel, id, act string, m view.Message, files ...wire.File) error {
	at := store.Address{Channel: channel, Direct: true}
	_, err := po.sent.PostOnce(ctx, at, id, store.IDTime(act), func(ctx context.Context) (string, error) {
		return po.post(ctx, at, id, m, files...)
	}, wire.Unsure)
	return err
}

// SendFile posts a file in a person's direct channel, once per action of theirs.
func (po *Poster) SendFile(ctx context.Context, p people.Person, text string, f wire.File) error {
	channel, err := po.o.People.OpenDM(ctx, p.ID)
	if err != nil {
		return err
	}
	act := po.act(p)
	return po.postOnce(ctx, channel, outbox.FileID(act, f.Name), act, view.Text(text), f)
}

// Announce posts a message outside conversations, or edits it at at.Message. It first looks
// for an earlier post; if nize may write but not read there, a duplicate is better than no
// message.
func (po *Poster) Announce(ctx context.Context, at store.Address, a bots.Announcement) (string, error) {
	m := view.Text(view.Escape(a.Text))
	if at.Message == "" && !a.Since.IsZero() {
		list, err := po.List(ctx, at.Channel, incoming.IDAt(a.Since.Add(-time.Minute)), 1000)
		if err != nil && !wire.Refused(err) {
			return "", err
		}
		for _, sent := range list {
			if sent.Author.ID == po.o.Self && sent.Content == m.Content {
				at.Message = sent.ID
			}
		}
	}
	return po.Put(ctx, at, "tell/"+a.Channel+"/"+a.ID, m)
}

// Present shows the typing indicator while nize works.
func (po *Poster) Present(ctx context.Context, to store.Address, s outbox.State) error {
	if s != outbox.Working {
		po.tools.End(channelOf(to))
		return nil
	}
	err := po.o.Wire.Do(ctx, wire.Request{Method: "POST", Path: "channels/" + channelOf(to) + "/typing"})
	if wire.Refused(err) {
		return nil // the posts in that place report the reason
	}
	return err
}
