package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"
)

// Spec is an operation's wire description. Each operation of the control API is one value
// of [Op], [Stream], [Download], [Upload] or [Duplex], declared beside the types of its
// request and response. The daemon mounts a function on that value and a client calls it.
type Spec struct {
	Method  string
	Path    string // a pattern of http.ServeMux
	Admin   bool   // for admins only; members may use the others for what they own
	Summary string
}

// Op is an operation that returns one value. Request fields with a tag `path:"…"` or
// `query:"…"` (and json:"-") are sent there, and the rest as the JSON body; a request
// without such fields has no body.
type Op[Req, Res any] Spec

// Call performs the operation.
func (op Op[Req, Res]) Call(ctx context.Context, c *Client, req Req) (Res, error) {
	r, err := encode(Spec(op), req)
	if err != nil {
		var none Res
		return none, err
	}
	return do[Res](ctx, c, r)
}

// Stream is an operation that returns lines. Lines of type [Encoded] are sent as they are.
type Stream[Req, Line any] Spec

// Encoded are whole lines of NDJSON.
type Encoded []byte

// Call performs the operation and yields the lines of its response. The request is sent
// when the sequence is first read; an error is the last thing yielded.
func (op Stream[Req, Line]) Call(ctx context.Context, c *Client, req Req) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r, err := encode(Spec(op), req)
		if err != nil {
			var none Line
			yield(none, err)
			return
		}
		stream[Line](ctx, c, r)(yield)
	}
}

// Download is an operation that returns a file.
type Download[Req any] Spec

// File is the content of a [Download] or an [Upload].
type File struct {
	io.ReadCloser
	Size int64
	// Key and SHA256 are set for a backup; see [BackupKeyHeader].
	Key, SHA256 string
}

// Call performs the operation; the caller must close the file.
func (op Download[Req]) Call(ctx context.Context, c *Client, req Req) (File, error) {
	r, err := encode(Spec(op), req)
	if err != nil {
		return File{}, err
	}
	resp, err := c.send(ctx, r)
	if err != nil {
		return File{}, err
	}
	return File{ReadCloser: &body{resp.Body, func(err error) error { return c.readError(ctx, r, err) }}, Size: resp.ContentLength, Key: resp.Header.Get(BackupKeyHeader), SHA256: resp.Header.Get(BackupSumHeader)}, nil
}

// body separates errors of the connection from those of the reader's own processing.
type body struct {
	io.ReadCloser
	explain func(error) error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.explain(err)
	}
	return n, err
}

// Upload is an operation that takes a file of a known size; its request has only fields of
// the path and the query.
type Upload[Req, Res any] Spec

// Call performs the operation and sends size bytes.
func (op Upload[Req, Res]) Call(ctx context.Context, c *Client, req Req, from io.Reader, size int64) (Res, error) {
	r, err := encode(Spec(op), req)
	if err != nil {
		var none Res
		return none, err
	}
	r.raw, r.size = from, size
	return do[Res](ctx, c, r)
}

// Duplex is an operation that takes over the connection: both sides send freely until one
// of them closes it. Its request has no fields.
type Duplex Spec

// DuplexProtocol is the protocol to which a connection is upgraded.
const DuplexProtocol = "nize-duplex"

// Call performs the operation; the caller must close the connection.
func (op Duplex) Call(ctx context.Context, c *Client) (io.ReadWriteCloser, error) {
	r := request{method: op.Method, path: op.Path, upgrade: true}
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		_ = resp.Body.Close() // nothing was sent
		return nil, &Error{Code: "internal", Message: "the daemon answered " + op.Path + " without taking the connection over"}
	}
	return conn, nil
}

// encode builds the request of an operation.
func encode(op Spec, req any) (request, error) {
	path, query, body, err := Encode(op.Path, req)
	r := request{method: op.Method, path: path, query: query}
	if body != nil {
		r.body = json.RawMessage(body)
	}
	return r, err
}

// Query returns the query of a request.
func Query(req any) (url.Values, error) {
	_, query, _, err := Encode("", req)
	return query, err
}
