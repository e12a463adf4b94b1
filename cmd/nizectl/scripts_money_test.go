package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptModel starts a model service that speaks OpenAI's protocol and keeps
// its address: every answer is "Hello there." and costs 1,000 tokens of prompt,
// 200 of them cached, and 100 of answer.
func scriptModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model VAR")
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"parrot"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"Hello there."},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":200}}}`+"\n\ndata: [DONE]\n\n")
	}))
	ts.Defer(web.Close)
	ts.Setenv(args[0], web.URL+"/v1")
}

// scriptSameDay waits for midnight in UTC to pass, where it is near.
func scriptSameDay(ts *testscript.TestScript, neg bool, args []string) {
	const day = 24 * time.Hour
	until(ts, "midnight", func(context.Context) bool {
		now := time.Now()
		return now.Truncate(day).Add(day).Sub(now) > patience/2
	})
}
