package storetest

import (
	"strings"

	"nize/store"
)

func examples(e *env) {
	ctx := e.Context()
	before := e.kinds()
	e.ok(e.PutExample(ctx, "k1", store.Example{Tool: "box:send", Model: "main/m", Requests: []string{"send a mail", "", strings.Repeat("x", store.MaxExampleBytes+1), "2", "3", "4", "5", "6"}}))
	e.ok(e.PutExample(ctx, "k2", store.Example{Tool: "box:none", Model: "main/m"}))
	e.is(e.PutExample(ctx, "", store.Example{}), store.ErrInvalid)
	e.reopen()
	got := must(e.GetExamples(ctx, []string{"k1", "k2", "k3"}))(e)
	e.same(got, map[string]store.Example{
		"k1": {Tool: "box:send", Model: "main/m", Requests: []string{"send a mail", "2", "3", "4", "5"}},
		"k2": {Tool: "box:none", Model: "main/m"},
	})
	e.ok(e.TrimExamples(ctx, []string{"k2", "k9"}))
	e.same(len(must(e.GetExamples(ctx, []string{"k1", "k2"}))(e)), 1)
	e.same(e.kinds(), before)
}
