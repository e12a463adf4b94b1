package discordtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// call is one request of the bot's.
type call struct {
	*http.Request
	body  []byte
	files map[string]File // by field, of a multipart request
}

func (c *call) limit(most int) int {
	n, err := strconv.Atoi(c.URL.Query().Get("limit"))
	if err != nil {
		n = 50
	}
	return max(1, min(n, most))
}

// decode reads a body into v; fields of another type are refused.
func (c *call) decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(c.body, v); {
	case errors.As(err, &wrong):
		ck := &checker{}
		ck.wrong(cmp.Or(wrong.Field, "body"), "BASE_TYPE_BAD", "Value has the wrong type.")
		return ck.err()
	case err != nil:
		return errBadJSON
	}
	return nil
}

// route is a method of the API: its name, for limits, faults and counts, the
// part of the path that has a bucket of its own, and what it does with s.Mu held.
type route struct {
	pattern, name, major string
	run                  func(*Server, *call) (any, error)
}

var api = []route{
	{"GET /users/@me", "me", "", (*Server).me},
	{"DELETE /users/@me/guilds/{guild}", "guild.leave", "", (*Server).leaveGuild},
	{"POST /users/@me/channels", "channel.dm", "", (*Server).openDM},
	{"GET /applications/@me", "app", "", (*Server).app},
	{"GET /gateway/bot", "gateway.bot", "", (*Server).gatewayBot},
	{"GET /guilds/{guild}", "guild.get", "guild", (*Server).getGuild},
	{"GET /guilds/{guild}/members/{user}", "member.get", "guild", (*Server).getMember},
	{"GET /channels/{channel}", "channel.get", "channel", (*Server).getChannel},
	{"PATCH /channels/{channel}", "channel.edit", "channel", (*Server).editChannel},
	{"GET /channels/{channel}/messages", "message.list", "channel", (*Server).listMessages},
	{"POST /channels/{channel}/messages", "message.create", "channel", (*Server).createMessage},
	{"GET /channels/{channel}/messages/{message}", "message.get", "channel", (*Server).getMessage},
	{"PATCH /channels/{channel}/messages/{message}", "message.edit", "channel", (*Server).editMessage},
	{"DELETE /channels/{channel}/messages/{message}", "message.delete", "channel", (*Server).deleteMessage},
	{"POST /channels/{channel}/messages/{message}/threads", "thread.create", "channel", (*Server).threadFrom},
	{"POST /channels/{channel}/typing", "typing", "channel", (*Server).typing},
	{"PUT /applications/{app}/commands", "commands.put", "", (*Server).putCommands},
	{"PUT /applications/{app}/guilds/{guild}/commands", "commands.put", "guild", (*Server).putCommands},
	{"POST /interactions/{id}/{token}/callback", "interaction.callback", "", (*Server).callback},
	{"POST /webhooks/{app}/{token}", "webhook", "token", (*Server).followUp},
	{"PATCH /webhooks/{app}/{token}/messages/{message}", "webhook", "token", (*Server).editFollowUp},
	{"DELETE /webhooks/{app}/{token}/messages/{message}", "webhook", "token", (*Server).deleteFollowUp},
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range api {
		method, path, _ := strings.Cut(r.pattern, " ")
		mux.HandleFunc(method+" /api/{version}"+path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, req *http.Request) {
		s.Mu.Lock()
		s.stats.Unknown = append(s.stats.Unknown, req.Method+" "+req.URL.Path)
		s.Mu.Unlock()
		writeJSON(w, http.StatusNotFound, errNotFound)
	})
	mux.HandleFunc("GET /gateway", s.serveGateway)
	mux.HandleFunc("GET /gateway/", s.serveGateway) // clients put a slash before the query
	mux.HandleFunc("GET /attachments/{channel}/{id}/{name}", s.serveFile)
	return mux
}

const maxBody = 25 << 20

func (s *Server) serve(w http.ResponseWriter, req *http.Request, r route) {
	if v := req.PathValue("version"); v != "v9" && v != "v10" {
		writeJSON(w, http.StatusBadRequest, refuse(400, 50041, "Invalid API version"))
		return
	}
	s.Mu.Lock()
	s.stats.Calls[r.name]++
	major := req.PathValue(r.major)
	s.arriveLocked(r.name, major)
	s.Mu.Unlock()
	c := &call{Request: req}
	fault := s.TakeFault(r.name)
	if !s.Pause(req, fault) || fault != nil && !fault.After && s.writeFault(w, fault, r.name+":"+major) {
		return
	}
	answer, err := any(nil), error(nil)
	switch {
	case r.name != "interaction.callback" && r.name != "webhook" && r.name != "gateway" && !s.authorized(req):
		err = errUnauthorized
	case !s.limit(w, r.name, major):
		return
	default:
		if err = c.read(w); err == nil {
			answer, err = s.run(r, c)
		}
	}
	if fault != nil {
		if fault.Hang || fault.Held != nil {
			select {
			case <-fault.Held:
			case <-req.Context().Done():
				return
			case <-s.Context().Done():
				return
			}
		}
		if fault.After && s.writeFault(w, fault, r.name+":"+major) {
			return
		}
	}
	var p *problem
	switch {
	case errors.As(err, &p):
		s.refused(r.name, p)
		writeJSON(w, p.status, p)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

func (s *Server) run(r route, c *call) (any, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	defer s.TouchLocked()
	return r.run(s, c)
}

func (s *Server) refused(name string, p *problem) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.stats.Refused = append(s.stats.Refused, Refusal{Method: name, Status: p.status, Code: p.Code, Why: p.Message + " " + string(p.Errors)})
	if p.status == http.StatusUnauthorized || p.status == http.StatusForbidden {
		s.stats.Invalid++
	}
}

func (s *Server) authorized(req *http.Request) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return !s.dead && req.Header.Get("Authorization") == "Bot "+s.opt.Token
}

// read takes the body, with its files where it is multipart.
func (c *call) read(w http.ResponseWriter) error {
	body := http.MaxBytesReader(w, c.Body, maxBody)
	kind, params, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		var err error
		if c.body, err = io.ReadAll(body); err != nil {
			return errTooLarge
		}
		if len(c.body) > 0 && kind != "application/json" {
			return refuse(400, 50035, "Invalid Form Body")
		}
		return nil
	}
	c.files = map[string]File{}
	r := multipart.NewReader(body, params["boundary"])
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errBadJSON
		}
		raw, err := io.ReadAll(part)
		switch {
		case err != nil || len(raw) > maxFile:
			return errTooLarge
		case part.FormName() == "payload_json":
			c.body = raw
		default:
			c.files[part.FormName()] = File{Name: part.FileName(), Content: raw}
		}
	}
}

const maxFile = 10 << 20

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

func (s *Server) serveFile(w http.ResponseWriter, req *http.Request) {
	s.Mu.Lock()
	f, ok := s.fileLocked(req.PathValue("id"))
	s.Mu.Unlock()
	if fault := s.TakeFault("file"); fault != nil && (!s.Pause(req, fault) || s.writeFault(w, fault, "file")) {
		return
	}
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(f.Content) // the client is gone
}

func (s *Server) fileLocked(id string) (File, bool) {
	for _, list := range s.world.messages {
		for _, m := range list {
			if i := slices.IndexFunc(m.Files, func(f File) bool { return f.ID == id }); i >= 0 && !m.deleted {
				return m.Files[i], true
			}
		}
	}
	return File{}, false
}

// File is an attachment by its id.
func (s *Server) File(id string) (File, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.fileLocked(id)
}

func (s *Server) me(*call) (any, error) {
	w := s.world.user(Bot).wire()
	yes, no := true, 0
	w.Verified, w.MFA, w.Flags = &yes, &yes, &no
	return w, nil
}

type wireApp struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	BotPublic bool      `json:"bot_public"`
	CodeGrant bool      `json:"bot_require_code_grant"`
	Flags     int       `json:"flags"`
	Bot       *wireUser `json:"bot"`
	Owner     *wireUser `json:"owner"`
	VerifyKey string    `json:"verify_key"`
	Guilds    int       `json:"approximate_guild_count"`
	Endpoint  *string   `json:"interactions_endpoint_url"`
}

func (s *Server) app(*call) (any, error) {
	bot, ann := s.world.user(Bot).wire(), s.world.user(Ann).wire()
	return wireApp{ID: App, Name: "nize", BotPublic: s.opt.Public, Flags: s.appFlags(), Bot: &bot, Owner: &ann, Guilds: len(s.guildsOf(Bot))}, nil
}

func (s *Server) guildsOf(user string) (list []*guild) {
	for _, g := range s.world.guilds {
		if g.member(user) != nil {
			list = append(list, g)
		}
	}
	return list
}

type gatewayAnswer struct {
	URL    string         `json:"url"`
	Shards int            `json:"shards,omitempty"`
	Limit  *identifyLimit `json:"session_start_limit,omitempty"`
}

type identifyLimit struct {
	Total       int   `json:"total"`
	Remaining   int   `json:"remaining"`
	ResetAfter  int64 `json:"reset_after"`
	Concurrency int   `json:"max_concurrency"`
}

func (s *Server) gatewayBot(*call) (any, error) {
	return gatewayAnswer{URL: s.gatewayURL(), Shards: 1, Limit: &identifyLimit{Total: 1000, Remaining: max(s.opt.Identifies, 0), ResetAfter: 86_400_000, Concurrency: 1}}, nil
}
