package slacktest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// File is a file that was shared or is being uploaded.
type File struct {
	ID, Name, Title string
	User            string
	Content         []byte
	Type            string // mimetype; if empty, detected from the content
	Mode            string // hosted, snippet, external, tombstone, hidden_by_limit; empty: hosted
	Access          string // file_access, such as check_file_info of Slack Connect: the details are only in files.info
	Size            int    // announced size; 0: that of the content
	URL             string // another url_private than the fake's
	length          int
	sent, complete  bool
	known           time.Time // when blocks may show it
}

type wireFile struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	Title    string `json:"title,omitempty"`
	MimeType string `json:"mimetype,omitempty"`
	Size     int    `json:"size,omitempty"`
	User     string `json:"user,omitempty"`
	URL      string `json:"url_private,omitempty"`
	Download string `json:"url_private_download,omitempty"`
	Mode     string `json:"mode,omitempty"`
	External bool   `json:"is_external,omitempty"`
	Access   string `json:"file_access,omitempty"`
}

// wire returns f in Slack's form; whole as in files.info.
func (f *File) wire(url string, whole bool) wireFile {
	if f.Access != "" && !whole {
		return wireFile{ID: f.ID, Access: f.Access}
	}
	w := wireFile{ID: f.ID, Name: f.Name, Title: f.Title, MimeType: f.Type, Size: f.Size, User: f.User, Mode: f.Mode, URL: f.URL, External: f.Mode == "external", Access: "visible"}
	if w.Mode == "" {
		w.Mode = "hosted"
	}
	if w.Mode == "tombstone" || w.Mode == "hidden_by_limit" {
		return wireFile{ID: f.ID, Mode: w.Mode}
	}
	if w.MimeType == "" {
		w.MimeType = strings.Split(http.DetectContentType(f.Content), ";")[0]
	}
	if w.Size == 0 {
		w.Size = len(f.Content)
	}
	if w.URL == "" {
		w.URL = url + "/files/" + f.ID
	}
	if !w.External {
		w.Download = w.URL
	}
	return w
}

func wireFiles(url string, files []File) []wireFile {
	var list []wireFile
	for _, f := range files {
		list = append(list, f.wire(url, false))
	}
	return list
}

type uploadTarget struct {
	UploadURL string `json:"upload_url"`
	FileID    string `json:"file_id"`
}

const maxUpload = 64 << 20

func (s *Server) uploadURL(a args) (any, error) {
	n, err := strconv.Atoi(a["length"])
	switch {
	case a["filename"] == "":
		return nil, fail("invalid_arguments", "missing required field: filename")
	case err != nil || n <= 0:
		return nil, fail("invalid_arguments", "length must be a number over 0 [json-pointer:/length]")
	case n > maxUpload:
		return nil, fail("file_upload_size_restricted")
	}
	f := &File{ID: s.idLocked("F"), Name: a["filename"], Title: a["filename"], User: Bot, length: n}
	s.uploads[f.ID] = f
	return uploadTarget{UploadURL: s.URL() + "/upload/" + f.ID, FileID: f.ID}, nil
}

// serveUpload accepts the bytes, bare or as the part "file" or "filename" of a form.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	var from io.Reader = http.MaxBytesReader(w, r.Body, maxUpload)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		parts, err := r.MultipartReader()
		if err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		part, err := parts.NextPart()
		if err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		from = part
	}
	body, err := io.ReadAll(io.LimitReader(from, maxUpload+1))
	if err != nil {
		http.Error(w, "upload broke off", http.StatusBadRequest)
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	f := s.uploads[r.PathValue("id")]
	if f == nil || f.sent || len(body) != f.length {
		http.Error(w, "no such upload, used before, or not the length that was announced", http.StatusBadRequest)
		return
	}
	f.Content, f.sent = body, true
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(body))) // the client is gone
}

type completedFiles struct {
	Files []completedFile `json:"files"`
}

type completedFile struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
}

// completeUpload shares files. The share follows the response, which doesn't contain the
// message's ts.
func (s *Server) completeUpload(a args) (any, error) {
	var list []completedFile
	if json.Unmarshal([]byte(a["files"]), &list) != nil || len(list) == 0 {
		return nil, fail("invalid_arguments", "missing required field: files")
	}
	var files []*File
	for _, want := range list {
		f := s.uploads[want.ID]
		if f == nil || !f.sent || f.complete {
			return nil, fail("file_not_found")
		}
		if want.Title != "" {
			f.Title = want.Title
		}
		files = append(files, f)
	}
	id := a["channel_id"]
	if id == "" {
		id = a["channels"]
	}
	var m *Message
	if id != "" {
		c, err := s.targetLocked(id)
		if err != nil {
			return nil, err
		}
		thread, err := s.threadLocked(c, a["thread_ts"])
		if err != nil {
			return nil, err
		}
		m = &Message{Channel: c.ID, ThreadTS: thread, User: Bot, BotID: BotID, Text: a["initial_comment"], Subtype: "file_share", Mrkdwn: true}
	}
	out := completedFiles{}
	for _, f := range files {
		f.complete, f.known = true, s.opt.Now().Add(s.opt.FilesTake)
		s.world.files[f.ID] = f
		out.Files = append(out.Files, completedFile{ID: f.ID, Title: f.Title})
	}
	if m != nil {
		for _, f := range files {
			m.Files = append(m.Files, *f)
		}
		s.AfterLocked(20*time.Millisecond, func() { s.standLocked(m) })
	}
	return out, nil
}

type oneFile struct {
	File wireFile `json:"file"`
}

func (s *Server) fileInfo(a args) (any, error) {
	f := s.sharedLocked(a["file"])
	if f == nil {
		return nil, fail("file_not_found")
	}
	return oneFile{f.wire(s.URL(), true)}, nil
}

// sharedLocked returns a file that the bot may see: its own, or one shared in a
// conversation that it is in; s.Mu must be held.
func (s *Server) sharedLocked(id string) *File {
	f := s.world.files[id]
	if f == nil || f.User == Bot {
		return f
	}
	for _, c := range s.world.channels {
		if !c.has(Bot) {
			continue
		}
		for _, m := range s.world.messages[c.ID] {
			if !m.Deleted && slices.ContainsFunc(m.Files, func(g File) bool { return g.ID == id }) {
				return f
			}
		}
	}
	return nil
}

// FileFault is a failure of a download: first its Fault, without Error and After, then the
// other fields.
type FileFault struct {
	Fault
	Page    bool   // a sign-in page instead of the file, as without the scope
	To      string // a redirect
	Endless bool   // a body that continues until the client closes
	Cut     bool   // the connection ends in the middle of the file
	Lie     []byte // content other than announced
}

// FailFile makes downloads of a file fail, in the order of the calls.
func (s *Server) FailFile(id string, f FileFault) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.fileFaults[id] = append(s.fileFaults[id], &f)
}

func (s *Server) fileFault(id string) FileFault {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.stats.Downloads++
	list := s.fileFaults[id]
	if len(list) == 0 {
		return FileFault{}
	}
	f := list[0]
	if f.Times--; f.Times <= 0 {
		s.fileFaults[id] = list[1:]
	}
	return *f
}

func (s *Server) deleteFile(a args) (any, error) {
	f := s.world.files[a["file"]]
	switch {
	case f == nil:
		return nil, fail("file_not_found")
	case f.User != Bot:
		return nil, fail("cant_delete_file")
	}
	delete(s.world.files, f.ID)
	return nothing{}, nil
}

// picturesLocked checks a call's references to Slack files: that they exist, are pictures,
// and are processed; s.Mu must be held.
func (s *Server) picturesLocked(a args) error {
	for name, code := range map[string]string{"blocks": "invalid_blocks", "view": "invalid_arguments"} {
		var shown any
		if json.Unmarshal(a.raw(name), &shown) != nil {
			continue // there is none, or another check refuses it
		}
		if err := s.pictureLocked(shown, code, "/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) pictureLocked(part any, code, at string) error {
	switch part := part.(type) {
	case []any:
		for i, p := range part {
			if err := s.pictureLocked(p, code, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case map[string]any:
		if part["type"] == "image" && (part["slack_file"] == nil) == (part["image_url"] == nil) {
			return fail(code, "must have either image_url or slack_file [json-pointer:"+at+"]")
		}
		if file, ok := part["slack_file"].(map[string]any); ok {
			id, _ := file["id"].(string)
			f := s.world.files[id]
			if f == nil || !strings.HasPrefix(http.DetectContentType(f.Content), "image/") || s.opt.Now().Before(f.known) {
				return fail(code, "invalid slack file [json-pointer:"+at+"/slack_file]")
			}
		}
		for name, p := range part {
			if err := s.pictureLocked(p, code, at+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// File returns a shared or uploaded file by its id.
func (s *Server) File(id string) (File, bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	f := s.world.files[id]
	if f == nil {
		return File{}, false
	}
	return *f, true
}

// serveFile returns the content if the request has the bot token, otherwise an HTML page,
// as Slack does.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	fault := s.fileFault(id)
	if !s.Pause(r, &fault.Fault) || fault.Fault.Write(w, s.faultForm(w)) {
		return
	}
	s.Mu.Lock()
	f := s.sharedLocked(id)
	mayRead := token(r, nil) == s.opt.BotToken && s.scopeLocked("files:read")
	s.TouchLocked()
	s.Mu.Unlock()
	switch {
	case fault.To != "":
		http.Redirect(w, r, fault.To, http.StatusFound)
	case fault.Page, !mayRead:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><title>Sign in</title>Sign in to see this file.</html>") // the client is gone
	case f == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		s.sendFile(w, r, f.Content, fault)
	}
}

// sendFile sends the content, as modified by the fault.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, content []byte, fault FileFault) {
	switch {
	case fault.Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		content = content[:len(content)/2] // the server notices the missing half, and ends the connection
	case fault.Lie != nil:
		content = fault.Lie
	}
	for {
		if _, err := w.Write(content); err != nil || !fault.Endless || r.Context().Err() != nil || s.Context().Err() != nil {
			return // the client is gone, or has all of it
		}
	}
}
