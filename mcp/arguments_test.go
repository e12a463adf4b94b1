package mcp_test

import (
	"errors"
	"strings"
	"testing"

	"nize/store"
)

// What a form is told of arguments is what a call with them is.
func TestFits(t *testing.T) {
	h := newHouse(t, nil)
	for args, want := range map[string]string{
		`{"what":"x"}`:            "",
		`{"what":1}`:              "/what must be a string",
		`{"what":"x","what":"y"}`: "duplicate",
		`[]`:                      "must be a JSON object",
	} {
		err := h.gateway.CheckArguments("box:write", []byte(args))
		var wrong *store.CallError
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		if !errors.As(err, &wrong) || wrong.Code != store.CodeInvalid || !strings.Contains(wrong.Message.String(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
			continue
		}
		if _, called := h.gateway.Call(t.Context(), h.member, store.Request{Tool: "box:write", Args: []byte(args)}); called == nil || called.Error() != err.Error() {
			t.Errorf("%s: the call says %v, the form %v", args, called, err)
		}
	}
	if err := h.gateway.CheckArguments("box:gone", []byte(`{}`)); err != nil {
		t.Errorf("of a tool that is not there: %v", err)
	}
}
