package slacktest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	loadingLife = 2 * time.Minute
	maxLoading  = 10
	maxPrompts  = 4
	maxTitle    = 200
)

// threadOfLocked returns the session for channel_id and thread_ts; s.Mu must be held.
func (s *Server) threadOfLocked(a args) (*Channel, *Session, error) {
	c := s.world.channel(a["channel_id"])
	if c == nil || !c.has(Bot) {
		return nil, nil, fail("channel_not_found")
	}
	ts := a["thread_ts"]
	if ts == "" {
		return nil, nil, fail("invalid_thread_ts")
	}
	if m := s.world.message(c.ID, ts); m != nil {
		ts = m.Root()
	} else if !s.opt.Assistant {
		return nil, nil, fail("thread_not_found")
	}
	return c, s.world.session(c.ID, ts), nil
}

// clearLoadingLocked removes the free-text status of a thread after the app posted; s.Mu
// must be held.
func (s *Server) clearLoadingLocked(channel, thread string) {
	if got := s.world.sessions[channel+"/"+thread]; got != nil {
		got.Loading, got.LoadingMessages = "", nil
	}
}

func (s *Server) assistantStatus(a args) (any, error) {
	_, session, err := s.threadOfLocked(a)
	if err != nil {
		return nil, err
	}
	var loading []string
	if list := a["loading_messages"]; list != "" {
		if json.Unmarshal([]byte(list), &loading) != nil {
			loading = strings.Split(list, ",")
		}
	}
	if len(loading) > maxLoading {
		return nil, fail("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	session.Loading, session.LoadingMessages = a["status"], loading
	session.LoadingUntil = s.opt.Now().Add(loadingLife)
	if a["status"] != "" {
		session.Statuses = append(session.Statuses, a["status"])
	}
	return nothing{}, nil
}

func (s *Server) assistantTitle(a args) (any, error) {
	_, session, err := s.threadOfLocked(a)
	if err != nil {
		return nil, err
	}
	if a["title"] == "" {
		return nil, fail("invalid_arguments", "missing required field: title")
	}
	session.Title = a["title"]
	return nothing{}, nil
}

func (s *Server) assistantPrompts(a args) (any, error) {
	c := s.world.channel(a["channel_id"])
	if c == nil || !c.has(Bot) {
		return nil, fail("channel_not_found")
	}
	var prompts []Prompt
	if json.Unmarshal([]byte(a["prompts"]), &prompts) != nil {
		return nil, fail("invalid_arguments", "prompts must be an array")
	}
	if len(prompts) > maxPrompts {
		return nil, fail("invalid_arguments", "no more than 4 items allowed [json-pointer:/prompts]")
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return nil, fail("invalid_arguments", "a prompt needs title and message [json-pointer:/prompts]")
		}
	}
	if a["thread_ts"] == "" {
		if s.opt.Assistant {
			return nil, fail("invalid_thread_ts")
		}
		c.PinnedPrompts = prompts
		return nothing{}, nil
	}
	_, session, err := s.threadOfLocked(a)
	if err != nil {
		return nil, err
	}
	session.Prompts = prompts
	return nothing{}, nil
}

// statuses of a session.
var statuses = []string{"active", "processing", "suspended", "closed"}

type sessionAnswer struct {
	Status      string   `json:"status,omitempty"`
	AgentStatus string   `json:"agent_status,omitempty"`
	Title       string   `json:"title,omitempty"`
	Warning     string   `json:"warning,omitempty"`
	Meta        metadata `json:"response_metadata"`
}

func (s *Server) sessionStatus(a args) (any, error) {
	if s.opt.Assistant {
		return nil, fail("not_an_agent")
	}
	c, session, err := s.threadOfLocked(a)
	if err != nil {
		return nil, err
	}
	if who := a["initiator_user_id"]; who != "" && !c.has(who) {
		return nil, fail("user_not_in_channel")
	}
	if !slices.Contains(statuses, a["status"]) {
		return nil, fail("invalid_status")
	}
	if utf8.RuneCountInString(a["title"]) > maxTitle {
		return nil, fail("invalid_arguments", "must be less than 201 characters [json-pointer:/title]")
	}
	if session.Status == "" {
		session.Title, session.Initiator = a["title"], a["initiator_user_id"]
	}
	s.statusLocked(session, a["status"])
	out := sessionAnswer{Status: session.Status, AgentStatus: session.Status, Title: session.Title}
	if a["status"] == "processing" && !slices.Contains(s.opt.Events, "agent_session_stopped") {
		out.Warning = "missing_agent_session_stopped_event_subscription"
		out.Meta.Warnings = []string{out.Warning}
	}
	return out, nil
}

// statusLocked sets a session's status; s.Mu must be held.
func (s *Server) statusLocked(session *Session, status string) {
	session.Status = status
	session.Statuses = append(session.Statuses, status)
	s.TouchLocked()
}

func (s *Server) sessionRename(a args) (any, error) {
	if s.opt.Assistant {
		return nil, fail("not_an_agent")
	}
	_, session, err := s.threadOfLocked(a)
	if err != nil {
		return nil, err
	}
	title := a["title"]
	if title == "" || utf8.RuneCountInString(title) > maxTitle {
		return nil, fail("invalid_arguments", "title must have 1 to 200 characters [json-pointer:/title]")
	}
	if session.Status == "" {
		return nil, fail("session_not_found")
	}
	session.Title = title
	return sessionAnswer{Title: title}, nil
}
