package reply

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"nize/store/eventstream"
)

// maxHeld is the size of the largest body that is read here; the SDK refuses larger ones.
const maxHeld = 4 << 20

const (
	mediaJSON   = "application/json"
	mediaStream = eventstream.Type
)

// Accepts returns which of the two forms of a response a client accepts. A client that
// names neither accepts a document: HTTP libraries accept anything, and read no stream. For
// a client that names one form, a wildcard means that form.
func Accepts(header http.Header) (document, stream bool) {
	anything, noDocument := false, false
	values := header.Values("Accept")
	if len(strings.TrimSpace(strings.Join(values, ""))) == 0 {
		return true, false
	}
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			media, params, _ := strings.Cut(one, ";")
			media = strings.ToLower(strings.TrimSpace(media))
			if refused(params) {
				noDocument = noDocument || media == mediaJSON
				continue
			}
			switch media {
			case mediaJSON, "application/*":
				document = true
			case mediaStream, "text/*":
				stream = true
			case "*/*":
				anything = true
			}
		}
	}
	if anything && noDocument {
		return false, true
	}
	return document || anything && !stream, stream
}

// refused reports whether the parameters of a media type give it the weight 0.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q == 0
		}
	}
	return false
}

// Negotiate responds to clients in the form that they accept, and with their ids as sent.
// next is an SDK handler, which requires that a client accepts both forms. onlyDocument,
// which may be nil, is called for a request whose response will be a document: the server
// can't send questions or notifications to the client before it. Errors of requests are
// JSON-RPC errors.
func Negotiate(next http.Handler, onlyDocument func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, stream := Accepts(r.Header)
		switch {
		case r.Method == http.MethodGet && r.Header.Get("Accept") == "":
			next.ServeHTTP(w, accepting(r, mediaStream))
			return
		case r.Method != http.MethodPost:
			next.ServeHTTP(w, r)
			return
		case !document && !stream:
			refuse(w, "this address answers in "+mediaJSON+" or "+mediaStream+": send an Accept header that takes one of them, or none")
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxHeld+1))
		if err != nil || len(body) > maxHeld {
			r.Body = unread(body, r.Body)
			e := &errorForm{ResponseWriter: w}
			next.ServeHTTP(e, accepting(r, mediaJSON+", "+mediaStream)) // next reports the error
			e.finish()
			return
		}
		held := Hold(body)
		r.Body = unread(held.Body, r.Body)
		r.ContentLength = int64(len(held.Body))
		if document && stream && !held.Held {
			e := &errorForm{ResponseWriter: w, body: held.Body}
			next.ServeHTTP(e, r)
			e.finish()
			return
		}
		if !stream && held.Method == "subscriptions/listen" {
			refuse(w, "the answer to subscriptions/listen is a stream: send Accept: "+mediaStream)
			return
		}
		if !stream && onlyDocument != nil {
			onlyDocument(r)
		}
		f := &former{ResponseWriter: w, document: document, stream: stream, batch: held.Batch}
		e := &errorForm{ResponseWriter: f, body: held.Body}
		next.ServeHTTP(e, accepting(r, mediaJSON+", "+mediaStream))
		e.finish()
		f.finish()
	})
}

// unread returns a body whose beginning was already read.
func unread(begin []byte, rest io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), rest}
}

// accepting returns a copy of a request with another Accept header.
func accepting(r *http.Request, accept string) *http.Request {
	next := *r
	next.Header = r.Header.Clone()
	next.Header.Set("Accept", accept)
	return &next
}

func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(http.StatusNotAcceptable)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":` + strconv.Quote(why) + `}}`)) // the client has disconnected
}

// former converts a response to the form that its client accepts, and restores its ids.
type former struct {
	http.ResponseWriter
	document, stream bool // what the client accepts
	batch            bool

	status  int
	holds   bool         // finish writes the response
	events  bool         // the handler writes an event stream
	buf     bytes.Buffer // data that was not passed on yet
	seen    int          // prefix of buf without an end of an event
	answers [][]byte     // responses in an event stream that becomes a document
}

func (f *former) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *former) WriteHeader(status int) {
	if f.status != 0 {
		return
	}
	f.status = status
	media, _, _ := strings.Cut(f.Header().Get("Content-Type"), ";")
	switch strings.TrimSpace(media) {
	case mediaStream:
		f.events, f.holds = true, !f.stream
	case mediaJSON:
		f.holds = true
	}
	if !f.holds {
		f.ResponseWriter.WriteHeader(status)
	}
}

func (f *former) Write(b []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	if !f.events && !f.holds {
		return f.ResponseWriter.Write(b)
	}
	f.buf.Write(b)
	if !f.events {
		return len(b), nil
	}
	for {
		end := bytes.Index(f.buf.Bytes()[f.seen:], []byte("\n\n"))
		if end < 0 {
			f.seen = max(0, f.buf.Len()-1)
			return len(b), nil
		}
		event := bytes.Clone(f.buf.Next(f.seen + end + 2))
		f.seen = 0
		if err := f.pass(event); err != nil {
			return 0, err
		}
	}
}

// pass passes an event on, or stores the response in it.
func (f *former) pass(event []byte) error {
	if !f.holds {
		_, err := f.ResponseWriter.Write(restoreEvent(event))
		return err
	}
	if msg := eventstream.Data(event); isAnswer(msg) {
		f.answers = append(f.answers, Restore(msg))
	}
	return nil
}

func (f *former) Flush() {
	f.WriteHeader(http.StatusOK)
	if f.holds {
		return
	}
	if w, ok := f.ResponseWriter.(http.Flusher); ok {
		w.Flush()
	}
}

// finish writes the held data.
func (f *former) finish() {
	if !f.holds {
		if f.buf.Len() > 0 {
			_, _ = f.ResponseWriter.Write(f.buf.Bytes()) // the client has disconnected
		}
		return
	}
	doc := Restore(f.buf.Bytes())
	if f.events {
		switch doc = bytes.Join(f.answers, []byte(",")); {
		case len(f.answers) == 0:
			f.Header().Del("Content-Type")
			http.Error(f.ResponseWriter, "the request ended before it was answered", http.StatusInternalServerError)
			return
		case f.batch || len(f.answers) > 1:
			doc = append(append([]byte("["), doc...), ']')
		}
		f.Header().Set("Content-Type", mediaJSON)
	}
	if !f.document && f.status == http.StatusOK {
		f.Header().Set("Content-Type", mediaStream)
		f.Header().Set("Cache-Control", "no-cache, no-transform")
		f.Header().Del("Content-Length")
		doc = eventOf(doc)
	} else {
		f.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	}
	f.ResponseWriter.WriteHeader(f.status)
	_, _ = f.ResponseWriter.Write(doc) // the client has disconnected
}

// isAnswer reports whether a message is a response.
func isAnswer(msg []byte) bool {
	answer := false
	members(msg, 0, len(msg), func(key []byte, _, _ int) {
		answer = answer || string(key) == "result" || string(key) == "error"
	})
	return answer || len(msg) > 0 && msg[0] == '['
}

// restoreEvent restores the ids in the message of an event.
func restoreEvent(event []byte) []byte {
	if !bytes.Contains(event, []byte(heldPrefix)) {
		return event
	}
	var out []byte
	data, done := Restore(eventstream.Data(event)), false
	for line := range bytes.Lines(event) {
		if !bytes.HasPrefix(line, []byte("data:")) {
			out = append(out, line...)
		} else if !done {
			out, done = append(append(append(out, "data: "...), onOneLine(data)...), '\n'), true
		}
	}
	return out
}

// onOneLine returns a document without line breaks, as the data of an event: our own JSON has
// none, and an upstream's are replaced with blanks.
func onOneLine(doc []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(doc, []byte("\r"), nil), []byte("\n"), []byte(" "))
}

// eventOf returns a document as an event.
func eventOf(doc []byte) []byte {
	return eventstream.Event{Name: "message", Data: onOneLine(doc)}.Append(nil)
}
