package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptHookService starts what a webhook hook asks. Its path says what it
// answers: /allow, /deny, /argument (before, another argument), /result (after,
// another result), /error. What it was asked last is at GET /last.
func scriptHookService(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hookservice VAR")
	}
	var last string // requests come one at a time
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, last)
			return
		}
		body, err := io.ReadAll(r.Body)
		var q struct{ Point string }
		if err != nil || json.Unmarshal(body, &q) != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		last = fmt.Sprintf("%s %s %s %s\n", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), body)
		switch what := strings.TrimPrefix(r.URL.Path, "/"); {
		case what == "deny":
			fmt.Fprint(w, `{"decision":"deny","reason":"not on a Sunday"}`)
		case what == "argument" && q.Point == "before":
			fmt.Fprint(w, `{"decision":"change","arguments":{"expression":"6*7"}}`)
		case what == "result" && q.Point == "after":
			fmt.Fprint(w, `{"decision":"change","result":{"content":[{"type":"text","text":"from the service"}]}}`)
		case what == "error":
			http.Error(w, "the secret output of a broken service", http.StatusInternalServerError)
		default:
			fmt.Fprint(w, `{"decision":"allow"}`)
		}
	}))
	ts.Defer(web.Close)
	ts.Setenv(args[0], web.URL)
}
