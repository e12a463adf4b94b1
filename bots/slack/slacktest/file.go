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

// File is one that was shared, or is being uploaded.
type File struct {
	ID, Name, Title string
	User            string
	Content         []byte
	length          int
	sent, complete  bool
}

type wireFile struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MimeType string `json:"mimetype"`
	Size     int    `json:"size"`
	User     string `json:"user"`
	URL      string `json:"url_private"`
	Download string `json:"url_private_download"`
	Mode     string `json:"mode"`
}

func (f *File) wire(url string) wireFile {
	kind := strings.Split(http.DetectContentType(f.Content), ";")[0]
	return wireFile{ID: f.ID, Name: f.Name, Title: f.Title, MimeType: kind, Size: len(f.Content), User: f.User, URL: url + "/files/" + f.ID, Download: url + "/files/" + f.ID, Mode: "hosted"}
}

func wireFiles(url string, files []File) []wireFile {
	var list []wireFile
	for _, f := range files {
		list = append(list, f.wire(url))
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
	return uploadTarget{UploadURL: s.url + "/upload/" + f.ID, FileID: f.ID}, nil
}

// serveUpload takes the bytes, bare or as the part "file" or "filename" of a form.
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
	s.mu.Lock()
	defer s.mu.Unlock()
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

// completeUpload shares files. The share comes a moment after the answer, and
// the answer does not tell the message's ts.
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
		f.complete = true
		s.world.files[f.ID] = f
		out.Files = append(out.Files, completedFile{ID: f.ID, Title: f.Title})
	}
	if m != nil {
		for _, f := range files {
			m.Files = append(m.Files, *f)
		}
		s.afterLocked(20*time.Millisecond, func() { s.standLocked(m) })
	}
	return out, nil
}

type oneFile struct {
	File wireFile `json:"file"`
}

func (s *Server) fileInfo(a args) (any, error) {
	f := s.world.files[a["file"]]
	if f == nil {
		return nil, fail("file_not_found")
	}
	return oneFile{f.wire(s.url)}, nil
}

// serveFile gives the content to who has the bot token, and a page of HTML to
// who has not, as Slack does.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.world.files[r.PathValue("id")]
	switch {
	case f == nil:
		http.NotFound(w, r)
	case token(r, nil) != s.opt.BotToken || !slices.Contains(s.opt.Scopes, "files:read"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html><title>Sign in</title>") // the client is gone
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(f.Content) // the client is gone
	}
}
