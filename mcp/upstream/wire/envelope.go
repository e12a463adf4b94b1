package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"

	"nize/store"
)

// envelope is one JSON-RPC message split into its members; the slices alias the message.
type envelope struct {
	version bool   // it declares that it is JSON-RPC
	id      []byte // nil for a notification
	method  string
	params  json.RawMessage
	result  json.RawMessage
	fault   json.RawMessage // "error"
	broken  error           // set if the answer could not be read
}

var errNotJSON = errors.New("not JSON")

// openEnvelope splits one JSON-RPC message. Unlike encoding/json it matches member names
// exactly, refuses duplicate members (two readers could see two messages), and copies
// nothing.
func openEnvelope(msg []byte) (envelope, error) {
	var e envelope
	if !json.Valid(msg) {
		return e, errNotJSON
	}
	err := Members(msg, func(key, value []byte) error {
		var at *json.RawMessage
		switch string(key) {
		case "jsonrpc":
			e.version = true
			return nil
		case "id":
			if e.id != nil {
				return fmt.Errorf("duplicate member %q", key)
			}
			if string(value) != "null" {
				e.id = value
			}
			return nil
		case "method":
			if e.method != "" {
				return fmt.Errorf("duplicate member %q", key)
			}
			return json.Unmarshal(value, &e.method)
		case "params":
			at = &e.params
		case "result":
			at = &e.result
		case "error":
			at = &e.fault
		default:
			return nil
		}
		if *at != nil {
			return fmt.Errorf("duplicate member %q", key)
		}
		*at = value
		return nil
	})
	if string(e.fault) == "null" {
		e.fault = nil
	}
	return e, err
}

// Members calls f for each member of the object in doc, which must be valid JSON. Keys are
// passed unquoted and unescaped.
func Members(doc []byte, f func(key, value []byte) error) error {
	doc = bytes.TrimLeft(doc, " \t\r\n")
	if len(doc) == 0 || doc[0] != '{' {
		return errors.New("not a JSON object")
	}
	i := skipSpace(doc, 1)
	for doc[i] != '}' {
		end := skipValue(doc, i)
		key := doc[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var s string
			if err := json.Unmarshal(doc[i:end], &s); err != nil {
				return err
			}
			key = []byte(s)
		}
		i = skipSpace(doc, skipSpace(doc, end)+1) // skip the colon
		end = skipValue(doc, i)
		if err := f(key, doc[i:end]); err != nil {
			return err
		}
		i = skipSpace(doc, end)
		if doc[i] == ',' {
			i = skipSpace(doc, i+1)
		}
	}
	return nil
}

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\t' || doc[i] == '\n' || doc[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that starts at i in valid JSON.
func skipValue(doc []byte, i int) int {
	depth := 0
	for ; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
			if depth < 0 { // the end of the container of a bare number or literal
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			if depth == 0 { // inside a number or a literal
				continue
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// depthOf returns the nesting depth of valid JSON.
func depthOf(doc []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// isList reports whether a result is a page of definitions.
func isList(result []byte) bool {
	list := false
	err := Members(result, func(key, value []byte) error {
		switch string(key) {
		case "tools", "prompts", "resources", "resourceTemplates":
			list = list || value[0] == '['
		case "content", "structuredContent", "contents", "messages":
			return errors.New("a result of something else")
		}
		return nil
	})
	return list && err == nil
}

// cutDeep returns valid JSON in which values nested deeper than maxDepth are replaced with
// null. A schema that was cut is still deeper than the gate accepts.
func cutDeep(doc []byte) []byte {
	out, depth, from := make([]byte, 0, len(doc)), 0, 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth == maxDepth+1 {
				out, from = append(append(out, doc[from:i]...), "null"...), -1
			}
		case '}', ']':
			if depth--; depth == maxDepth {
				from = i + 1
			}
		}
	}
	return append(out, doc[from:]...)
}

// RPCError is the error member of a JSON-RPC response.
type RPCError struct {
	Code    int64
	Message string
	Data    string // additional data from the server, as text; "" if there is none
}

func (e *RPCError) Error() string {
	text := e.Message
	if e.Code != 0 {
		text += fmt.Sprintf(" (code %d)", e.Code)
	}
	if e.Data != "" {
		text += ": " + e.Data
	}
	return text
}

// JSON-RPC error codes used here.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaders        = -32020 // HeaderMismatchError of 2026-07-28
	codeVersion        = -32022 // UnsupportedProtocolVersionError of 2026-07-28
)

// openError reads an error member. Some servers send a string instead of the object, and
// codes as strings.
func openError(raw json.RawMessage) *RPCError {
	e := &RPCError{}
	if err := Members(raw, func(key, value []byte) error {
		switch string(key) {
		case "code":
			if n, err := strconv.ParseFloat(string(bytes.Trim(value, `"`)), 64); err == nil && n == float64(int64(n)) {
				e.Code = int64(n)
			}
		case "message":
			e.Message = plainValue(value)
		case "data":
			e.Data = store.Clip(plainValue(value), 64<<10)
		}
		return nil
	}); err != nil || e.Message == "" {
		e.Message = plainValue(raw)
	}
	e.Message = store.Clip(e.Message, 64<<10) // the displayed part is cut after masking
	if strings.Contains(e.Message, e.Data) {
		e.Data = "" // the message already contains it
	}
	return e
}

// plainValue returns a JSON value as text: a string unquoted, null as "", and any other
// value unchanged.
func plainValue(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil { // also for null
		return s
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// answer returns the result of a response, or its error.
func (e envelope) answer() (json.RawMessage, error) {
	if e.broken != nil {
		if f := (*Fault)(nil); errors.As(e.broken, &f) {
			return nil, f
		}
		return nil, &Fault{Reach: Maybe, Err: e.broken}
	}
	if e.fault != nil {
		return nil, &Fault{Reach: Answered, Err: openError(e.fault)}
	}
	if e.result == nil {
		return nil, &Fault{Reach: Answered, Err: errors.New("an answer without result and error")}
	}
	if !utf8.Valid(e.result) {
		// JSON is UTF-8 (RFC 8259 8.1); invalid bytes would break every later reader.
		e.result = bytes.ToValidUTF8(e.result, []byte("\uFFFD"))
	}
	if depthOf(e.result) > maxDepth && isList(e.result) {
		e.result = cutDeep(e.result) // one definition must not make the others unreadable
	}
	if depthOf(e.result) > maxDepth {
		return nil, &Fault{Reach: Answered, Err: fmt.Errorf("a result that nests deeper than %d", maxDepth)}
	}
	return e.result, nil
}

// firstID is the smallest id of our requests. Ids are integers, since some servers accept
// no other ids. Smaller ones are reserved for servers that answer every request with 0 or
// 1, so that an answer with one of our ids is meant for that request.
const firstID = 1000

// newFirstID returns the first id of a connection. It is random, so that a server can't
// pass text of one caller off as the answer to another, and answers of two connections that
// were mixed up are detected. All ids fit into 32 bits.
func newFirstID() uint64 { return firstID + rand.N[uint64](1<<30) }

// readID reads the id of a response. It returns ok false if the id is not a number. Some
// servers return a number as a string, or with a fraction of zero.
func readID(id []byte) (n uint64, ok bool) {
	text := string(bytes.Trim(id, `"`))
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f > 1<<53 || f != float64(uint64(f)) {
		return 0, false
	}
	return uint64(f), true
}

// answers reports whether a message is the response to the request with this id. Since no
// other request is possible here, a foreign or missing id is accepted, too.
func (e envelope) answers(id uint64) bool {
	n, ok := readID(e.id)
	switch {
	case e.method != "":
		return false
	case ok && n == id:
		return true
	}
	return (e.result != nil || e.fault != nil) && (!ok || n < firstID)
}

// Request is one of our own requests.
type Request struct {
	Method   string
	Name     string          // tools/call and prompts/get: name of the tool or prompt
	URI      string          // resources/read: the resource
	Args     json.RawMessage // tools/call: canonical, sent verbatim
	Cursor   string          // tools/list
	Progress func(raw json.RawMessage)
	Bindings []Binding // arguments that are also sent as headers (2026-07-28)
	// Traceparent is the W3C header of the request's span; "" if tracing is off.
	Traceparent string
	// Definition is the _meta of the tool's accepted definition, for a connection that
	// builds its requests from it; otherwise nil.
	Definition json.RawMessage
	Masked     *bool // set to true if a secret was masked in the result; may be nil
	// Ask answers the server's questions while the request runs; if nil, they are refused.
	Ask     AskFunc
	Answers json.RawMessage // tools/call: the inputs that an earlier response required
	State   string          // tools/call: returned with the answers
	AsTask  bool            // tools/call: with the task parameter of 2025-11-25
	Task    string          // tasks/…: the task's id; Answers are sent with tasks/update
}

// AskFunc answers a request from a server while one of ours runs. It returns an *RPCError,
// or any other error, whose text is sent to the server.
type AskFunc func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// Encode builds the message of a tools/call. meta is the content of the _meta object,
// without braces, and may be empty.
func (r *Request) Encode(id uint64, meta string) []byte {
	b := make([]byte, 0, 192+len(r.Name)+len(r.Args)+len(r.Cursor)+len(meta))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, r.Method...)
	b = append(b, `","params":{"name":`...)
	b = appendString(b, r.Name)
	member := func(name string) { b = append(append(append(b, `,"`...), name...), `":`...) }
	member("arguments")
	if len(r.Args) == 0 {
		b = append(b, "{}"...)
	} else {
		b = append(b, r.Args...)
	}
	if len(r.Answers) > 0 {
		member("inputResponses")
		b = append(b, r.Answers...)
	}
	if r.State != "" {
		member("requestState")
		b = appendString(b, r.State)
	}
	if r.AsTask {
		member("task")
		b = append(b, "{}"...)
	}
	if meta != "" || r.Progress != nil || r.Traceparent != "" {
		member("_meta")
		b = append(b, '{')
		if r.Progress != nil {
			b = append(b, `"progressToken":`...)
			b = strconv.AppendUint(b, id, 10)
			if meta != "" || r.Traceparent != "" {
				b = append(b, ',')
			}
		}
		if r.Traceparent != "" {
			b = append(append(append(b, `"traceparent":"`...), r.Traceparent...), '"')
			if meta != "" {
				b = append(b, ',')
			}
		}
		b = append(b, meta...)
		b = append(b, '}')
	}
	return append(b, "}}"...)
}

// appendString appends s, quoted as JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // unreachable: a string always encodes
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// cancelled returns the notification that the request with this id was cancelled.
func cancelled(id uint64, reason string) []byte {
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"reason":`...)
	b = appendString(b, reason)
	return append(b, "}}"...)
}

// replyTo answers a request from the server that no user is asked about: it answers a ping,
// and returns an error for any other request (sampling, roots, a question that belongs to
// no call).
func replyTo(e envelope) []byte {
	if e.method == "ping" {
		return replyWith(e.id, json.RawMessage("{}"), nil)
	}
	return replyWith(e.id, nil, &RPCError{Code: CodeMethodNotFound, Message: fmt.Sprintf("nize does not offer %s to servers", store.Clip(e.method, 100))})
}

// replyWith returns the response to a request from the server.
func replyWith(id []byte, result json.RawMessage, err error) []byte {
	b := append([]byte(nil), `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if err == nil {
		b = append(b, `,"result":`...)
		b = append(b, result...)
		return append(b, '}')
	}
	code, message := int64(codeInternal), err.Error()
	if rpc, ok := err.(*RPCError); ok {
		code, message = rpc.Code, rpc.Message
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, code, 10)
	b = append(b, `,"message":`...)
	b = appendString(b, message)
	return append(b, "}}"...)
}

// asked answers a request from the server while one of our requests runs. It may take as
// long as a person needs to answer.
func (r *Request) asked(ctx context.Context, e envelope) []byte {
	if r == nil || r.Ask == nil || e.method == "ping" {
		return replyTo(e)
	}
	result, err := r.Ask(ctx, e.method, e.params)
	return replyWith(e.id, result, err)
}

// progressOf returns the id of the request that a progress notification is for.
func progressOf(params json.RawMessage) (id uint64, ok bool) {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return 0, false
	}
	return readID(p.Token)
}
