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

// A server's mask contains every secret that was sent to it in this process, over any
// session, because the server could return to one person a secret that it got from another.
// All data from the server passes through the mask when it enters the pool, so that no
// hook, database, log or reader sees a secret that a server echoes.

// maskedConn is a session's connection that masks all answers.
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

// Fail ends the connection if it supports that.
func (c *maskedConn) Fail(err error) {
	if f, ok := c.Conn.(interface{ Fail(error) }); ok {
		f.Fail(err)
	}
}

// maxFault is the maximum length of a JSON-RPC error's text, in bytes. The text is cut
// after it is masked, so that no part of a secret remains at the cut.
const maxFault = 2000

// maskFault masks the text of a fault, and the server's own error in it, which is also read
// separately.
func maskFault(m *mask.Mask, err error) error {
	f := *wire.AsFault(err)
	var rpc *wire.RPCError
	if errors.As(f.Err, &rpc) {
		maskRPC(m, rpc)
	}
	f.Err = m.Error(f.Err)
	return &f
}

// maskRPC masks and cuts the texts of a server's error, which must belong to this answer
// alone.
func maskRPC(m *mask.Mask, rpc *wire.RPCError) {
	rpc.Message = store.Clip(m.Text(rpc.Message), maxFault)
	rpc.Data = store.Clip(m.Text(rpc.Data), maxFault/2)
}

// knowHeaders adds the secrets among the sent headers to the mask: the credentials, and
// plain values whose name or form shows that they are keys.
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

// addressSecrets returns the keys in the path and the query of a URL.
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

// knowCommand adds the secrets of a command to the mask: secrets, which are the credentials
// in its environment, and keys among its other variables and arguments.
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
