package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// command is the payload of a slash command.
type command struct {
	Token       string `json:"token"`
	TeamID      string `json:"team_id"`
	TeamDomain  string `json:"team_domain"`
	ChannelID   string `json:"channel_id"`
	ChannelName string `json:"channel_name"`
	UserID      string `json:"user_id"`
	UserName    string `json:"user_name"`
	Command     string `json:"command"`
	Text        string `json:"text"`
	AppID       string `json:"api_app_id"`
	IsOrg       string `json:"is_enterprise_install"`
	ResponseURL string `json:"response_url"`
	TriggerID   string `json:"trigger_id"`
}

// Slash runs a slash command, "/nize help", and waits for its acknowledgement. The app's
// response to it is shown in the channel, only to the user unless it says otherwise. Slack
// doesn't support slash commands in threads, so neither does this.
func (s *Server) Slash(ctx context.Context, user, channel, line string) error {
	reply, err := s.ask(ctx, "slash_commands", func() (any, error) {
		u, c := s.world.user(user), s.world.channel(channel)
		if u == nil || c == nil || !c.has(user) {
			return nil, fmt.Errorf("slacktest: %s is in no channel %s", user, channel)
		}
		name, rest, _ := strings.Cut(line, " ")
		return command{Token: "fake-verification", TeamID: Team, TeamDomain: "fake", ChannelID: c.ID, ChannelName: channelOf(c).Name, UserID: u.ID, UserName: u.Name,
			Command: name, Text: strings.TrimSpace(rest), AppID: App, IsOrg: "false", ResponseURL: s.replyURLLocked(user, channel, "", nil), TriggerID: s.triggerLocked(user, "")}, nil
	})
	if err != nil || len(reply) == 0 || string(reply) == "{}" || string(reply) == "null" || string(reply) == `""` {
		return err
	}
	return s.Try(func() error { return s.replyLocked(&replyURL{user: user, channel: channel}, reply) })
}

// replyURL is a response_url.
type replyURL struct {
	user, channel, thread string
	original              *Message
	at                    time.Time
	uses                  int
}

// replyURLLocked makes a response_url; s.Mu must be held.
func (s *Server) replyURLLocked(user, channel, thread string, original *Message) string {
	id := s.idLocked("reply")
	s.replies[id] = &replyURL{user: user, channel: channel, thread: thread, original: original, at: s.opt.Now()}
	return s.URL() + "/reply/" + id
}

func (s *Server) serveReply(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	defer s.TouchLocked()
	to := s.replies[r.PathValue("id")]
	switch {
	case to == nil:
		http.Error(w, "no_such_url", http.StatusNotFound)
		return
	case s.opt.Now().Sub(to.at) > replyLife:
		http.Error(w, "expired_url", http.StatusNotFound)
		return
	case to.uses >= replyUses:
		http.Error(w, "used_url", http.StatusNotFound)
		return
	}
	to.uses++
	s.stats.Responses++
	if err := s.replyLocked(to, body); err != nil {
		s.Counts.Refused = append(s.Counts.Refused, Refusal{Method: "response_url", Error: err.Error()})
		writeAnswer(w, s.opt.Scopes, nil, err)
		return
	}
	_, _ = io.WriteString(w, "ok") // the client is gone
}

// response is a payload for a response_url, or the acknowledgement of a command.
type response struct {
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks"`
	Type     string          `json:"response_type"`
	ThreadTS string          `json:"thread_ts"`
	Replace  bool            `json:"replace_original"`
	Delete   bool            `json:"delete_original"`
}

// replyLocked carries out a response; s.Mu must be held.
func (s *Server) replyLocked(to *replyURL, body json.RawMessage) error {
	var in response
	var bare string
	if json.Unmarshal(body, &bare) == nil {
		in.Text = bare
	} else if json.Unmarshal(body, &in) != nil {
		return fail("invalid_payload")
	}
	if in.Delete && to.original != nil {
		s.removeLocked(to.original)
		return nil
	}
	a := args{"text": in.Text, "blocks": string(in.Blocks)}
	c, err := s.readContent(a)
	if err != nil {
		return err
	}
	if in.Replace && to.original != nil {
		before := s.wireLocked(to.original)
		to.original.Text, to.original.Blocks = c.text, c.blocks
		s.changedLocked(to.original, before)
		return nil
	}
	m := &Message{Channel: to.channel, User: Bot, BotID: BotID, Text: c.text, Blocks: c.blocks, Mrkdwn: true, ThreadTS: in.ThreadTS}
	if m.ThreadTS == "" && to.original != nil && to.original.ThreadTS != "" {
		m.ThreadTS = to.thread
	}
	if in.Type != "in_channel" {
		m.For = to.user
	}
	s.standLocked(m)
	return nil
}
