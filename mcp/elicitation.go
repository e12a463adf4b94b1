package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/mcp/taskwire"
	"nize/store"
)

// A client that can ask its person is asked what the server of a call asks. Where an
// admin set approvals.elicitation, it may also be asked for its person's yes to the
// call. Both are elicitations of the call's session (2025-11-25), or results that want
// input (2026-07-28), whose answers are another request. What a client answers counts
// only for calls that were made with the same token: as a yes only for those that their
// requester alone decides on, and for the digest that was shown.

// askID is the one question's id among a result's requests for input.
const askID = "approve"

var askSchema = json.RawMessage(`{"type":"object","properties":{"run":{"type":"boolean","title":"Run it","description":"Run exactly this call, once"}},"required":["run"]}`)

// clientAsks is how the client of a call can ask its person, see [store.Asked.Asks].
func clientAsks(req *sdk.CallToolRequest) string {
	if req.Extra != nil && req.Extra.TokenInfo != nil && req.Extra.TokenInfo.Extra["document"] == true {
		return "" // the question would not reach it
	}
	can := req.ClientCapabilities()
	switch {
	case can == nil || can.Elicitation == nil:
		return ""
	case can.Elicitation.URL == nil:
		return "form"
	case can.Elicitation.Form == nil:
		return "url"
	}
	return "form url"
}

// pendingQuestion is a call for which a client was asked and is attached, for the
// middleware that cleans up behind one that left instead of answering.
type pendingQuestion struct{ call string }

type askedKey struct{}

// claim says whether the client was asked for the call in this request, and
// leaves it to whoever attends the call now.
func (a *pendingQuestion) claim(call string) bool {
	if a == nil || a.call != call {
		return false
	}
	a.call = ""
	return true
}

// askedState heads the state of a result that wants what a server asks; the call's id
// follows. That of a result that wants a yes is the call's id and digest.
const askedState = "asked "

// executeAsking serves the use of a tool for a client that can be asked. A client of
// 2025-11-25 is asked over its session until there is a result.
func (s *Server) executeAsking(ctx context.Context, by store.Caller, req *sdk.CallToolRequest, u use, asks string) (*sdk.CallToolResult, error) {
	if _, isTask := ctx.Value(taskKey{}).(*taskRequest); !isTask {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, store.GetSpan(s.opt.Config, "", "mcp.wait"))
		defer cancel()
	}
	for {
		res, err := s.executeRound(ctx, by, req, u, asks)
		if err != nil || len(res.InputRequests) == 0 || req.ProtocolVersion() >= modern {
			return res, err
		}
		next, params := *req, *req.Params
		if params.InputResponses, err = elicit(ctx, req.Session, res.InputRequests); err != nil {
			return nil, err
		}
		params.RequestState = res.RequestState
		next.Params = &params
		req = &next
	}
}

// elicit asks a client of 2025-11-25 over its session. A question of a server that it
// can't put to its person has no answer.
func elicit(ctx context.Context, session *sdk.ServerSession, inputs sdk.InputRequestMap) (sdk.InputResponseMap, error) {
	answers := sdk.InputResponseMap{}
	var mu sync.Mutex // guards answers and failed
	var failed error
	var all sync.WaitGroup
	for key, input := range inputs {
		all.Go(func() {
			params, _ := input.(*sdk.ElicitParams)
			res, err := session.Elicit(ctx, params)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				answers[key] = res
			case key == askID || ctx.Err() != nil:
				failed = fmt.Errorf("asking the client: %w", err)
			default:
				answers[key] = &sdk.ElicitResult{Action: taskwire.Cancel}
			}
		})
	}
	all.Wait()
	return answers, failed
}

// onlySession is the word in [store.Asked.Asks] for a client of 2025-11-25 that has a task:
// no request of its own is open that its answers could come back with.
const onlySession = "session"

// sessionAsker asks the client of a session a question of a call's server.
type sessionAsker func(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error)

// askSession returns a function that asks the client of a session about one of its tasks.
func askSession(session *sdk.ServerSession, task string) sessionAsker {
	return func(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		p.Meta = sdk.Meta{relatedTask: map[string]string{"taskId": task}}
		// The context of a request would send the question on that request's stream.
		alone, cancel := context.WithCancel(context.Background())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return session.Elicit(alone, p)
	}
}

// executeRound is one round of executeAsking: first it begins the call, later it takes
// the answers. The result is the call's, a task, or what the client is asked.
func (s *Server) executeRound(ctx context.Context, by store.Caller, req *sdk.CallToolRequest, u use, asks string) (*sdk.CallToolResult, error) {
	g := s.opt.Gateway
	args, err := req.Params.Arguments, error(nil)
	if u.answer == nil {
		args, err = g.validator.placeMeta(Execute, args)
	}
	if err == nil {
		u, err = u.parsed(args)
	} else {
		u.answer = func(c *store.Call, err error) answer { return executeAnswer("", c, err) }
	}
	if err != nil {
		g.turnAway(by, u.req.Tool, err)
		return u.answer(nil, err).result(), nil
	}
	u.req.Asks = asks
	w := &waiter{progress: progressOf(ctx, req), left: connectionOf(req), asks: true}
	a, _ := ctx.Value(askedKey{}).(*pendingQuestion)
	task, isTask := ctx.Value(taskKey{}).(*taskRequest)
	if isTask && task.legacy {
		u.req.Asks += " " + onlySession
		w.asks, w.made = false, func(call string) { g.waiters.setSession(call, askSession(req.Session, call)) }
	}
	if isTask {
		timer := time.NewTimer(s.patience(task))
		defer timer.Stop()
		w.late = timer.C
	}
	var c *store.Call
	switch id, asked := strings.CutPrefix(req.Params.RequestState, askedState); {
	case asked:
		c, err = s.takeAnswers(ctx, by, id, req.Params.InputResponses)
	case req.Params.RequestState != "":
		var id string
		if id, err = g.applyAnswer(ctx, by, req.Params.RequestState, req.Params.InputResponses[askID]); err == nil {
			if !a.claim(id) {
				g.waiters.attach(id)
			}
			c, err = g.await(ctx, by, id, w)
			return s.roundEnds(ctx, req, u, c, err)
		}
	default:
		if c, err = g.launch(ctx, by, u.req, w, isTask); err == nil && c.Waiting() && !isTask {
			if c.Policy == store.ByRequester && store.GetBool(s.opt.Config, "", "approvals.elicitation") {
				return s.askForYes(ctx, req, c, a)
			}
			c, err = g.await(ctx, by, c.ID, w)
		}
		return s.roundEnds(ctx, req, u, c, err)
	}
	if err != nil || c.State.Final() {
		return s.roundEnds(ctx, req, u, c, err)
	}
	if !g.waiters.attach(c.ID) {
		return s.roundEnds(ctx, req, u, nil, &store.CallError{Code: store.CodeCancelled, Message: store.Textf("the call is being cancelled")})
	}
	id, run := c.ID, !c.Task
	if c, err = g.await(ctx, by, id, w); err != nil && run {
		g.waiters.cancelRun(id) // its client left, which waits for it alone
	}
	return s.roundEnds(ctx, req, u, c, err)
}

// askForYes asks the client for its person's yes to a call that waits.
func (s *Server) askForYes(ctx context.Context, req *sdk.CallToolRequest, c *store.Call, a *pendingQuestion) (*sdk.CallToolResult, error) {
	if a == nil { // it was switched on a moment ago
		s.opt.Gateway.waiters.detach(c.ID, false)
	} else {
		a.call = c.ID
	}
	ask, err := s.newQuestion(ctx, req, c.ID)
	if err != nil {
		s.opt.Log.Error("asking a call's client", "call", c.ID, "err", err)
		return nil, errors.New("internal error") // the call ends as if it had left
	}
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{askID: ask}, RequestState: c.ID + " " + c.Digest}, nil
}

// roundEnds is the result of a round: what the call's server asks before anything
// else, then the task for a client that has them, or the call's own result.
func (s *Server) roundEnds(ctx context.Context, req *sdk.CallToolRequest, u use, c *store.Call, err error) (*sdk.CallToolResult, error) {
	if err != nil || c.State.Final() {
		if failure := callError(err); err != nil && failure.Code == store.CodeInternal && ctx.Err() == nil {
			s.opt.Log.Error("execute_tool", "tool", u.req.Tool, "err", err)
		}
		return u.answer(c, err).result(), nil
	}
	task, isTask := ctx.Value(taskKey{}).(*taskRequest)
	if inputs := s.opt.Gateway.questions.of(c.ID); len(inputs) > 0 && !(isTask && task.legacy) {
		wants := sdk.InputRequestMap{}
		for key, q := range inputs {
			wants[key] = q.params(c)
		}
		return &sdk.CallToolResult{InputRequests: wants, RequestState: askedState + c.ID}, nil
	}
	if isTask {
		task.call = c
		return &sdk.CallToolResult{}, nil
	}
	return u.answer(nil, errDraining).result(), nil // nothing else ends a wait early
}

// takeAnswers gives a call what its client answered, and returns the call.
func (s *Server) takeAnswers(ctx context.Context, by store.Caller, id string, responses sdk.InputResponseMap) (*store.Call, error) {
	c, err := s.opt.Gateway.calls.GetCall(ctx, id)
	if err != nil || c.By != by.User || c.Token != by.Token || c.Surface != by.Surface || c.Asks == "" {
		return nil, &store.CallError{Code: store.CodeNotFound, Message: store.Textf("requestState names no call of yours")}
	}
	for key, response := range responses {
		r, ok := response.(*sdk.ElicitResult)
		if !ok || r == nil {
			continue
		}
		if err := s.opt.Gateway.questions.answer(id, key, answerFrom(r)); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: callError(err).Message.String()}
		}
	}
	return &c, nil
}

// applyAnswer takes what a client answered about the call that state names, and
// returns the call's id. A call that was decided elsewhere meanwhile stays so.
func (g *Gateway) applyAnswer(ctx context.Context, by store.Caller, state string, response sdk.InputResponse) (string, error) {
	id, digest, _ := strings.Cut(state, " ")
	c, err := g.calls.GetCall(ctx, id)
	if err != nil || c.By != by.User || c.Token != by.Token || c.Surface != by.Surface {
		return "", &store.CallError{Code: store.CodeNotFound, Message: store.Textf("requestState names no call of yours")}
	}
	if c.Policy != store.ByRequester || digest != c.Digest || !store.GetBool(g.config, "", "approvals.elicitation") {
		g.auditRefusedPress(by, c, store.Decision{Verb: store.Approve}, "a client may not answer it")
		return "", &store.CallError{Code: store.CodeRefused, Message: store.Textf("this call is not for its client to approve")}
	}
	verb := store.Cancel
	if r, ok := response.(*sdk.ElicitResult); ok && r != nil {
		run, _ := r.Content["run"].(bool)
		switch {
		case r.Action == "accept" && run:
			verb = store.Approve
		case r.Action == "accept", r.Action == "decline":
			verb = store.Deny
		}
	}
	_, err = g.decideAndAudit(ctx, by, c, store.Decision{Verb: verb, Digest: digest, Auto: verb == store.Cancel, Reason: map[store.Verb]store.Text{store.Deny: store.Textf("its person said no in the client"), store.Cancel: store.Textf("its person gave no answer in the client")}[verb]})
	if err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) && !errors.Is(err, store.ErrRefused) {
		return "", err
	}
	return id, nil
}

// cancelAbandoned cancels a call whose client was asked and left, or gave an error, unless
// others are attached to it.
func (s *Server) cancelAbandoned(ctx context.Context, a *pendingQuestion) {
	if !s.opt.Gateway.waiters.detach(a.call, true) {
		return
	}
	defer s.opt.Gateway.waiters.setCancelled(a.call)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	d := store.Decision{Verb: store.Cancel, Reason: store.Textf("its caller left"), Auto: true}
	if _, err := s.opt.Gateway.calls.Decide(ctx, store.System, a.call, d); err != nil && !errors.Is(err, store.ErrDecided) && !errors.Is(err, store.ErrExpired) {
		s.opt.Log.Error("cancelling a call whose client left", "call", a.call, "err", err)
	}
}

// cleanUpQuestions bounds a call whose client may be asked, and cleans up behind it.
func (s *Server) cleanUpQuestions(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method != "tools/call" || !store.GetBool(s.opt.Config, "", "approvals.elicitation") {
			return next(ctx, method, req)
		}
		a := &pendingQuestion{}
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, askedKey{}, a), store.GetSpan(s.opt.Config, "", "mcp.wait"))
		defer cancel()
		res, err := next(ctx, method, req)
		switch {
		case a.call == "":
		case err != nil:
			s.cancelAbandoned(ctx, a)
		default: // the client went to ask its person
			s.opt.Gateway.waiters.detach(a.call, false)
			s.opt.Gateway.waiters.setExpected(a.call)
		}
		return res, err
	}
}

// newQuestion asks a client's person about a call that waits, and says until when
// an answer counts.
func (s *Server) newQuestion(ctx context.Context, req *sdk.CallToolRequest, id string) (*sdk.ElicitParams, error) {
	card, err := s.opt.Gateway.Card(ctx, id)
	if err != nil {
		return nil, err
	}
	until := card.Expires
	if p := req.Session.InitializeParams(); p == nil || p.ProtocolVersion < questionsAsResults { // it is asked while its call waits
		if limit, ok := ctx.Deadline(); ok && limit.Before(until) {
			until = limit
		}
	}
	return &sdk.ElicitParams{Mode: "form", Message: expose.PlainCard(card, until, s.opt.Now()), RequestedSchema: askSchema}, nil
}

// questionsAsResults is the first version in which the question is a result, and the
// answer another call.
const questionsAsResults = "2026-07-28"
