package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"
)

// Spec is what an operation is on the wire. Each operation of the control API
// is one value of [Op], [Stream], [Download], [Upload] or [Duplex], which stands beside
// the types of its request and answer; the daemon mounts it on a function and a
// client calls it, both by that value.
type Spec struct {
	Method  string
	Path    string // a pattern of http.ServeMux
	Admin   bool   // for admins only; members may use the others for what is theirs
	Summary string
}

// Op is an operation that answers with one value. The fields of a request that
// have a tag `path:"…"` or `query:"…"` (and json:"-") travel there, the rest is
// the JSON body; a request without such fields has none. An answer of [Empty]
// says nothing.
type Op[Req, Res any] Spec

// Call asks for the operation.
func (op Op[Req, Res]) Call(ctx context.Context, c *Client, req Req) (Res, error) {
	r, err := encode(Spec(op), req)
	if err != nil {
		var none Res
		return none, err
	}
	return do[Res](ctx, c, r)
}

// Stream is an operation that answers with lines. Lines of type [Encoded] are
// sent as they are.
type Stream[Req, Line any] Spec

// Encoded are whole lines of NDJSON.
type Encoded []byte

// Call asks for the operation and yields the lines of its answer. The request
// is sent when the sequence is first read; an error is the last thing yielded.
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

// Download is an operation that answers with a file.
type Download[Req any] Spec

// File is what travels in a [Download] or an [Upload].
type File struct {
	io.ReadCloser
	Size int64
	// Key and SHA256 are said of a backup; see [BackupKeyHeader].
	Key, SHA256 string
}

// Call asks for the operation; the caller closes the file.
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

// body tells what went wrong on the way from what its reader does with it.
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

// Upload is an operation that takes a file of a known size; its request has
// fields of the path and the query alone.
type Upload[Req, Res any] Spec

// Call asks for the operation and sends size bytes.
func (op Upload[Req, Res]) Call(ctx context.Context, c *Client, req Req, from io.Reader, size int64) (Res, error) {
	r, err := encode(Spec(op), req)
	if err != nil {
		var none Res
		return none, err
	}
	r.raw, r.size = from, size
	return do[Res](ctx, c, r)
}

// Duplex is an operation that takes the connection over: both sides say what
// they like until one of them closes it. Its request has no fields.
type Duplex Spec

// DuplexProtocol is what a connection is upgraded to.
const DuplexProtocol = "nize-duplex"

// Call asks for the operation; the caller closes the connection.
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

// encode makes the request of an operation.
func encode(op Spec, req any) (request, error) {
	path, query, body, err := Encode(op.Path, req)
	r := request{method: op.Method, path: path, query: query}
	if body != nil {
		r.body = json.RawMessage(body)
	}
	return r, err
}

// Query is the part of a request that travels in the query.
func Query(req any) (url.Values, error) {
	_, query, _, err := Encode("", req)
	return query, err
}
