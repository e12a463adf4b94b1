package openapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nize/mcp/upstream/wire"
	"nize/store"
)

// Limits of a response.
const (
	maxAnswer = 8 << 20 // bytes of text
	maxBinary = 4 << 20 // bytes that are encoded as base64
	maxSaid   = 8 << 10 // bytes of an error response
	maxNested = 60      // nesting of JSON; the pool accepts 64 in a result
)

// content is one item of a result.
type content struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"`
	MIMEType string    `json:"mimeType,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Blob     string `json:"blob"`
}

// result is what a call returns.
type result struct {
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

func textItem(s string) content { return content{Type: "text", Text: &s} }

// told lists response headers that tell a caller how to continue.
var told = []string{"Location", "Link", "Retry-After", "Content-Range"}

// read converts a response to a result. A status from 400 on is a tool error with the
// service's text.
func read(route Route, resp *http.Response) (json.RawMessage, error) {
	failed := resp.StatusCode >= 400
	max := maxAnswer
	if failed {
		max = 64 << 10
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(max)+1))
	if err != nil && !failed {
		return nil, err
	}
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	status = strings.TrimSpace(status)
	media, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if failed {
		said := strings.TrimSpace(string(body))
		if !utf8.ValidString(said) || strings.HasPrefix(media, "image/") {
			said = ""
		}
		text := route.Method + " " + route.Path + " answered " + status
		if said != "" {
			text += ": " + store.Clip(said, maxSaid)
		}
		if after := RetryAfter(resp, time.Now()); after > 0 {
			text += "; it may be tried again in " + store.SpanText(after)
		}
		out := result{Content: []content{textItem(text)}, IsError: true}
		if len(body) <= max && kindOf(media) == "json" {
			out.Structured = structured(body)
		}
		return marshal(out), nil
	}
	if len(body) > max {
		return nil, &wire.Fault{Reach: wire.Answered, Err: fmt.Errorf("its answer has more than %d MiB", max>>20)}
	}
	var out result
	switch {
	case len(body) == 0:
		out.Content = append(out.Content, textItem(status))
	case kindOf(media) == "json" || media == "" && json.Valid(body):
		if nested(body) {
			text := string(body)
			out.Structured = structured(body)
			if out.Structured != nil {
				text = string(compact(body))
			}
			out.Content = append(out.Content, textItem(strings.ToValidUTF8(text, "\uFFFD")))
			break
		}
		return nil, &wire.Fault{Reach: wire.Answered, Err: fmt.Errorf("its answer nests deeper than %d", maxNested)}
	case isText(media) || media == "" && utf8.Valid(body):
		out.Content = append(out.Content, textItem(toUTF8(body, params["charset"])))
	case len(body) > maxBinary:
		return nil, &wire.Fault{Reach: wire.Answered, Err: fmt.Errorf("its answer is %s of %d bytes, over %d MiB", mediaText(media), len(body), maxBinary>>20)}
	case strings.HasPrefix(media, "image/") && media != "image/svg+xml":
		out.Content = append(out.Content, content{Type: "image", Data: base64.StdEncoding.EncodeToString(body), MIMEType: media})
	case strings.HasPrefix(media, "audio/"):
		out.Content = append(out.Content, content{Type: "audio", Data: base64.StdEncoding.EncodeToString(body), MIMEType: media})
	default:
		at := "openapi:answer"
		if resp.Request != nil && resp.Request.URL != nil {
			at = resp.Request.URL.Scheme + "://" + resp.Request.URL.Host + resp.Request.URL.EscapedPath()
		}
		out.Content = append(out.Content, content{Type: "resource", Resource: &resource{URI: store.Clip(at, 1000), MIMEType: media, Blob: base64.StdEncoding.EncodeToString(body)}})
	}
	var more []string
	for _, name := range told {
		if v := resp.Header.Get(name); v != "" && utf8.ValidString(v) {
			more = append(more, name+": "+store.Clip(v, 1000))
		}
	}
	if route.Method == http.MethodHead {
		for _, name := range []string{"Content-Type", "Content-Length", "Last-Modified", "Etag"} {
			if v := resp.Header.Get(name); v != "" && utf8.ValidString(v) {
				more = append(more, name+": "+store.Clip(v, 200))
			}
		}
	}
	if len(more) > 0 {
		out.Content = append(out.Content, textItem(strings.Join(more, "\n")))
	}
	return marshal(out), nil
}

func mediaText(media string) string {
	if media == "" {
		return "binary"
	}
	return store.Clip(media, 60)
}

// structured returns a body as structured content, which must be an object: a list becomes
// its "items". It returns nil for other bodies.
func structured(body []byte) json.RawMessage {
	body = bytes.TrimSpace(body)
	if !json.Valid(body) || !utf8.Valid(body) || !nested(body) {
		return nil
	}
	switch body[0] {
	case '{':
		return compact(body)
	case '[':
		return encode(map[string]json.RawMessage{"items": compact(body)})
	}
	return nil
}

// nested reports whether the nesting of JSON is within maxNested.
func nested(raw []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxNested {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// isText reports whether a media type is textual.
func isText(media string) bool {
	return kindOf(media) == "text" || kindOf(media) == "form" || media == "image/svg+xml" || media == "application/problem+xml" || media == "application/xhtml+xml"
}

// toUTF8 decodes a text; besides UTF-8 it supports Latin-1.
func toUTF8(body []byte, charset string) string {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "us-ascii", "windows-1252":
		if !utf8.Valid(body) {
			out := make([]rune, len(body))
			for i, c := range body {
				out[i] = rune(c)
			}
			return string(out)
		}
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// RetryAfter returns how long a response asks to wait, or 0 if it doesn't.
func RetryAfter(resp *http.Response, now time.Time) time.Duration {
	said := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseInt(said, 10, 32); err == nil && n > 0 {
		return min(time.Duration(n)*time.Second, 24*time.Hour)
	}
	if at, err := http.ParseTime(said); err == nil && at.After(now) {
		return min(at.Sub(now).Round(time.Second), 24*time.Hour)
	}
	return 0
}
