package discordtest

import (
	"encoding/json"
	"net/http"
	"strconv"

	"nize/bots/chattest"
)

// route is a method of the API: its name, used for limits, faults and counts; the part of
// the path that has its own bucket; and its handler, called with s.Mu held.
type route struct {
	method, path, name, major string
	run                       func(*Server, *call) (any, error)
}

var api = []route{
	{"GET", "/users/@me", "me", "", (*Server).me},
	{"DELETE", "/users/@me/guilds/{guild}", "guild.leave", "", (*Server).leaveGuild},
	{"POST", "/users/@me/channels", "channel.dm", "", (*Server).openDM},
	{"GET", "/applications/@me", "app", "", (*Server).app},
	{"GET", "/gateway/bot", "gateway.bot", "", (*Server).gatewayBot},
	{"GET", "/guilds/{guild}", "guild.get", "guild", (*Server).getGuild},
	{"GET", "/guilds/{guild}/members/{user}", "member.get", "guild", (*Server).getMember},
	{"GET", "/channels/{channel}", "channel.get", "channel", (*Server).getChannel},
	{"PATCH", "/channels/{channel}", "channel.edit", "channel", (*Server).editChannel},
	{"GET", "/channels/{channel}/messages", "message.list", "channel", (*Server).listMessages},
	{"POST", "/channels/{channel}/messages", "message.create", "channel", (*Server).createMessage},
	{"GET", "/channels/{channel}/messages/{message}", "message.get", "channel", (*Server).getMessage},
	{"PATCH", "/channels/{channel}/messages/{message}", "message.edit", "channel", (*Server).editMessage},
	{"DELETE", "/channels/{channel}/messages/{message}", "message.delete", "channel", (*Server).deleteMessage},
	{"POST", "/channels/{channel}/messages/{message}/threads", "thread.create", "channel", (*Server).threadFrom},
	{"POST", "/channels/{channel}/typing", "typing", "channel", (*Server).typing},
	{"PUT", "/applications/{app}/commands", "commands.put", "", (*Server).putCommands},
	{"PUT", "/applications/{app}/guilds/{guild}/commands", "commands.put", "guild", (*Server).putCommands},
	{"POST", "/interactions/{id}/{token}/callback", "interaction.callback", "", (*Server).callback},
	{"POST", "/webhooks/{app}/{token}", "webhook", "token", (*Server).followUp},
	{"PATCH", "/webhooks/{app}/{token}/messages/{message}", "webhook", "token", (*Server).editFollowUp},
	{"DELETE", "/webhooks/{app}/{token}/messages/{message}", "webhook", "token", (*Server).deleteFollowUp},
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range api {
		mux.HandleFunc(r.method+" /api/{version}"+r.path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, req *http.Request) {
		s.Change(func() { s.Counts.Unknown = append(s.Counts.Unknown, req.Method+" "+req.URL.Path) })
		write(w, nil, errNotFound)
	})
	mux.HandleFunc("GET /gateway", s.serveGateway)
	mux.HandleFunc("GET /gateway/", s.serveGateway) // clients put a slash before the query
	mux.HandleFunc("GET /attachments/{channel}/{id}/{name}", s.serveFile)
	return mux
}

func (s *Server) serve(w http.ResponseWriter, req *http.Request, r route) {
	key := r.name + ":" + req.PathValue(r.major)
	bound := []string{global}
	if unbound[r.name] {
		bound = nil
	}
	s.Arrive(s.opt.Now(), key, bound...)
	c := &call{Request: req}
	unread := c.read(w)
	s.ServeCall(w, req, chattest.Call{
		Name: r.name, Fault: s.faultForm(w, key), Write: func(answer any, err error) { write(w, answer, err) },
		Do: func() (any, error) {
			if v := req.PathValue("version"); v != "v9" && v != "v10" {
				return nil, errVersion
			}
			// An interaction's request is authorized by the token in its path.
			if !unbound[r.name] && (s.identifies < 0 || req.Header.Get("Authorization") != "Bot "+s.opt.Token) {
				return nil, errUnauthorized
			}
			if err := s.limitLocked(w.Header(), r.name, key); err != nil {
				return nil, err
			}
			if unread != nil {
				return nil, unread
			}
			return r.run(s, c)
		},
	})
}

// call is one request of the bot.
type call struct {
	*http.Request
	body  json.RawMessage
	at    string                     // position of the body within that of the request
	files map[string]chattest.Upload // keyed by field, for a multipart request
}

const (
	maxBody = 25 << 20
	maxFile = 10 << 20
)

// read reads the body, with its files if it is multipart.
func (c *call) read(w http.ResponseWriter) error {
	body, err := chattest.ReadBody(w, c.Request, maxBody)
	c.body, c.files = body.JSON, body.Files
	for _, f := range body.Files {
		if len(f.Content) > maxFile {
			err = errTooLarge
		}
	}
	switch {
	case err != nil:
		return errTooLarge
	case body.Kind == "multipart/form-data":
		c.body = json.RawMessage(body.Form.Get("payload_json"))
	case body.Kind != "application/json" && c.ContentLength > 0:
		return errBadForm
	}
	return nil
}

// decode checks a body and decodes it into v.
func (c *call) decode(shape rule, v any) error {
	if len(c.body) == 0 {
		c.body = json.RawMessage(`{}`)
	}
	if !json.Valid(c.body) {
		return errBadJSON
	}
	if err := check(shape, c.at, c.body); err != nil {
		return err
	}
	if json.Unmarshal(c.body, v) != nil {
		return errBadForm
	}
	return nil
}

func (c *call) limit(most int) int {
	n, err := strconv.Atoi(c.URL.Query().Get("limit"))
	if err != nil {
		n = 50
	}
	return max(1, min(n, most))
}

func (s *Server) serveFile(w http.ResponseWriter, req *http.Request) {
	fault := s.TakeFault("file")
	if fault != nil && (!s.Pause(req, fault) || fault.Write(w, s.faultForm(w, "file"))) {
		return
	}
	f, ok := s.File(req.PathValue("id"))
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(f.Content) // the client is gone
}

// File returns an attachment by its id.
func (s *Server) File(id string) (File, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, list := range s.world.messages {
		for _, m := range list {
			for _, f := range m.Files {
				if f.ID == id && !m.deleted {
					return f, true
				}
			}
		}
	}
	return File{}, false
}

func (s *Server) me(*call) (any, error) { return s.world.user(Bot), nil }

type wireApp struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Public bool   `json:"bot_public"`
	Flags  int    `json:"flags"`
	Bot    *User  `json:"bot"`
	Owner  *User  `json:"owner"`
}

func (s *Server) app(*call) (any, error) {
	return wireApp{ID: App, Name: "nize", Public: s.opt.Public, Flags: s.appFlags(), Bot: s.world.user(Bot), Owner: s.world.user(Ann)}, nil
}

type gatewayAnswer struct {
	URL    string        `json:"url"`
	Shards int           `json:"shards"`
	Limit  identifyLimit `json:"session_start_limit"`
}

type identifyLimit struct {
	Total       int   `json:"total"`
	Remaining   int   `json:"remaining"`
	ResetAfter  int64 `json:"reset_after"`
	Concurrency int   `json:"max_concurrency"`
}

func (s *Server) gatewayBot(*call) (any, error) {
	return gatewayAnswer{URL: s.gatewayURL(), Shards: 1, Limit: identifyLimit{Total: identifies, Remaining: max(s.identifies, 0), ResetAfter: 86_400_000, Concurrency: 1}}, nil
}
