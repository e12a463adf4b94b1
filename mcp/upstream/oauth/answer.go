package oauth

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// Responses of token endpoints are read leniently: as JSON with missing fields or fields of
// another type, or as a form, as GitHub sends it. The caller refuses a token of another
// type than Bearer, and one that can't be sent in a header.

// number is a number or a string that contains one; any other value is 0.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	s := strings.TrimSpace(strings.Trim(string(b), `"`))
	if f, err := strconv.ParseFloat(strings.TrimSuffix(s, "s"), 64); err == nil && f == f { // not NaN
		*n = number(f)
	}
	return nil
}

// words is the scope of a response: a string of words, or a list of strings. It is nil if
// the response doesn't include it.
type words []string

func (w *words) UnmarshalJSON(b []byte) error {
	var t texts
	if string(b) == "null" || t.UnmarshalJSON(b) != nil || t == nil && string(b) != `""` && string(b) != "[]" {
		return nil
	}
	text := strings.Join(t, " ")
	if len(t) == 1 { // GitHub and Slack separate them with commas
		text = strings.ReplaceAll(text, ",", " ")
	}
	*w = splitScopes(text)
	return nil
}

// tokens is the content of a token endpoint's response.
type tokens struct {
	access, refresh, kind string
	scopes                []string // nil if not included
	seconds               float64  // lifetime of access; 0 if not included
}

// tokenAnswer holds the fields of a token endpoint's response.
type tokenAnswer struct {
	Access  text            `json:"access_token"`
	Type    json.RawMessage `json:"token_type"`
	Refresh text            `json:"refresh_token"`
	Scope   words           `json:"scope"`
	Expires number          `json:"expires_in"`
}

// innerAnswer is a tokenAnswer, or any other value, which has no fields.
type innerAnswer tokenAnswer

// UnmarshalJSON implements [json.Unmarshaler].
func (a *innerAnswer) UnmarshalJSON(b []byte) error {
	var t tokenAnswer
	if json.Unmarshal(b, &t) == nil {
		*a = innerAnswer(t)
	}
	return nil
}

// readTokens reads the response of a token endpoint. It returns the error that the response
// contains, which some services send with a success status.
func readTokens(status int, body []byte) (t tokens, err error) {
	if e := errorIn(body); e != nil {
		return t, e
	}
	if status/100 != 2 {
		return t, statusError(status)
	}
	var doc struct {
		tokenAnswer
		Data innerAnswer `json:"data"`        // used by TikTok, Lark and others
		User innerAnswer `json:"authed_user"` // used by Slack, whose top-level token is the bot's
	}
	if json.Unmarshal(plainJSON(body), &doc) == nil {
		got := doc.tokenAnswer
		for _, inner := range []innerAnswer{doc.Data, doc.User} {
			if got.Access == "" {
				got = tokenAnswer(inner)
			}
		}
		kind := strings.TrimSpace(strings.Trim(string(got.Type), `"`))
		if kind == "null" {
			kind = ""
		}
		return tokens{string(got.Access), string(got.Refresh), kind, got.Scope, float64(got.Expires)}, nil
	}
	form, ok := formIn(body)
	if !ok {
		return t, nil
	}
	t = tokens{access: form.Get("access_token"), refresh: form.Get("refresh_token"), kind: form.Get("token_type")}
	if form.Has("scope") {
		t.scopes = splitScopes(strings.ReplaceAll(form.Get("scope"), ",", " "))
	}
	t.seconds, err = strconv.ParseFloat(form.Get("expires_in"), 64)
	if err != nil || t.seconds != t.seconds { // NaN
		t.seconds = 0
	}
	return t, nil
}

// formIn parses a body that is a form, such as a=b&c=d.
func formIn(body []byte) (url.Values, bool) {
	text := strings.TrimSpace(string(body))
	if text == "" || strings.ContainsAny(text, "<{[\"\r\n \t") || !strings.Contains(text, "=") {
		return nil, false
	}
	form, err := url.ParseQuery(text)
	return form, err == nil
}

// errorIn returns the error that a response contains, or nil.
func errorIn(body []byte) error {
	var e struct {
		Error       json.RawMessage `json:"error"`
		Errors      json.RawMessage `json:"errors"`
		Detail      text            `json:"detail"`
		Description text            `json:"error_description"`
		Message     text            `json:"message"`
	}
	if json.Unmarshal(plainJSON(body), &e) != nil {
		form, ok := formIn(body)
		if !ok || form.Get("error") == "" {
			return nil
		}
		return &Error{form.Get("error"), form.Get("error_description")}
	}
	if empty := string(e.Error); empty == "" || empty == "null" || empty == `""` {
		var list []json.RawMessage
		if json.Unmarshal(e.Errors, &list) == nil && len(list) > 0 {
			e.Error = list[0] // the other errors are about the same request
		}
	}
	var code string
	var inner struct {
		Code    json.RawMessage `json:"code"`
		Status  text            `json:"status"`
		Type    text            `json:"type"`
		Message text            `json:"message"`
	}
	switch raw := string(e.Error); {
	case raw == "", raw == "null", raw == "false", raw == `""`:
		return nil
	case json.Unmarshal(e.Error, &code) == nil:
	case json.Unmarshal(e.Error, &inner) == nil:
		code = strings.Trim(string(inner.Code), `"`)
		if inner.Type != "" {
			code = string(inner.Type)
		} else if inner.Status != "" {
			code = string(inner.Status)
		}
		if e.Description == "" {
			e.Description = inner.Message
		}
	}
	if code == "" {
		code = "error"
	}
	return &Error{code, string(cmp.Or(e.Description, e.Message, e.Detail))}
}

// refusal returns the error of a response with an error status.
func refusal(status int, body []byte) error {
	if e := errorIn(body); e != nil {
		return e
	}
	return statusError(status)
}
