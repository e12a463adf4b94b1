package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"nize/mcp/expose"
	"nize/store"
)

// Where an admin set approvals.elicitation, the client that made a call may be
// asked for its person's yes: with an elicitation (2025-11-25), or
// with a result that wants input (2026-07-28). The SDK turns one into the
// other. What a client answers counts only for calls that their requester alone
// decides on, made with the same token, and for the digest that was shown.

// askID is the one question's id among a result's requests for input.
const askID = "approve"

var askSchema = json.RawMessage(`{"type":"object","properties":{"run":{"type":"boolean","title":"Run it","description":"Run exactly this call, once"}},"required":["run"]}`)

// canElicit says whether the client of a call may be asked.
func (s *Server) canElicit(req *sdk.CallToolRequest) bool {
	if !store.GetBool(s.opt.Config, "", "approvals.elicitation") {
		return false
	}
	if req.Extra != nil && req.Extra.TokenInfo != nil && req.Extra.TokenInfo.Extra["document"] == true {
		return false // the question would not reach it
	}
	p := req.Session.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
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

// executeWithQuestion serves the use of a tool for a client that can be asked: first it begins
// the call and, if that needs its requester's yes, returns the question; then
// it takes the answer and waits for the call's end.
func (s *Server) executeWithQuestion(ctx context.Context, by store.Caller, req *sdk.CallToolRequest, u use) (*sdk.CallToolResult, error) {
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
	progress := progressOf(ctx, req)
	a, _ := ctx.Value(askedKey{}).(*pendingQuestion)
	id := ""
	if req.Params.RequestState != "" {
		if id, err = g.applyAnswer(ctx, by, req.Params.RequestState, req.Params.InputResponses[askID]); err == nil && !a.claim(id) {
			g.waiters.attach(id)
		}
	} else {
		var c *store.Call
		if c, err = g.begin(ctx, by, u.req, &waiter{progress: progress, left: connectionOf(req)}); err == nil {
			if c.State.Final() {
				return u.answer(c, nil).result(), nil
			}
			if c.Waiting() && c.Policy == store.ByRequester {
				if a == nil { // it was switched on a moment ago
					g.waiters.detach(c.ID, false)
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
			id = c.ID
		}
	}
	if err != nil {
		return u.answer(nil, err).result(), nil
	}
	c, err := g.await(ctx, by, id, &waiter{progress: progress, left: connectionOf(req)})
	return u.answer(c, err).result(), nil
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
