package chattest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// Body is a request's body and form.
type Body struct {
	Kind  string // its media type
	JSON  json.RawMessage
	Form  url.Values        // of a form and the URL
	Files map[string]Upload // of a multipart form, keyed by field
}

// Upload is a file in a form.
type Upload struct {
	Name    string
	Content []byte
}

// ReadBody reads JSON, a form or a multipart form of at most the given size.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) (b Body, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	b.Kind, _, _ = mime.ParseMediaType(r.Header.Get("Content-Type")) // without one, it is a form without fields
	switch b.Kind {
	case "application/json":
		b.JSON, err = io.ReadAll(r.Body)
	case "multipart/form-data":
		err = r.ParseMultipartForm(most) // all of it in memory
	default:
		err = r.ParseForm()
	}
	if b.Form = r.Form; err != nil || r.MultipartForm == nil {
		return b, err
	}
	b.Files = map[string]Upload{}
	for field, list := range r.MultipartForm.File {
		f, err := list[0].Open()
		if err != nil {
			return b, fmt.Errorf("reading the file %s: %w", field, err)
		}
		content, err := io.ReadAll(f)
		if err != nil {
			return b, fmt.Errorf("reading the file %s: %w", field, err)
		}
		b.Files[field] = Upload{Name: list[0].Filename, Content: content}
	}
	return b, nil
}
