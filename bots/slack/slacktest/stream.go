package slacktest

import (
	"encoding/json"
	"nize/bots/chattest"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// streamLife is the time after which Slack ends a stream by itself.
const streamLife = 5 * time.Minute

// Stream is the content streamed into a message.
type Stream struct {
	Open    bool
	Began   time.Time
	Ended   string // reason: stop, timeout, user
	Text    string
	Tasks   []Task
	Plan    string
	Mode    string            // task_display_mode
	Kind    string            // of its first content, which all later content must have: markdown_text or chunks
	Blocks  []json.RawMessage // of chunks and of the stop
	Appends int
}

// Task is a task_update chunk.
type Task struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Details string          `json:"details"`
	Output  string          `json:"output"`
	Sources json.RawMessage `json:"sources"`
}

func (st *Stream) clone() Stream {
	out := *st
	out.Tasks, out.Blocks = slices.Clone(st.Tasks), slices.Clone(st.Blocks)
	return out
}

// chunk is an entry of chunks.
type chunk struct {
	Type   string            `json:"type"`
	Text   string            `json:"text"`
	Blocks []json.RawMessage `json:"blocks"`
	Task
}

// endStreamsLocked ends streams that are open for too long; s.Mu must be held.
func (s *Server) endStreamsLocked() {
	now := s.opt.Now()
	for _, list := range s.world.messages {
		for _, m := range list {
			if m.Stream != nil && m.Stream.Open && now.Sub(m.Stream.Began) >= streamLife {
				s.endLocked(m, "timeout")
			}
		}
	}
}

// endLocked closes a stream; s.Mu must be held.
func (s *Server) endLocked(m *Message, how string) {
	m.Stream.Open, m.Stream.Ended = false, how
	s.TouchLocked()
}

// EndStreams ends every open stream, as Slack does after five minutes.
func (s *Server) EndStreams() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, list := range s.world.messages {
		for _, m := range list {
			if m.Stream != nil && m.Stream.Open {
				s.endLocked(m, "timeout")
			}
		}
	}
}

func (s *Server) startStream(a args) (any, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	thread, err := s.threadLocked(c, a["thread_ts"])
	switch {
	case err != nil:
		return nil, err
	case thread == "" && c.IM:
		return nil, fail("invalid_arguments", "missing required field: thread_ts")
	}
	// Slack's reference requires these only in channels, but bots were refused without them
	// in direct conversations too.
	user, team := a["recipient_user_id"], a["recipient_team_id"]
	switch u := s.world.user(user); {
	case user == "":
		return nil, fail("missing_recipient_user_id")
	case team == "":
		return nil, fail("missing_recipient_team_id")
	case u == nil:
		return nil, fail("user_not_found")
	case u.Stranger:
		return nil, fail("user_not_found") // Slack Connect users can't be streamed to
	case team != u.Team && !slices.Contains(u.Workspaces, team):
		return nil, fail("team_not_found")
	}
	mode := a["task_display_mode"]
	if mode != "" && mode != "timeline" && mode != "plan" && mode != "dense" {
		return nil, fail("invalid_arguments", "task_display_mode must be timeline or plan")
	}
	st := &Stream{Open: true, Began: s.opt.Now(), Mode: mode}
	if err := st.take(a); err != nil {
		return nil, err
	}
	m := &Message{Channel: c.ID, ThreadTS: thread, User: Bot, BotID: BotID, Stream: st, Mrkdwn: true}
	m.Text, m.Blocks = st.shown()
	s.standLocked(m)
	s.clearLoadingLocked(c.ID, thread)
	s.AfterLocked(streamLife, s.endStreamsLocked) // so that waiters are woken
	return channelTS{Channel: c.ID, TS: m.TS}, nil
}

// streamOf returns the open stream of a call; s.Mu must be held.
func (s *Server) streamOf(a args) (*Message, error) {
	c, err := s.targetLocked(a["channel"])
	if err != nil {
		return nil, err
	}
	m := s.world.message(c.ID, a["ts"])
	switch {
	case m == nil:
		return nil, fail("message_not_found")
	case m.User != Bot:
		return nil, fail("message_not_owned_by_app")
	case m.Stream != nil && m.Stream.Ended == "user":
		return nil, fail("stopped_by_user")
	case m.Stream == nil || !m.Stream.Open:
		return nil, fail("message_not_in_streaming_state")
	}
	return m, nil
}

func (s *Server) appendStream(a args) (any, error) {
	m, err := s.streamOf(a)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(a["markdown_text"]) == "" && a.raw("chunks") == nil {
		return nil, fail("no_text")
	}
	if err := m.Stream.take(a); err != nil {
		return nil, err
	}
	m.Stream.Appends++
	m.Text, m.Blocks = m.Stream.shown()
	m.Versions = append(m.Versions, Version{Text: m.Text, Blocks: m.Blocks, At: s.opt.Now()})
	return channelTS{Channel: m.Channel, TS: m.TS}, nil
}

func (s *Server) stopStream(a args) (any, error) {
	m, err := s.streamOf(a)
	if err != nil {
		return nil, err
	}
	if blocks := a.raw("blocks"); blocks != nil {
		if err := checkMessageBlocks(blocks); err != nil {
			return nil, err
		}
	}
	if status := a["session_status"]; status != "" && !slices.Contains(statuses, status) {
		return nil, fail("invalid_status")
	}
	if err := m.Stream.take(a); err != nil {
		return nil, err
	}
	if blocks := a.raw("blocks"); blocks != nil {
		var list []json.RawMessage
		_ = json.Unmarshal(blocks, &list) // checked before
		m.Stream.Blocks = append(m.Stream.Blocks, list...)
	}
	before := s.wireLocked(m)
	m.Text, m.Blocks = m.Stream.shown()
	s.endLocked(m, "stop")
	s.changedLocked(m, before)
	if status := a["session_status"]; status != "" {
		s.statusLocked(s.world.session(m.Channel, m.Root()), status)
	}
	return posted{Channel: m.Channel, TS: m.TS, Message: s.wireLocked(m)}, nil
}

// take adds markdown_text and chunks, all or nothing.
func (st *Stream) take(a args) error {
	if utf8.RuneCountInString(a["markdown_text"]) > maxMarkdown {
		return fail("msg_too_long")
	}
	if a["markdown_text"] != "" && a.raw("chunks") != nil {
		return fail("cannot_provide_both_markdown_text_and_chunks")
	}
	next := st.clone()
	for _, kind := range []string{"markdown_text", "chunks"} {
		if a[kind] == "" {
			continue
		}
		if next.Kind == "" {
			next.Kind = kind
		}
		if next.Kind != kind {
			return fail("streaming_mode_mismatch")
		}
	}
	next.Text += a["markdown_text"]
	var chunks []chunk
	if raw := a.raw("chunks"); raw != nil {
		if json.Unmarshal(raw, &chunks) != nil {
			return fail("invalid_chunks")
		}
	}
	for _, c := range chunks {
		if err := next.chunk(c); err != nil {
			return err
		}
	}
	if utf8.RuneCountInString(next.Text) > maxMarkdown { // as for all markdown blocks of one message
		return fail("msg_too_long")
	}
	if len(next.Blocks) > maxMessageBlocks {
		return fail("invalid_blocks", "no more than 50 items allowed [json-pointer:/blocks]")
	}
	*st = next
	return nil
}

func (st *Stream) chunk(c chunk) error {
	switch c.Type {
	case "markdown_text":
		if utf8.RuneCountInString(c.Text) > maxMarkdown {
			return fail("msg_too_long")
		}
		st.Text += c.Text
	case "plan_update":
		if c.Title == "" {
			return fail("invalid_chunks", "plan_update needs a title")
		}
		st.Plan = c.Title
	case "task_update":
		if c.ID == "" || c.Title == "" {
			return fail("invalid_chunks", "task_update needs id and title")
		}
		if !slices.Contains([]string{"", "pending", "in_progress", "complete", "error"}, c.Status) {
			return fail("invalid_chunks", "task_update has an unknown status")
		}
		i := slices.IndexFunc(st.Tasks, func(t Task) bool { return t.ID == c.ID })
		if i < 0 {
			st.Tasks = append(st.Tasks, c.Task)
		} else {
			old := &st.Tasks[i]
			old.Title, old.Status = c.Title, c.Status
			old.Details += c.Details // these two are appended instead of replaced
			old.Output += c.Output
		}
	case "blocks":
		if err := checkStreamBlocks(chattest.JSON(c.Blocks)); err != nil {
			return err
		}
		st.Blocks = append(st.Blocks, c.Blocks...)
	default:
		return fail("invalid_chunks", "unknown chunk type "+c.Type)
	}
	return nil
}

// shown returns the message's text and blocks.
func (st *Stream) shown() (string, json.RawMessage) {
	var blocks []json.RawMessage
	for _, t := range st.Tasks {
		blocks = append(blocks, chattest.JSON(taskCard{Type: "task_card", ID: t.ID, Title: t.Title, Status: t.Status}))
	}
	if strings.TrimSpace(st.Text) != "" {
		blocks = append(blocks, chattest.JSON(markdownBlock{Type: "markdown", Text: st.Text}))
	}
	blocks = append(blocks, st.Blocks...)
	if len(blocks) == 0 {
		return st.Text, nil
	}
	return st.Text, chattest.JSON(blocks)
}

type taskCard struct {
	Type   string `json:"type"`
	ID     string `json:"task_id"`
	Title  string `json:"title"`
	Status string `json:"status,omitempty"`
}
