package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"nize/bots"
	"nize/bots/phrases"
	"nize/store"
)

const (
	// maxToolLines bounds how many tools one message tells about.
	maxToolLines = 20
	// maxResultButtons is how many of them have a button; a row takes 25.
	maxResultButtons = 5
)

// maxLineKeys bounds how many messages about tools are remembered.
const maxLineKeys = 8192

// toolLines are the messages about tools: one for a turn, until something else
// is said.
type toolLines struct {
	mu sync.Mutex // guards of
	of map[string]*turnLines
}

// turnLines are the lines of one message.
type turnLines struct {
	ts    string
	order []string // ids of messages, tool/CALL
	lines map[string]store.ToolLine
	none  map[string]bool // those of calls that were never made: there is no result
	// before is what stands there of an earlier run.
	before toolsBefore
}

// open is the message that a line belongs to: the one at ts, else the thread's
// newest, else a new one.
func (t *toolLines) open(key, ts string) *turnLines {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) > maxLineKeys {
		t.of = map[string]*turnLines{}
	}
	if ts != "" {
		if have := t.of[key+"/"+ts]; have != nil {
			return have
		}
		return &turnLines{ts: ts, lines: map[string]store.ToolLine{}, none: map[string]bool{}}
	}
	if have := t.of[key]; have != nil && len(have.order) < maxToolLines {
		return have
	}
	t.of[key] = &turnLines{lines: map[string]store.ToolLine{}, none: map[string]bool{}}
	return t.of[key]
}

// stands remembers where the message was posted.
func (t *toolLines) stands(key string, lines *turnLines) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[key+"/"+lines.ts] = lines
}

// close ends the thread's message: the next tool begins a new one.
func (t *toolLines) close(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

// showTool adds a tool's line to the turn's message, or changes it there.
func (l *live) showTool(ctx context.Context, at store.Address, m store.Message) (string, error) {
	key := at.Channel + "/" + at.Thread
	t := l.lines.open(key, at.Message)
	locale := l.reader(ctx, at).Locale
	if at.Message != "" && len(t.order) == 0 {
		var err error
		if t.before, err = l.readTools(ctx, at); err != nil {
			return at.Message, err
		}
	}
	if _, ok := t.lines[m.ID]; !ok {
		t.before.told(m.ID, *m.Tool, phrases.For(locale))
		t.order = append(t.order, m.ID)
	}
	t.lines[m.ID] = *m.Tool
	if call, ok := strings.CutPrefix(m.ID, "tool/"); ok && m.Tool.State == store.Failed {
		_, err := l.b.o.Calls.GetCall(ctx, call)
		t.none[m.ID] = errors.Is(err, store.ErrNotFound) // what the model asked for could not even be tried
	}
	place := at
	place.Message = t.ts
	ts, err := l.put(ctx, place, t.order[0], same(toolContent(t, locale)...))
	if err == nil {
		t.ts = ts
		l.lines.stands(key, t)
	}
	return ts, err
}

// reader is for whom a thread is written.
func (l *live) reader(ctx context.Context, at store.Address) bots.Reader {
	r := bots.Reader{Now: l.b.o.Now()}
	if th, err := l.b.o.Store.FindThread(ctx, at); err == nil {
		r.Zone = zone(th.Zone)
		if r.Locale, err = bots.Spoken(ctx, l.b.o.Store, th); err != nil {
			l.log.Warn("reading the language of a channel", "channel", at.Channel, "err", err)
		}
		return r
	}
	id, err := l.reads(ctx, at.Channel)
	if err != nil {
		l.log.Warn("finding out who reads a conversation; it is written to in English", "channel", at.Channel, "err", err)
	}
	if id == "" {
		return r
	}
	if p, err := l.who(ctx, id, time.Hour); err == nil { // with what they set
		r.Locale, r.Zone = p.locale, zone(p.zone)
	}
	return r
}

// toolContent is the message about a turn's tools: a line each, and buttons
// that show results.
func toolContent(t *turnLines, locale string) []slackgo.MsgOption {
	catalogue := phrases.For(locale)
	lines, buttons := slices.Clone(t.before.lines), slices.Clone(t.before.buttons)
	several := len(lines) // tools, not lookups
	for _, id := range t.order {
		if _, lookup := bots.Lookup(t.lines[id].Name, catalogue); !lookup {
			several++
		}
	}
	for i, id := range t.order {
		line := t.lines[id]
		if title, lookup := bots.Lookup(line.Name, catalogue); lookup {
			if i == len(t.order)-1 { // what it led to follows, and says more
				lines = append(lines, clip(bots.LookupWords(line, title, catalogue), 300))
			}
			continue
		}
		lines = append(lines, toolLine(line, locale))
		call, ok := strings.CutPrefix(id, "tool/")
		ended := line.State == store.Done || line.State == store.Failed
		if ok && ended && (line.State == store.Done || !t.none[id]) && store.ValidID(call) && strings.Contains(line.Name, ":") && len(buttons) < maxResultButtons {
			text := catalogue.Say(phrases.ButtonShowResult)
			if several > 1 {
				text += " · " + bots.Escape(line.Name)
			}
			buttons = append(buttons, button(resultAction+":"+call, clip(text, maxButton), "result "+call))
		}
	}
	text := strings.Join(lines, "\n")
	blocks := []slackgo.Block{slackgo.NewContextBlock(blockOf(t.order[0]), plainText(clip(text, maxContext)))}
	if len(buttons) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("", buttons...))
	}
	return []slackgo.MsgOption{slackgo.MsgOptionText(fallback(text, maxEdited), false), slackgo.MsgOptionBlocks(blocks...)}
}

// toolLine is one tool in one line: what, how it stands, and in brief.
func toolLine(line store.ToolLine, locale string) string {
	words := phrases.For(locale)
	key, ok := map[store.State]phrases.Key{
		store.Planned: phrases.ToolCalling, store.Running: phrases.ToolCalling, store.Pending: phrases.StatePending,
		store.Done: phrases.StateDone, store.Failed: phrases.StateFailed, store.Refused: phrases.StateRefused,
		store.Expired: phrases.StateExpired, store.Cancelled: phrases.StateCancelled,
	}[line.State]
	if !ok {
		key = phrases.StateLost
	}
	text := bots.Escape(clip(line.Name, 120)) + ": " + words.Say(key)
	if line.Brief != "" {
		text += " – " + bots.Escape(clip(words.Translate(line.Brief), 160))
	}
	return text
}
