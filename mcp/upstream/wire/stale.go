package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// A server that has restarted or dropped a session should respond 404 to its requests
// (2025-03-26 and later). Some servers respond 400, 401, 403, 410, 422, 500 or 503, or 200
// with an error. The session is then opened again. The call is sent again only if it can't
// have run: the server rejected it before handling it, or a ping over the same session gets
// exactly the same response, which shows that the server rejects the session before it
// looks at the request. A gateway's response (502, 504) shows nothing: the gateway may have
// forwarded the call before it lost the server.

// namesSession matches errors that mention a session.
var namesSession = regexp.MustCompile(`(?i)session|initiali[sz]`)

// checkSession checks whether the session is the reason why a request failed, and returns
// the fault with the consequences.
func (w *HTTPConn) checkSession(ctx context.Context, err error) error {
	f := *AsFault(err)
	var status *StatusError
	var denied *credentialError
	var rpc *RPCError
	switch {
	case errors.As(f.Err, &denied) && (denied.status == http.StatusUnauthorized || namesSession.MatchString(denied.Error())):
		// If the credential itself is invalid, initialize is rejected again.
		f.Code, f.Drop = "", true
		return &f
	case errors.As(f.Err, &status) && status.Status >= 400:
	case f.Reach == Answered && errors.As(f.Err, &rpc) && namesSession.MatchString(rpc.Error()):
	default:
		return err
	}
	ping := AsFault(w.ping(ctx))
	var pinged *StatusError
	switch {
	case ping == nil || ctx.Err() != nil:
		return err // the session is alive
	case ping.Err.Error() == f.Err.Error() && namesSession.MatchString(f.Err.Error()) && !isOfGateway(status):
		f.Reach, f.Drop = Never, true
	case status != nil && errors.As(ping.Err, &pinged) && pinged.Status == status.Status:
		f.Drop = true // whatever the reason, a new session can't be worse
	default:
		return err
	}
	return &f
}

// isOfGateway reports whether the status means that a gateway forwarded the request.
func isOfGateway(e *StatusError) bool {
	return e != nil && (e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout)
}

// ping checks whether the session is alive. It is sent beside the SDK's session, which
// sends nothing more once it has found out itself that the server lost the session.
func (w *HTTPConn) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	r := &Request{Method: "ping"}
	id := w.ids.Add(1)
	header, err := w.headerFor(ctx, r)
	if err != nil {
		return err
	}
	late, forget := w.trip.Answers.expect(id)
	defer forget()
	resp, err := w.trip.Base.RoundTrip(w.newPost(ctx, header, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping","params":{}}`, id)))
	if err != nil {
		return netFault(err)
	}
	defer resp.Body.Close()
	_, err = w.read(ctx, resp, id, r, late)
	return err
}
