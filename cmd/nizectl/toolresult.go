package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"nize/cmd/nizectl/command"
	"nize/cmd/nizectl/display"
	"nize/store"
	"nize/store/printable"
)

// The result of a call for a person: the text of a tool, the messages of a prompt, the
// contents of a resource. Images and other bytes are saved with -o.

// item is a part of a result: of a tool's content, of a resource's contents, or of a
// prompt's message.
type item struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // base64
	Blob     string `json:"blob"` // base64
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource *item  `json:"resource"`
}

// bytesOf returns the bytes of an item that is not text; nil if there are none.
func (i item) bytesOf() (data []byte, kind string) {
	if i.Resource != nil {
		return i.Resource.bytesOf()
	}
	text := i.Data + i.Blob
	if text == "" {
		return nil, ""
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, ""
	}
	return data, i.MimeType
}

// parts returns the items of a result, and the texts of one that is not a tool's.
func parts(raw json.RawMessage) (items []item, texts []string) {
	var result struct {
		Content  []item `json:"content"`
		Contents []item `json:"contents"`
		Messages []struct {
			Role    string `json:"role"`
			Content item   `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(raw, &result) != nil {
		return nil, nil
	}
	say := func(head string, i item) {
		of := i
		if i.Resource != nil {
			of = *i.Resource
		}
		if data, kind := i.bytesOf(); data != nil {
			of.Text = fmt.Sprintf("[%s, %d bytes]", kind, len(data))
		}
		texts = append(texts, head+of.Text)
		items = append(items, i)
	}
	for _, m := range result.Messages {
		say(m.Role+": ", m.Content)
	}
	for _, i := range result.Contents {
		say("", i)
	}
	return append(items, result.Content...), texts
}

// printResult prints the result of a call.
func printResult(c *command.Call, result *store.Result) {
	_, texts := parts(passed(result))
	if len(texts) == 0 {
		c.Line("%s", printable.Prose(result.Text()))
		return
	}
	for _, text := range texts {
		c.Line("%s", printable.Prose(text))
	}
}

// passed returns the result object; nil if there is none.
func passed(r *store.Result) json.RawMessage {
	if r == nil || r.Error != nil {
		return nil
	}
	return r.Passed()
}

// saveResult writes the images, sounds and other bytes of a result to the file, and to
// further files if there are several. If there are none, it writes its text.
func saveResult(c *command.Call, path string, result *store.Result) error {
	items, texts := parts(passed(result))
	var files [][]byte
	var kinds []string
	for _, i := range items {
		if data, kind := i.bytesOf(); data != nil {
			files, kinds = append(files, data), append(kinds, kind)
		}
	}
	if len(files) == 0 {
		text := strings.Join(texts, "\n")
		if text == "" {
			text = result.Text()
		}
		files, kinds = [][]byte{[]byte(text + "\n")}, []string{"text/plain"}
	}
	for n, data := range files {
		to := numbered(path, n)
		if n > 0 { // the first file was confirmed before the call
			if err := mayWrite(c, to); err != nil {
				return err
			}
		}
		if err := writePrivate(to, func(f *os.File) error { _, err := f.Write(data); return err }); err != nil {
			return err
		}
		kind, _, _ := mime.ParseMediaType(kinds[n])
		c.Note("saved %s, %s, %d bytes", display.Clean(to), display.Clean(kind), len(data))
	}
	return nil
}

// numbered returns the name of the n-th file: shot.png, shot-2.png.
func numbered(path string, n int) string {
	if n == 0 {
		return path
	}
	end := filepath.Ext(path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, end), n+1, end)
}
