package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptModel starts a model service that speaks OpenAI's protocol and keeps
// its address, and that of its host as HOST: every answer is
// "Hello there.", or the string of JSON that is given, and costs 1,000 tokens of
// prompt, 200 of them cached, and 100 of answer. As strict as real ones, it refuses a
// request with a function name that no service takes. A message that begins with
// "misname" makes it call a function by a tool's id, "loop" search without end,
// "cut" stop in the middle and "leave" close the connection.
func scriptModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: model VAR [ANSWER]")
	}
	answer := `"Hello there."`
	if len(args) > 1 {
		answer = args[1]
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" { // for tools that read the web
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Tides</title><body><script>x</script><p>The sea rises <b>twice</b> a day.</p></body>")
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"parrot"}]}`)
			return
		}
		if !scriptModelAnswers(w, r) {
			return
		}
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":`+answer+`},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":200}}}`+"\n\ndata: [DONE]\n\n")
	}))
	ts.Defer(web.Close)
	ts.Setenv(args[0], web.URL+"/v1")
	ts.Setenv("HOST", web.URL)
}

// scriptModelAnswers says whether the usual answer is to be given, and gives any
// other itself.
func scriptModelAnswers(w http.ResponseWriter, r *http.Request) bool {
	var req struct {
		Messages []struct {
			Role    string
			Content string
			Calls   []struct{ Function struct{ Name string } } `json:"tool_calls"`
		}
		Choice string `json:"tool_choice"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	asked, called, told := "", false, ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			asked, _, _ = strings.Cut(m.Content, "\n\n[note by nize: files came") // what came with it
			asked, called = asked[strings.LastIndex(asked, "\n")+1:], false
		}
		if m.Role == "tool" {
			told = m.Content
		}
		for _, c := range m.Calls {
			called = true
			if !regexp.MustCompile("^[a-zA-Z0-9_-]{1,64}$").MatchString(c.Function.Name) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":"Invalid function name %q"}}`, c.Function.Name)
				return false
			}
		}
	}
	call := func(name, args string) bool {
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_%d","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}]}`+"\n\n", len(req.Messages), name, args)
		return false
	}
	w.Header().Set("Content-Type", "text/event-stream")
	switch word, _, _ := strings.Cut(asked, " "); {
	case word == "misname" && !called:
		return call("toolbox:current_time", `{"place":"Tokyo"}`)
	case word == "use" && !called:
		_, rest, _ := strings.Cut(asked, " ")
		name, args, _ := strings.Cut(rest, " ")
		return call(name, args)
	case word == "use":
		text, _ := json.Marshal("The tool said: " + told)
		fmt.Fprintf(w, `data: {"choices":[{"delta":{"content":%s},"finish_reason":"stop"}]}`+"\n\n", text)
		return false
	case word == "loop" && req.Choice != "none":
		return call("discover_tools", `{"query":"more"}`)
	case word == "cut":
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Once upon a"}}]}`+"\n\n")
		return false
	case word == "leave":
		panic(http.ErrAbortHandler)
	}
	return true
}

// scriptSameDay waits for midnight in UTC to pass, where it is near.
func scriptSameDay(ts *testscript.TestScript, neg bool, args []string) {
	const day = 24 * time.Hour
	until(ts, "midnight", func(context.Context) bool {
		now := time.Now()
		return now.Truncate(day).Add(day).Sub(now) > patience/2
	})
}
