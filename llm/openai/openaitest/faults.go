package openaitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answer is one faulty response.
type answer struct {
	w          http.ResponseWriter
	r          *http.Request
	req        request
	try        int    // from 1
	name, args string // of the function named in the message
	key, url   string
	began      bool
}

// line sends one event.
func (a *answer) line(data string) { a.raw("data: " + data + "\n\n") }

// raw sends raw bytes of a stream.
func (a *answer) raw(text string) {
	if !a.began {
		a.began = true
		if a.w.Header().Get("Content-Type") == "" {
			a.w.Header().Set("Content-Type", "text/event-stream")
		}
	}
	io.WriteString(a.w, text) // if the client is gone, the next write notices
	a.w.(http.Flusher).Flush()
}

func (a *answer) text(text string) {
	content, _ := json.Marshal(text) // encoding a string can't fail
	a.line(`{"choices":[{"index":0,"delta":{"content":` + string(content) + `}}]}`)
}

func (a *answer) end(reason string) {
	a.line(fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason))
}

func (a *answer) usage(usage string) { a.line(`{"choices":[],"usage":` + usage + `}`) }

// calls sends calls, written as JSON, and ends.
func (a *answer) calls(calls ...string) {
	for _, c := range calls {
		a.line(`{"choices":[{"index":0,"delta":{"tool_calls":[` + c + `]}}]}`)
	}
	a.end("tool_calls")
}

// call returns the call named in the message.
func (a *answer) call(head string) string { return a.callOf(head, a.name, a.args) }

func (a *answer) callOf(head, name, args string) string {
	f, _ := json.Marshal(map[string]string{"name": name, "arguments": args}) // encoding strings can't fail
	return `{` + head + `"type":"function","function":` + string(f) + `}`
}

// fail responds with a status, headers ("Name: value") and a body.
func (a *answer) fail(status int, body string, headers ...string) {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		a.w.Header().Set(name, value)
	}
	a.w.WriteHeader(status)
	io.WriteString(a.w, body)
}

// said answers "Once" and ends normally, except for what is appended.
func (a *answer) said(behind ...string) {
	a.text("Once")
	a.end("stop")
	for _, l := range behind {
		a.line(l)
	}
}

// wait sends nothing until the client is gone.
func (a *answer) wait() { <-a.r.Context().Done() }

// leave closes the connection.
func (a *answer) leave() { panic(http.ErrAbortHandler) }

const webPage = "<!doctype html><html><body><h1>Welcome</h1></body></html>"

// Faults are the ways in which a service may fail, keyed by the model that does so.
var Faults = map[string]func(*answer){
	// It refuses.
	"busy":          func(a *answer) { a.fail(429, `{"error":{"message":"slow down"}}`) },
	"busy-wait":     func(a *answer) { a.fail(429, `{"error":{"message":"slow down"}}`, "Retry-After: 90") },
	"busy-date":     func(a *answer) { a.fail(429, ``, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT") },
	"busy-nonsense": func(a *answer) { a.fail(429, `slow down`, "Retry-After: NaN") },
	"no-credit":     func(a *answer) { a.fail(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`) },
	"crash":         func(a *answer) { a.fail(500, `<html>Traceback: `+a.key+`</html>`, "Content-Type: text/html") },
	"gateway":       func(a *answer) { a.fail(502, ``) },
	"overloaded":    func(a *answer) { a.fail(529, `{"error":{"message":"overloaded"}}`) },
	"key":           func(a *answer) { a.fail(401, `{"error":{"message":"Incorrect API key provided: `+a.key+`"}}`) },
	"refused": func(a *answer) {
		a.fail(400, `{"error":{"message":"bad field; see `+a.url+`/v1/docs?key=`+a.key+`"}}`)
	},
	"gone":          func(a *answer) { a.fail(404, `{"detail":"Not Found"}`) },
	"too-long":      func(a *answer) { a.fail(400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`) },
	"filtered":      func(a *answer) { a.fail(400, `{"error":{"code":"content_filter","message":"filtered"}}`) },
	"redirect":      func(a *answer) { a.fail(307, ``, "Location: "+a.url+"/elsewhere") },
	"redirect-self": func(a *answer) { a.fail(302, ``, "Location: "+a.url+a.r.URL.Path) },
	"teapot":        func(a *answer) { a.fail(418, strings.Repeat("x", 1<<20)) },

	// The response is not an answer.
	"web-page":       func(a *answer) { a.fail(200, webPage, "Content-Type: text/html; charset=utf-8") },
	"plain-web-page": func(a *answer) { a.fail(200, webPage, "Content-Type: text/plain") },
	"no-content":     func(a *answer) { a.fail(204, ``) },
	"leave":          func(a *answer) { a.leave() },
	"leave-early":    func(a *answer) { a.raw(": hello\n\n"); a.leave() },
	"silent":         func(a *answer) { a.wait() },
	"error-in-200":   func(a *answer) { a.fail(200, `{"error":{"message":"no"}}`, "Content-Type: application/json") },
	"array":          func(a *answer) { a.line(`[]`) },
	"null":           func(a *answer) { a.line(`null`); a.line(`{"choices":null}`) },
	"brotli": func(a *answer) {
		a.fail(200, "\x0b\x02\x80hello\x03", "Content-Type: application/json", "Content-Encoding: br")
	},

	// It begins well.
	"stall":        func(a *answer) { a.text("Once"); a.wait() },
	"cut":          func(a *answer) { a.text("Once"); a.leave() },
	"cut-json":     func(a *answer) { a.text("Once"); a.raw(`data: {"choices":[{"delta":{"content":" up`); a.leave() },
	"no-end":       func(a *answer) { a.text("Once"); a.line("[DONE]") },
	"error-within": func(a *answer) { a.text("Once"); a.line(`{"error":{"message":"oops ` + a.key + `","code":500}}`) },
	"garbage-within": func(a *answer) {
		a.text("Once")
		a.line(`{"choices":[{"delta":{"content":NaN}}]}`)
		a.said()
	},
	"cut-call": func(a *answer) {
		a.line(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"` + a.name + `","arguments":"{\"a"}}]}}]}`)
		a.leave()
	},

	// Its answer has an unusual form.
	"plain": func(a *answer) {
		a.fail(200, `{"choices":[{"message":{"content":"Once"},"finish_reason":"stop"}]}`, "Content-Type: application/json")
	},
	"no-content-type": func(a *answer) { a.w.Header()["Content-Type"] = nil; a.began = true; a.said() },
	"other-type":      func(a *answer) { a.w.Header().Set("Content-Type", "application/octet-stream"); a.said() },
	"charset": func(a *answer) {
		a.w.Header().Set("Content-Type", "text/event-stream; charset=iso-8859-1")
		a.raw("data: {\"choices\":[{\"delta\":{\"content\":\"caf\xe9\"}}]}\n\n")
		a.end("stop")
	},
	"bom":              func(a *answer) { a.raw("\ufeff"); a.said() },
	"trailing-garbage": func(a *answer) { a.said("[DONE]", "<html>", `{"choices":[{"delta":{"content":" more"}}]}`) },
	"garbage-at-end":   func(a *answer) { a.said("<html>", "[DONE]") },
	"comments":         func(a *answer) { a.raw(strings.Repeat(": waiting\n\n", 1000)); a.said("[DONE]") },
	"two-answers": func(a *answer) {
		a.line(`{"choices":[{"index":1,"delta":{"content":"Twice"}},{"index":0,"delta":{"content":"Once"}}]}`)
		a.end("stop")
	},
	"refusal": func(a *answer) {
		a.line(`{"choices":[{"delta":{"refusal":"I can't help with that."}}]}`)
		a.end("stop")
	},
	"withheld":      func(a *answer) { a.text("Once"); a.end("content_filter") },
	"withheld-all":  func(a *answer) { a.end("content_filter") },
	"length":        func(a *answer) { a.text("Once"); a.end("length") },
	"length-at-all": func(a *answer) { a.end("length") },
	"empty":         func(a *answer) { a.end("stop") },
	"blank":         func(a *answer) { a.text(" \n\t"); a.end("stop") },
	"huge": func(a *answer) {
		part := strings.Repeat("all work and no play ", 3000)
		for range 64 {
			a.text(part)
		}
		a.end("stop")
	},
	"huge-line": func(a *answer) {
		a.raw("data: ")
		for range 10 {
			a.raw(strings.Repeat("x", 1<<20))
		}
	},

	// Its usage is wrong.
	"no-usage":       func(a *answer) { a.said("[DONE]") },
	"nan-usage":      func(a *answer) { a.said(`{"choices":[],"usage":{"prompt_tokens":NaN,"completion_tokens":Infinity}}`) },
	"negative-usage": func(a *answer) { a.said(`{"choices":[],"usage":{"prompt_tokens":-100000,"completion_tokens":-5}}`) },
	"text-usage": func(a *answer) {
		a.said(`{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":[],"total_tokens":{},"cost":"free"}}`)
	},
	"huge-usage": func(a *answer) { a.said(`{"choices":[],"usage":{"prompt_tokens":1e30,"completion_tokens":1}}`) },
	"strange-sums": func(a *answer) {
		a.said(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":9e15,"prompt_tokens_details":{"cached_tokens":5000}}}`)
	},
	"float-usage": func(a *answer) { a.said(`{"choices":[],"usage":{"prompt_tokens":1000.0,"completion_tokens":"100"}}`) },
	"free-usage": func(a *answer) {
		a.said(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1,"cost":-1e9}}`)
	},

	// Its calls are wrong.
	"no-index":     func(a *answer) { a.calls(a.call(`"id":"c1",`)) },
	"no-id":        func(a *answer) { a.calls(a.call(`"index":0,`)) },
	"bare-call":    func(a *answer) { a.calls(a.call(``)) },
	"high-index":   func(a *answer) { a.calls(a.call(`"index":7,"id":"c1",`), a.call(`"index":-1,"id":"c2",`)) },
	"doubled-call": func(a *answer) { a.calls(a.call(`"index":0,"id":"c1",`), a.call(`"index":1,"id":"c1",`)) },
	"same-ids": func(a *answer) {
		a.calls(a.call(`"index":0,"id":"c1",`), a.callOf(`"index":1,"id":"c1",`, "made_up", "{}"))
	},
	"long-id":     func(a *answer) { a.calls(a.call(`"index":0,"id":"` + strings.Repeat("i", 2000) + `",`)) },
	"broken-call": func(a *answer) { a.calls(a.callOf(`"index":0,"id":"c1",`, a.name, a.args+"}}")) },
	"null-call": func(a *answer) {
		a.calls(`{"index":0,"id":"c1","function":{"name":"` + a.name + `","arguments":null}}`)
	},
	"list-call":    func(a *answer) { a.calls(a.callOf(`"index":0,"id":"c1",`, a.name, `[1]`)) },
	"nameless":     func(a *answer) { a.calls(a.callOf(`"index":0,"id":"c1",`, "", "{}")) },
	"unknown-name": func(a *answer) { a.calls(a.callOf(`"index":0,"id":"c1",`, "made_up", "{}")) },
	"illegal-name": func(a *answer) {
		a.calls(a.callOf(`"index":0,"id":"c1",`, "päth/to:it\x07"+strings.Repeat("n", 500), "{}"))
	},
	"many-calls": func(a *answer) {
		var all []string
		for i := range 500 {
			all = append(all, a.call(fmt.Sprintf(`"index":%d,"id":"c%d",`, i, i)))
		}
		a.calls(all...)
	},
	"huge-call": func(a *answer) {
		a.calls(a.callOf(`"index":0,"id":"c1",`, a.name, `{"a":"`+strings.Repeat("x", 2<<20)+`"}`))
	},
	"calls-object": func(a *answer) { a.line(`{"choices":[{"delta":{"tool_calls":{"name":"x"}}}]}`); a.end("tool_calls") },
	"endless":      func(a *answer) { a.calls(a.call(fmt.Sprintf(`"index":0,"id":"c%d",`, a.try))) },
}
