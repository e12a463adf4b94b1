package failure

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
)

func TestForms(t *testing.T) {
	type response struct {
		Status                        int
		Type, Challenge, Retry, Whole string
	}
	fields := []api.FieldError{{At: []string{"a"}, Message: "m"}}
	for name, c := range map[string]struct {
		form Form
		e    api.Error
		want response
	}{
		"control": {Control, api.Error{Code: "invalid", Message: "a < b", Fields: fields, Param: "p"},
			response{400, "application/json", "", "", `{"error":{"code":"invalid","message":"a \u003c b","fields":[{"at":["a"],"message":"m"}]}}`}},
		"control, later": {Control, api.Error{Code: "no_database", Message: "later", Retry: 1},
			response{503, "application/json", "", "1", `{"error":{"code":"no_database","message":"later"}}`}},
		"http":            {HTTP, api.Error{Code: "decided", Message: "m", Fields: fields}, response{409, "application/json", "", "", `{"error":{"type":"decided","message":"m"}}`}},
		"http, no token":  {HTTP, api.Error{Code: "invalid_token", Message: "m"}, response{401, "application/json", "Bearer", "", `{"error":{"type":"invalid_token","message":"m"}}`}},
		"http, a page":    {HTTP, api.Error{Code: "signed_out", Message: "m"}, response{401, "application/json", "", "", `{"error":{"type":"signed_out","message":"m"}}`}},
		"text":            {Text, api.Error{Code: "not_ready", Message: "a < b", Retry: 5}, response{503, "text/plain; charset=utf-8", "", "5", "a < b"}},
		"oauth":           {OAuth, api.Error{Code: "invalid_grant", Message: "m"}, response{400, "application/json", "", "", `{"error":"invalid_grant","error_description":"m"}`}},
		"oauth, refused":  {OAuth, api.Error{Code: "access_denied", Message: "m"}, response{403, "application/json", "", "", `{"error":"access_denied","error_description":"m"}`}},
		"oauth, conflict": {OAuth, api.Error{Code: "conflict", Message: "m"}, response{409, "application/json", "", "", `{"error":"access_denied","error_description":"m"}`}},
		"oauth, too many": {OAuth, api.Error{Code: "temporarily_unavailable", Message: "m", Retry: 60}, response{429, "application/json", "", "60", `{"error":"temporarily_unavailable","error_description":"m"}`}},
		"an unknown code": {HTTP, api.Error{Code: "newer", Message: "m"}, response{500, "application/json", "", "", `{"error":{"type":"newer","message":"m"}}`}},
		"never sent":      {Text, api.Error{Code: "no_daemon", Message: "m"}, response{500, "text/plain; charset=utf-8", "", "", "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			c.form.Write(w, &c.e)
			h := w.Header()
			got := response{w.Code, h.Get("Content-Type"), h.Get("WWW-Authenticate"), h.Get("Retry-After"), w.Body.String()}
			c.want.Whole += "\n"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInternal(t *testing.T) {
	w := httptest.NewRecorder()
	Internal(w)
	if w.Code != http.StatusInternalServerError || w.Body.String() != "internal error\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
