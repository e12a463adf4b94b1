package wire

import (
	"context"
	"errors"
	"net/http"
	"regexp"
)

// A server that has restarted, or has given a session up, should answer 404 to it
// (2025-03-26 and later). Others answer 400, 401, 403, 410, 422, 500 or 503, or 200
// with an error. The session is then made again. The call is sent again only if it
// can't have run: it was turned away at the door, or a ping over the same session
// gets the very same answer, which says that the session is what is refused,
// before anything looks at the request. The answer of a gateway (502, 504) says
// nothing of the kind: it may have passed the call on before it lost the server.

// namesSession says whether an error speaks of a session.
var namesSession = regexp.MustCompile(`(?i)session|initiali[sz]`)

// checkSession looks whether the session is why a request failed, and returns the
// fault with what follows from it.
func (w *HTTPConn) checkSession(ctx context.Context, err error) error {
	f := *AsFault(err)
	var status *StatusError
	var denied *credentialError
	var rpc *RPCError
	switch {
	case errors.As(f.Err, &denied) && (denied.status == http.StatusUnauthorized || namesSession.MatchString(denied.Error())):
		// A credential that is no good is refused again, by initialize.
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
		return err // the session lives
	case ping.Err.Error() == f.Err.Error() && namesSession.MatchString(f.Err.Error()) && !isOfGateway(status):
		f.Reach, f.Drop = Never, true
	case status != nil && errors.As(ping.Err, &pinged) && pinged.Status == status.Status:
		f.Drop = true // whatever it is, a new session can't be worse
	default:
		return err
	}
	return &f
}

// isOfGateway reports whether a status says that a gateway passed the request on.
func isOfGateway(e *StatusError) bool {
	return e != nil && (e.Status == http.StatusBadGateway || e.Status == http.StatusGatewayTimeout)
}

// ping asks whether the session lives.
func (w *HTTPConn) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	r := &Request{Method: "ping"}
	id := w.ids.Add(1)
	header, err := w.headerFor(ctx, r)
	if err != nil {
		return err
	}
	late, forget := w.answers.expect(id)
	defer forget()
	resp, err := w.base.RoundTrip(w.newPost(ctx, header, r.Encode(id, w.meta)))
	if err != nil {
		return netFault(err)
	}
	defer resp.Body.Close()
	_, err = w.read(ctx, resp, id, r, late)
	return err
}
