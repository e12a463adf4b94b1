package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"nize/bots"
	"nize/bots/account"
	"nize/bots/discord/incoming"
	"nize/bots/discord/people"
	"nize/bots/discord/wire"
	"nize/store"
)

// What accompanies a message: its files, the message that it replies to, and earlier
// messages of the thread that nize has not read. The model gets those once, as quotes with
// their authors. None of this prevents an answer.

const (
	fileTime    = time.Minute
	earlierTime = 8 * time.Second
	maxEarlier  = 300 // messages that are read
)

// attachments fetches what accompanies messages.
type attachments struct{ *live }

// readFiles fetches files for a conversation.
func (l attachments) readFiles(ctx context.Context, by store.Caller, thread string, list []*discordgo.MessageAttachment) ([]store.File, error) {
	var files []store.File
	for _, s := range list {
		files = append(files, store.File{ID: s.ID, Name: store.Clip(strings.ToValidUTF8(s.Filename, "\uFFFD"), 200), Size: int64(max(s.Size, 0))})
	}
	return account.Files{Store: l.b.o.Store.Files, Config: l.b.o.Config}.Read(ctx, by, thread, files, func(ctx context.Context, n int) (store.File, []byte, string) {
		if list[n].Size > store.MaxFile {
			return files[n], nil, store.FileTooLarge
		}
		data, err := l.download(ctx, list[n])
		if err != nil {
			l.log.Warn("fetching a file", "file", list[n].ID, "err", err)
			return files[n], nil, store.FileFailed
		}
		return files[n], data, ""
	})
}

// download downloads a file, only from Discord's file hosts.
func (l attachments) download(ctx context.Context, f *discordgo.MessageAttachment) ([]byte, error) {
	u, err := url.Parse(f.URL)
	if err != nil || !l.hasFiles(u) {
		return nil, fmt.Errorf("%w address of a file", store.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("fetching a file: %w", err)
	}
	client := http.Client{Transport: l.b.o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without the URL, which grants access to the file
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: HTTP %d", store.ErrNotFound, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, store.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return data, nil
}

// hasFiles reports whether a URL is on one of Discord's file hosts, or on a double's.
func (l attachments) hasFiles(u *url.URL) bool {
	if u.Scheme == "https" && (u.Host == "cdn.discordapp.com" || u.Host == "media.discordapp.net") {
		return true
	}
	api, err := url.Parse(l.b.o.Config.Get("", "discord.api_url"))
	return err == nil && api.Host != "" && u.Host == api.Host && u.Scheme == api.Scheme
}

// earlier returns the messages before a message that the assistant has not seen, and the
// last message of the thread known afterwards.
func (l attachments) earlier(ctx context.Context, at store.Address, th store.Thread, q question) (*store.Earlier, string) {
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	var list []incoming.Message
	if !at.Direct && q.mention && q.before != "" && q.before != at.Thread {
		var err error
		if list, err = l.unheard(ctx, at, th, q.before); err != nil {
			l.log.Warn("looking up what was said in a thread", "channel", at.Channel, "err", err)
			return &store.Earlier{Unread: true}, ""
		}
	}
	if q.about != nil && incoming.IDForm.MatchString(q.about.ID) {
		list = slices.DeleteFunc(list, func(m incoming.Message) bool { return m.ID == q.about.ID })
		list = append(list, *q.about)
	}
	if len(list) == 0 {
		return nil, q.before
	}
	out := &store.Earlier{}
	capacity := store.MaxQuoted
	for _, m := range slices.Backward(list) {
		text := m.Quoted(l.account.User, l.people.NameOf)
		if text == "" {
			continue
		}
		if len(out.Quotes) >= store.MaxQuotes || len(text) > capacity {
			out.Left++
			continue
		}
		capacity -= len(text)
		about := q.about != nil && m.ID == q.about.ID
		out.Quotes = append(out.Quotes, store.Quote{Speaker: l.speaker(ctx, m), Text: text, At: incoming.TimeOf(m.ID), About: about})
	}
	slices.Reverse(out.Quotes)
	return out, q.before
}

// unheard returns the messages of a thread before a message that nize has not read.
func (l attachments) unheard(ctx context.Context, at store.Address, th store.Thread, before string) ([]incoming.Message, error) {
	after := th.LastMessage
	if after == "" {
		after = at.Thread
	}
	if since := incoming.IDAt(th.Since); !th.Since.IsZero() && incoming.Later(since, after) {
		after = since
	}
	list, err := l.posts.List(ctx, at.Thread, after, maxEarlier)
	if err != nil {
		return nil, err
	}
	heard, err := account.Heard(ctx, l.b.o.Store.Threads, th.ID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(m incoming.Message) bool {
		if m.Mask(); m.ID == before || incoming.Later(m.ID, before) {
			return true
		}
		return m.Author.ID == l.account.User || heard[m.ID]
	}), nil
}

// speaker returns a message's author. If the author can't be looked up, they count as not
// being in the team.
func (l attachments) speaker(ctx context.Context, m incoming.Message) store.Speaker {
	name := bots.Escape(store.Clip(incoming.NameOf(m.Author), 80))
	if m.Author.Bot || m.WebhookID != "" {
		return store.Speaker{Name: name, Bot: true, Outside: m.Author.ID != l.account.User}
	}
	s := store.Speaker{Name: name, Outside: true}
	if p, err := l.people.LookUp(ctx, m.Author.ID, people.Recent); err == nil {
		s = store.Speaker{Name: bots.Escape(store.Clip(p.Name, 80)), Identity: p.Identity(), Outside: !p.Member}
	} else if !wire.Refused(err) {
		l.log.Debug("looking up who wrote a message", "err", err)
	}
	return s
}
