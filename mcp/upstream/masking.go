package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"nize/mcp/upstream/mask"
	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// A server's mask knows every secret that was sent to it in this process, over
// whichever session: what it was given for one person it could show another. All
// that comes from it goes through the mask where it enters the pool, so that no
// hook, database, log or reader sees a secret that a server repeats.

// maskedConn is the connection of a session, whose answers are masked.
type maskedConn struct {
	wire.Conn
	mask *mask.Mask
}

func (c *maskedConn) Call(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	if progress := r.Progress; progress != nil {
		inside := *r
		inside.Progress = func(raw json.RawMessage) {
			raw, _ = c.mask.JSON(raw)
			progress(raw)
		}
		r = &inside
	}
	if ask := r.Ask; ask != nil {
		inside := *r
		inside.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if len(params) > 0 {
				params, _ = c.mask.JSON(params)
			}
			return ask(ctx, method, params)
		}
		r = &inside
	}
	raw, err := c.Conn.Call(ctx, r)
	if err != nil {
		return nil, maskFault(c.mask, err)
	}
	raw, masked := c.mask.JSON(raw)
	if masked && r.Masked != nil {
		*r.Masked = true
	}
	return raw, nil
}

func (c *maskedConn) Cause() error { return c.mask.Error(c.Conn.Cause()) }

// Fail ends a connection that has a way to be ended.
func (c *maskedConn) Fail(err error) {
	if f, ok := c.Conn.(interface{ Fail(error) }); ok {
		f.Fail(err)
	}
}

// maxFault bounds what is told of a JSON-RPC error, in bytes. It is cut when it is
// masked, lest half a secret stand at the cut.
const maxFault = 2000

// maskFault masks the text of a fault, and of the server's own error in it, which
// is also read by itself.
func maskFault(m *mask.Mask, err error) error {
	f := *wire.AsFault(err)
	var rpc *wire.RPCError
	if errors.As(f.Err, &rpc) {
		maskRPC(m, rpc)
	}
	f.Err = m.Error(f.Err)
	return &f
}

// maskRPC masks and cuts what a server's error says; it is made of this answer
// alone.
func maskRPC(m *mask.Mask, rpc *wire.RPCError) {
	rpc.Message = store.Clip(m.Text(rpc.Message), maxFault)
	rpc.Data = store.Clip(m.Text(rpc.Data), maxFault/2)
}

// knowHeaders has the mask know what is secret among headers that are sent: the
// credentials, and plain values that are keys by their name or form.
func knowHeaders(m *mask.Mask, cfg store.Server, h http.Header) {
	var secrets []string
	for name, v := range cfg.Headers {
		key, inQuery := strings.CutPrefix(name, store.QueryPrefix)
		if text := h.Get(name); v.Hidden() || store.SecretValue(key, text) {
			if secrets = append(secrets, text); inQuery {
				secrets = append(secrets, openapi.EscapedSecret(text), url.QueryEscape(text))
			}
		}
	}
	m.Add(append(secrets, addressSecrets(cfg.URL)...)...)
}

// addressSecrets are keys in the path and the query of an address.
func addressSecrets(address string) (out []string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if store.SecretValue(name, v) {
				out = append(out, v)
			}
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if store.LooksSecret(part) {
			out = append(out, part)
		}
	}
	return out
}

// knowCommand has the mask know what is secret in a command's environment, of
// which secrets are the credentials, and among its arguments.
func knowCommand(m *mask.Mask, cfg store.Server, secrets []string) {
	for name, v := range cfg.Env {
		if store.SecretValue(name, v.Text) {
			secrets = append(secrets, v.Text)
		}
	}
	flag := ""
	for _, arg := range cfg.Args {
		name, value, ok := strings.Cut(arg, "=")
		switch {
		case ok && store.SecretValue(strings.TrimLeft(name, "-"), value):
			secrets = append(secrets, value)
		case flag != "" && store.SecretValue(flag, arg), store.LooksSecret(arg):
			secrets = append(secrets, arg)
		}
		if flag = ""; strings.HasPrefix(arg, "-") && !ok {
			flag = strings.TrimLeft(arg, "-")
		}
	}
	m.Add(secrets...)
}
