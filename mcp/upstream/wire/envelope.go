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

// envelope is one JSON-RPC message cut into its members; the slices point into
// the message.
type envelope struct {
	version bool   // it says that it is JSON-RPC
	id      []byte // nil: a notification
	method  string
	params  json.RawMessage
	result  json.RawMessage
	fault   json.RawMessage // "error"
	broken  error           // in place of an answer that could not be read
}

var errNotJSON = errors.New("not JSON")

// openEnvelope cuts one JSON-RPC message. Unlike encoding/json it takes member
// names exactly, refuses one that stands there twice (two readers could see two
// messages), and copies nothing.
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
				return fmt.Errorf("member %q stands there twice", key)
			}
			if string(value) != "null" {
				e.id = value
			}
			return nil
		case "method":
			if e.method != "" {
				return fmt.Errorf("member %q stands there twice", key)
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
			return fmt.Errorf("member %q stands there twice", key)
		}
		*at = value
		return nil
	})
	if string(e.fault) == "null" {
		e.fault = nil
	}
	return e, err
}

// Members calls f for each member of the object in doc, which must be valid
// JSON. Keys come without their quotes, escapes undone.
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
		i = skipSpace(doc, skipSpace(doc, end)+1) // over the colon
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

// skipValue returns the index after the value that starts at i of valid JSON.
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
			if depth < 0 { // the end of what holds a bare number or word
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			if depth == 0 { // inside a number or a word
				continue
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// depthOf is how deep valid JSON nests.
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

// cutDeep returns valid JSON with null in the place of what nests deeper than
// maxDepth. A schema in which that happens is still deeper than what is accepted.
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

// RPCError is the error member of a JSON-RPC answer.
type RPCError struct {
	Code    int64
	Message string
	Data    string // what the server adds, as text; "" is nothing
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

// JSON-RPC error codes that matter here.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaders        = -32020 // HeaderMismatchError of 2026-07-28
	codeVersion        = -32022 // UnsupportedProtocolVersionError of 2026-07-28
)

// openError reads an error member. Some servers send a text in place of the
// object, and codes as text.
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
	e.Message = store.Clip(e.Message, 64<<10) // what is shown of it is cut where it is masked
	if strings.Contains(e.Message, e.Data) {
		e.Data = "" // it is said already
	}
	return e
}

// plainValue is a JSON value as text: a string without its quotes, null as
// nothing, and everything else as it stands.
func plainValue(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil { // null, too
		return s
	}
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// answer is the result of a response, or its error.
func (e envelope) answer() (json.RawMessage, error) {
	if e.broken != nil {
		return nil, &Fault{Reach: Maybe, Err: e.broken}
	}
	if e.fault != nil {
		return nil, &Fault{Reach: Answered, Err: openError(e.fault)}
	}
	if e.result == nil {
		return nil, &Fault{Reach: Answered, Err: errors.New("an answer without result and error")}
	}
	if !utf8.Valid(e.result) {
		// JSON is UTF-8 (RFC 8259 8.1); what isn't would break every reader after us.
		e.result = bytes.ToValidUTF8(e.result, []byte("\uFFFD"))
	}
	if depthOf(e.result) > maxDepth && isList(e.result) {
		e.result = cutDeep(e.result) // one definition must not take the others along
	}
	if depthOf(e.result) > maxDepth {
		return nil, &Fault{Reach: Answered, Err: fmt.Errorf("a result that nests deeper than %d", maxDepth)}
	}
	return e.result, nil
}

// firstID is the least number of a request of ours: an integer, since there are
// servers that take no other ids. Smaller ones are left to servers that answer
// everything with 0 or 1, so that an answer which names one of ours means it.
const firstID = 1000

// newFirstID is where a connection begins to number. Nobody can guess it, so that
// what a server repeats of one caller's words is no answer to another, and answers
// of two connections that were mixed up are noticed. All of them fit into 32 bits.
func newFirstID() uint64 { return firstID + rand.N[uint64](1<<30) }

// readID reads the id of an answer; ok is false if it is no number. Some servers
// return a number as text, or with a fraction of zero.
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

// answers says whether a message answers the request id, which is the only one
// that it can answer: an id that is not ours, or none, does not matter then.
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
	Name     string          // tools/call and prompts/get: of what
	URI      string          // resources/read: what to read
	Args     json.RawMessage // tools/call: canonical, sent verbatim
	Cursor   string          // tools/list
	Progress func(raw json.RawMessage)
	Bindings []Binding // arguments that travel as headers too (2026-07-28)
	// Traceparent is the W3C header of the span that the request is a part of; ""
	// where nobody traces.
	Traceparent string
	// Definition is the _meta of the tool's accepted definition, for a connection that
	// makes its requests from it; else nil.
	Definition json.RawMessage
	Masked     *bool // set where a secret was taken out of the result; nil does not ask
	// Ask answers what the server asks while the request runs; nil refuses it.
	Ask     AskFunc
	Answers json.RawMessage // tools/call: what an earlier round asked for
	State   string          // tools/call: goes back with the answers
	AsTask  bool            // tools/call: with the task parameter of 2025-11-25
	Task    string          // tasks/…: its id; Answers go along with tasks/update
}

// AskFunc answers a request that a server makes while it works. The error is an
// *RPCError, or any other one for which the server reads its text.
type AskFunc func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// Encode builds the message. meta is the inside of the _meta object, without
// braces, and may be empty.
func (r *Request) Encode(id uint64, meta string) []byte {
	b := make([]byte, 0, 192+len(r.Name)+len(r.Args)+len(r.Cursor)+len(meta))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"method":"`...)
	b = append(b, r.Method...)
	b = append(b, `","params":{`...)
	begin := len(b)
	member := func(name string) {
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	switch {
	case r.Name != "":
		member("name")
		b = appendString(b, r.Name)
		member("arguments")
		if len(r.Args) == 0 {
			b = append(b, "{}"...)
		} else {
			b = append(b, r.Args...)
		}
	case r.URI != "":
		member("uri")
		b = appendString(b, r.URI)
	case r.Cursor != "":
		member("cursor")
		b = appendString(b, r.Cursor)
	case r.Task != "":
		member("taskId")
		b = appendString(b, r.Task)
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

// appendString quotes s as JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // a string always encodes
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// cancelled is the notice that the request id is no longer waited for.
func cancelled(id uint64, reason string) []byte {
	b := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"reason":`...)
	b = appendString(b, reason)
	return append(b, "}}"...)
}

// replyTo answers a request of the server that nobody is asked about: a ping as it
// wants, and anything else (sampling, roots, a question that belongs to no call) with
// an error.
func replyTo(e envelope) []byte {
	if e.method == "ping" {
		return replyWith(e.id, json.RawMessage("{}"), nil)
	}
	return replyWith(e.id, nil, &RPCError{Code: CodeMethodNotFound, Message: fmt.Sprintf("nize does not offer %s to servers", store.Clip(e.method, 100))})
}

// replyWith is the answer to a request of the server.
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

// asked answers a request of the server while a request of ours runs, which may take
// as long as a person takes.
func (r *Request) asked(ctx context.Context, e envelope) []byte {
	if r == nil || r.Ask == nil || e.method == "ping" {
		return replyTo(e)
	}
	result, err := r.Ask(ctx, e.method, e.params)
	return replyWith(e.id, result, err)
}

// progressOf reads a progress notification and the request that it is for.
func progressOf(params json.RawMessage) (id uint64, ok bool) {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return 0, false
	}
	return readID(p.Token)
}
