package slacktest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"nize/bots/chattest"
	"slices"
	"strconv"
	"strings"
	"time"
)

// method is a method of the Web API.
type method struct {
	scopes []string // one of them is enough; none: every bot token may call it
	tier   int      // 1 to 4; 0: another rule, or none
	app    bool     // requires the app-level token
	run    func(*Server, args) (any, error)
}

// perMinute are the tiers' limits.
var perMinute = [...]int{math.MaxInt, 1, 20, 50, 100}

var methods = map[string]method{
	"auth.test":             {run: (*Server).authTest},
	"apps.connections.open": {tier: 3, app: true, run: (*Server).openConnection},
	"bots.info":             {scopes: []string{"users:read"}, tier: 3, run: (*Server).botsInfo},

	"chat.postMessage":   {scopes: []string{"chat:write"}, run: (*Server).postMessage},
	"chat.postEphemeral": {scopes: []string{"chat:write"}, tier: 4, run: (*Server).postEphemeral},
	"chat.update":        {scopes: []string{"chat:write"}, tier: 3, run: (*Server).update},
	"chat.delete":        {scopes: []string{"chat:write"}, tier: 3, run: (*Server).deleteMessage},
	"chat.getPermalink":  {run: (*Server).permalink},
	"chat.startStream":   {scopes: []string{"chat:write"}, tier: 2, run: (*Server).startStream},
	"chat.appendStream":  {scopes: []string{"chat:write"}, tier: 4, run: (*Server).appendStream},
	"chat.stopStream":    {scopes: []string{"chat:write"}, tier: 2, run: (*Server).stopStream},

	"conversations.open":    {scopes: []string{"im:write", "mpim:write"}, tier: 3, run: (*Server).openDirect},
	"conversations.info":    {scopes: readScopes, tier: 3, run: (*Server).channelInfo},
	"conversations.members": {scopes: readScopes, tier: 4, run: (*Server).channelMembers},
	"conversations.list":    {scopes: readScopes, tier: 2, run: (*Server).channelList},
	"users.conversations":   {scopes: readScopes, tier: 3, run: (*Server).userChannels},
	"conversations.replies": {scopes: historyScopes, tier: 3, run: (*Server).repliesOf},
	"conversations.history": {scopes: historyScopes, tier: 3, run: (*Server).history},

	"users.info":            {scopes: []string{"users:read"}, tier: 4, run: (*Server).usersInfo},
	"users.list":            {scopes: []string{"users:read"}, tier: 2, run: (*Server).usersList},
	"usergroups.list":       {scopes: []string{"usergroups:read"}, tier: 2, run: (*Server).groupsList},
	"usergroups.users.list": {scopes: []string{"usergroups:read"}, tier: 2, run: (*Server).groupUsers},
	"team.info":             {scopes: []string{"team:read"}, tier: 3, run: (*Server).teamInfo},
	"reactions.add":         {scopes: []string{"reactions:write"}, tier: 3, run: (*Server).addReaction},
	"reactions.remove":      {scopes: []string{"reactions:write"}, tier: 2, run: (*Server).removeReaction},

	"views.open":    {tier: 4, run: (*Server).viewOpen},
	"views.push":    {tier: 4, run: (*Server).viewPush},
	"views.update":  {tier: 4, run: (*Server).viewUpdate},
	"views.publish": {tier: 4, run: (*Server).viewPublish},

	"assistant.threads.setStatus":           {scopes: []string{"chat:write", "assistant:write"}, tier: 3, run: (*Server).assistantStatus},
	"assistant.threads.setTitle":            {scopes: []string{"assistant:write"}, tier: 3, run: (*Server).assistantTitle},
	"assistant.threads.setSuggestedPrompts": {scopes: []string{"assistant:write"}, tier: 3, run: (*Server).assistantPrompts},
	"agents.sessions.setStatus":             {scopes: []string{"chat:write"}, tier: 3, run: (*Server).sessionStatus},
	"agents.sessions.rename":                {scopes: []string{"chat:write"}, tier: 3, run: (*Server).sessionRename},

	"files.getUploadURLExternal":   {scopes: []string{"files:write"}, tier: 4, run: (*Server).uploadURL},
	"files.completeUploadExternal": {scopes: []string{"files:write"}, tier: 4, run: (*Server).completeUpload},
	"files.delete":                 {scopes: []string{"files:write"}, tier: 3, run: (*Server).deleteFile},
	"files.info":                   {scopes: []string{"files:read"}, tier: 4, run: (*Server).fileInfo},
}

var (
	readScopes    = []string{"channels:read", "groups:read", "im:read", "mpim:read"}
	historyScopes = []string{"channels:history", "groups:history", "im:history", "mpim:history"}
)

// scopeOf returns the scope of a family ("read", "history") for a channel.
func scopeOf(c *Channel, family string) string {
	return map[string]string{"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}[c.kind()] + ":" + family
}

// failure is a response with ok false.
type failure struct {
	Code     string
	Messages []string      // for response_metadata
	Needed   string        // for missing_scope
	after    time.Duration // for a 429
}

func (f *failure) Error() string {
	return strings.Join(append([]string{f.Code}, f.Messages...), ": ")
}

func fail(code string, messages ...string) error { return &failure{Code: code, Messages: messages} }

// metadata is response_metadata.
type metadata struct {
	Messages   []string `json:"messages,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
	NextCursor string   `json:"next_cursor"`
}

// args are a call's arguments; nested ones are JSON.
type args map[string]string

// raw returns an argument that is JSON, nil if it is missing.
func (a args) raw(name string) json.RawMessage {
	if v := strings.TrimSpace(a[name]); v != "" && v != "null" {
		return json.RawMessage(v)
	}
	return nil
}

func (a args) flag(name string, absent bool) bool {
	switch a[name] {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	return absent
}

// limit returns the requested page size.
func (a args) limit(most int) int {
	n, err := strconv.Atoi(a["limit"])
	if err != nil || n < 1 {
		return most
	}
	return min(n, most)
}

// page returns the page of a list given by limit and cursor.
func page[T any](a args, list []T, most int) ([]T, metadata) {
	from, err := strconv.Atoi(strings.TrimPrefix(a["cursor"], "c"))
	if err != nil || from < 0 || from > len(list) {
		from = 0
	}
	to := min(from+a.limit(most), len(list))
	meta := metadata{}
	if to < len(list) {
		meta.NextCursor = "c" + strconv.Itoa(to)
	}
	return list[from:to], meta
}

const maxBody = 1 << 20 // for a Web API call; Slack's own limit is undocumented

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	a, err := readArgs(w, r)
	m, known := methods[name]
	s.Arrive(s.opt.Now(), "", rateKey(name, a)) // calls of one method may overlap
	s.ServeCall(w, r, chattest.Call{
		Name: name, Fault: s.faultForm(w),
		Do: func() (any, error) {
			if !known {
				s.Counts.Unknown = append(s.Counts.Unknown, name)
				return nil, fail("unknown_method")
			}
			if err == nil {
				err = s.allowLocked(name, m, token(r, a), a)
			}
			if err != nil {
				return nil, err
			}
			s.endStreamsLocked()
			if err := s.picturesLocked(a); err != nil {
				return nil, err
			}
			return m.run(s, a)
		},
		Write: func(answer any, err error) {
			w.Header().Set("X-OAuth-Scopes", strings.Join(s.opt.Scopes, ","))
			w.Header().Set("X-Accepted-OAuth-Scopes", strings.Join(m.scopes, ","))
			writeAnswer(w, s.opt.Scopes, answer, err)
		},
	})
}

// allowLocked checks token, scope and rate; s.Mu must be held.
func (s *Server) allowLocked(name string, m method, token string, a args) error {
	want, other := s.opt.BotToken, s.opt.AppToken
	if m.app {
		want, other = other, want
	}
	switch {
	case token == "":
		return fail("not_authed")
	case s.dead != "":
		return fail(s.dead)
	case token == want && !m.app && s.deadBot != "":
		return fail(s.deadBot)
	case token == other:
		return fail("not_allowed_token_type")
	case token != want:
		return fail("invalid_auth")
	}
	if len(m.scopes) > 0 && !slices.ContainsFunc(m.scopes, s.scopeLocked) {
		return &failure{Code: "missing_scope", Needed: m.scopes[0]}
	}
	if m.app && s.opt.NoConnections {
		return &failure{Code: "missing_scope", Needed: "connections:write"}
	}
	if s.opt.Unlimited {
		return nil
	}
	if name == "chat.postMessage" { // one message per second and channel, after a short burst
		return s.rateLocked(rateKey(name, a), s.opt.Burst, time.Duration(s.opt.Burst)*time.Second)
	}
	return s.rateLocked(rateKey(name, a), perMinute[m.tier], time.Minute)
}

// rateKey returns what a call counts against.
func rateKey(name string, a args) string {
	if name == "chat.postMessage" {
		return name + " " + a["channel"]
	}
	return name
}

func (s *Server) scopeLocked(scope string) bool { return slices.Contains(s.opt.Scopes, scope) }

// needLocked refuses a call that lacks a scope; s.Mu must be held.
func (s *Server) needLocked(scope string) error {
	if s.scopeLocked(scope) {
		return nil
	}
	return &failure{Code: "missing_scope", Needed: scope}
}

// rateLocked allows n calls in each window; s.Mu must be held.
func (s *Server) rateLocked(key string, n int, window time.Duration) error {
	now := s.opt.Now()
	recent := slices.DeleteFunc(s.rates[key], func(t time.Time) bool { return now.Sub(t) >= window })
	s.rates[key] = recent
	if len(recent) >= n {
		after := max(window-now.Sub(recent[0]), time.Second)
		s.LimitLocked(key, now, after)
		return &failure{Code: "ratelimited", after: after}
	}
	s.rates[key] = append(recent, now)
	return nil
}

func token(r *http.Request, a args) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return a["token"]
}

// readArgs decodes a form, a multipart form or JSON.
func readArgs(w http.ResponseWriter, r *http.Request) (args, error) {
	a := args{}
	body, err := chattest.ReadBody(w, r, maxBody)
	for k := range body.Form {
		a[k] = body.Form.Get(k)
	}
	switch isJSON := body.Kind == "application/json"; {
	case err != nil && isJSON:
		return a, fail("request_timeout")
	case err != nil:
		return a, fail("invalid_form_data")
	case !isJSON || string(body.JSON) == "null" || len(body.JSON) == 0:
		return a, nil // slack-go sends null for no arguments
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(body.JSON, &values) != nil {
		return a, fail("invalid_json")
	}
	for k, v := range values {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		a[k] = text
	}
	return a, nil
}

// writeAnswer writes {"ok":…} with the fields of the response or the failure.
func writeAnswer(w http.ResponseWriter, scopes []string, answer any, err error) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if err == nil {
		body, merr := spliceOK(answer)
		if merr == nil {
			_, _ = w.Write(body) // the client is gone
			return
		}
		err = merr
	}
	f, ok := err.(*failure)
	if !ok {
		f = &failure{Code: "internal_error", Messages: []string{err.Error()}}
	}
	out := struct {
		OK       bool      `json:"ok"`
		Error    string    `json:"error"`
		Needed   string    `json:"needed,omitempty"`
		Provided string    `json:"provided,omitempty"`
		Errors   []string  `json:"errors,omitempty"`
		Meta     *metadata `json:"response_metadata,omitempty"`
	}{Error: f.Code, Needed: f.Needed, Errors: f.Messages}
	if f.Needed != "" {
		out.Provided = strings.Join(scopes, ",")
	}
	if len(f.Messages) > 0 {
		out.Meta = &metadata{}
		for _, m := range f.Messages {
			out.Meta.Messages = append(out.Meta.Messages, "[ERROR] "+m)
		}
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.after.Seconds()))))
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_ = json.NewEncoder(w).Encode(out) // the client is gone
}

// spliceOK inserts "ok":true before the fields of a struct.
func spliceOK(answer any) ([]byte, error) {
	if answer == nil {
		return []byte(`{"ok":true}`), nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("writing an answer: %w", err)
	}
	if string(body) == "{}" {
		return []byte(`{"ok":true}`), nil
	}
	return append([]byte(`{"ok":true,`), body[1:]...), nil
}
