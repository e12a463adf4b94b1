package storetest

import (
	"fmt"
	"time"

	"nize/store"
)

func feedback(e *env) {
	ctx := e.Context()
	must(e.PutServer(ctx, ada, store.Server{Name: "box", Transport: store.Stdio, Command: "/bin/box"}, 0))(e)
	tools := []store.Tool{{Name: "convert", State: store.ToolAccepted}, {Name: "send", State: store.ToolAccepted}}
	must(e.PutTools(ctx, ada, "box", tools))(e)
	before := e.kinds()
	e.same(must(e.ListFeedback(ctx))(e), map[string][]store.Feedback{})

	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	taught := func(tool, user string, n int, words ...string) store.Feedback {
		return store.Feedback{Tool: tool, User: user, Words: words, At: at.Add(time.Duration(n) * time.Minute)}
	}
	must(e.RecordFeedback(ctx, taught("box:convert", "ann", 0, "turn", "dollar", "turn", "")))(e)
	must(e.RecordFeedback(ctx, taught("box:convert", "bob", 1, "euro")))(e)
	kept := must(e.RecordFeedback(ctx, taught("box:convert", "ann", 2, "dollar", "turn")))(e) // said again: renewed
	e.same(kept, []store.Feedback{taught("box:convert", "bob", 1, "euro"), taught("box:convert", "ann", 2, "dollar", "turn")})
	must(e.RecordFeedback(ctx, taught("box:send", "ann", 0, "mail")))(e)
	e.reopen()
	e.same(must(e.ListFeedback(ctx))(e), map[string][]store.Feedback{"box:convert": kept, "box:send": {taught("box:send", "ann", 0, "mail")}})
	for _, tool := range []string{"box:none", "none:send"} {
		_, err := e.RecordFeedback(ctx, taught(tool, "ann", 0, "x"))
		e.is(err, store.ErrNotFound)
	}
	_, err := e.RecordFeedback(ctx, taught("box", "ann", 0, "x"))
	e.is(err, store.ErrInvalid)

	// They are bounded, and one who teaches a lot drowns out nobody.
	for i := range 200 {
		kept = must(e.RecordFeedback(ctx, taught("box:convert", "eve", 10+i, fmt.Sprintf("w%03d", i))))(e)
	}
	if len(kept) != store.MaxFeedback || kept[0].User != "bob" || kept[1].User != "ann" || kept[len(kept)-1].Words[0] != "w199" {
		e.Errorf("after 200 requests %d pieces of feedback: %+v", len(kept), kept)
	}
	e.same(e.kinds(), before) // learning leaves no event

	// They go with their person, with their tool, and all at once.
	e.same(must(e.ForgetFeedback(ctx, ada, "eve"))(e), store.MaxFeedback-2)
	e.same(must(e.ForgetFeedback(ctx, ada, "nobody"))(e), 0)
	e.same(len(must(e.ListFeedback(ctx))(e)["box:convert"]), 2)
	must(e.PutTools(ctx, ada, "box", tools[:1]))(e)
	e.same(len(must(e.ListFeedback(ctx))(e)), 1)
	e.same(must(e.ForgetFeedback(ctx, ada, ""))(e), 2)
	e.same(len(must(e.ListFeedback(ctx))(e)), 0)
	e.same(e.kinds(), before+" lessons.forget lessons.forget tools.put lessons.forget")
	must(e.RecordFeedback(ctx, taught("box:convert", "ann", 0, "turn")))(e)
	e.ok(e.DeleteServer(ctx, ada, "box"))
	e.same(len(must(e.ListFeedback(ctx))(e)), 0)
}
