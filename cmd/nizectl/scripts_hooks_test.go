package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptHookService starts what a webhook hook asks. Its path says what it
// answers: /allow, /deny, /argument (before, another argument), /result (after,
// another result), /error. What it was asked last is at GET /last. /argument
// takes only what is signed with the secret of the script, and nothing takes what
// is signed otherwise.
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
		if why := badSignature(r.Header, body); why != "" && (r.Header.Get("webhook-signature") != "" || r.URL.Path == "/argument") {
			http.Error(w, why, http.StatusUnauthorized)
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

// badSignature checks a request by the text of Standard Webhooks, with nothing of
// what signs them: v1 and the base64 of an HMAC-SHA256 over id.timestamp.body.
func badSignature(h http.Header, body []byte) string {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		return err.Error()
	}
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return "no timestamp of today"
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "."))
	mac.Write(body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); h.Get("webhook-id") == "" || !slices.Contains(strings.Fields(h.Get("webhook-signature")), want) {
		return "not signed"
	}
	return ""
}
