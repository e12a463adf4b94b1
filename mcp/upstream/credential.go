package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"nize/mcp/upstream/oauth"
	"nize/mcp/upstream/wire"
	"nize/store"
	"nize/store/credential"
)

// secretKeys returns the names of the credentials that a server's headers and environment
// use.
func secretKeys(cfg store.Server) []string {
	var keys []string
	for _, values := range []map[string]store.Value{cfg.Headers, cfg.Env} {
		for _, v := range values {
			if v.SecretKey != "" {
				keys = append(keys, v.SecretKey)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// sessionOwner returns the owner of the session for a user's calls of the server: the first
// holder that has one of the server's credentials. If no holder has one, it returns the
// shared session's owner, "", or, if the server's auth requires a certain holder, an error
// with instructions for the user.
func (p *Pool) sessionOwner(ctx context.Context, cfg store.Server, user string) (string, error) {
	if id, err := cfg.Declared(); err != nil {
		return "", err
	} else if id != "" && user != "" && user != store.System.User {
		if p.opt.Declared == nil {
			return "", credential.NotDeclared(id)
		}
		_, v, err := p.opt.Declared.Find(ctx, user, id)
		return v.Holder.Label(), err
	}
	keys := secretKeys(cfg)
	if len(keys) == 0 || user == "" || user == store.System.User || p.opt.Credentials == nil {
		return "", nil
	}
	teams, err := p.teams(ctx, user)
	if err != nil {
		return "", err
	}
	for _, h := range cfg.Auth.Holders(user, teams) {
		for _, key := range keys {
			_, err := p.opt.Credentials.GetCredential(ctx, h.Key(cfg.Name, key))
			switch {
			case err == nil:
				return h.Label(), nil
			case !errors.Is(err, store.ErrNotFound):
				return "", fmt.Errorf("reading credential %s of %s: %w", key, cfg.Name, err)
			}
		}
	}
	switch {
	case cfg.Enterprise: // the company's identity provider signs them in when the session opens
		return store.Holder{Scope: "user", Owner: user}.Label(), nil
	case cfg.Auth != store.AuthAny:
		return "", store.NotConnected(cfg.Name, keys[0], cfg.Auth)
	}
	return "", nil
}

// teams returns the teams of a user.
func (p *Pool) teams(ctx context.Context, user string) ([]string, error) {
	if p.opt.Members == nil {
		return nil, nil
	}
	list, err := p.opt.Members.ListMembers(ctx, "", user)
	if err != nil {
		return nil, fmt.Errorf("reading teams: %w", err)
	}
	teams := make([]string, len(list))
	for i, m := range list {
		teams[i] = m.Team
	}
	return teams, nil
}

// holders returns the holders whose credentials a session may use: its owner, then those
// that provide credentials which the owner lacks. The shared session, over which the tools
// are listed, uses the shared credentials whatever the server's auth.
func (p *Pool) holders(ctx context.Context, cfg store.Server, owner string) ([]store.Holder, error) {
	h := store.ParseHolder(owner)
	switch {
	case h.Scope == "system" || cfg.Auth != store.AuthAny:
		return []store.Holder{h}, nil
	case h.Scope == "team":
		return []store.Holder{h, store.ParseHolder("")}, nil
	}
	teams, err := p.teams(ctx, owner)
	return cfg.Auth.Holders(owner, teams), err
}

// credential returns the value of a key from the first holder that has it. It refuses a
// credential that is bound to a host other than the server's, and binds an unbound one to
// the server's host.
func (p *Pool) credential(ctx context.Context, cfg store.Server, owner, key string) (store.Secret, error) {
	if p.opt.Credentials == nil {
		return store.Secret{}, missingCredential(cfg.Name, key)
	}
	holders, err := p.holders(ctx, cfg, owner)
	if err != nil {
		return store.Secret{}, err
	}
	for _, h := range holders {
		c, err := p.opt.Credentials.GetCredential(ctx, h.Key(cfg.Name, key))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return store.Secret{}, fmt.Errorf("reading credential %s of %s: %w", key, cfg.Name, err)
		}
		if err := p.bindToHost(ctx, cfg, c); err != nil {
			return store.Secret{}, err
		}
		return c.Secret, nil
	}
	return store.Secret{}, missingCredential(cfg.Name, key)
}

func missingCredential(server, key string) error {
	return fmt.Errorf("credential %q of server %s is %w; set it with nizectl credentials set %s %s", key, server, store.ErrNotFound, server, key)
}

// bindToHost binds a credential to one host, the only one that it is sent to. A command has
// no host that could be checked, so it gets only unbound credentials.
func (p *Pool) bindToHost(ctx context.Context, cfg store.Server, c store.Credential) error {
	if cfg.Transport == store.Stdio {
		if c.Host != "" {
			return store.Mark(fmt.Errorf("credential %q is for host %s and is not given to the command of %s; set it again without --host", c.Name, c.Host, cfg.Name), store.ErrRefused)
		}
		return nil
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return fmt.Errorf("%w URL of server %s", store.ErrInvalid, cfg.Name)
	}
	switch c.Host {
	case u.Host, u.Hostname():
		return nil
	case "":
		c.Host = u.Host
		if err := p.opt.Credentials.PutCredential(ctx, store.System, c); err != nil {
			return fmt.Errorf("binding credential %q of %s to %s: %w", c.Name, cfg.Name, u.Host, err)
		}
		return nil
	}
	return store.Mark(fmt.Errorf("credential %q of %s is for host %s, not for %s; set it with nizectl credentials set %s %s --host %s", c.Name, cfg.Name, c.Host, u.Host, cfg.Name, c.Name, u.Host), store.ErrRefused)
}

// declaredValue returns the session owner's value of a declared credential. The shared
// session has no owner: its tools are listed without the credential, and no call uses it,
// so it gets "". An admin who assigns such a credential to a command allows the command to
// have it; a URL gets it only if the credential is bound to that host.
func (p *Pool) declaredValue(ctx context.Context, cfg store.Server, owner, id string) (store.Secret, error) {
	if owner == "" {
		return store.Secret{}, nil
	}
	if p.opt.Declared == nil {
		return store.Secret{}, credential.NotDeclared(id)
	}
	d, v, err := p.opt.Declared.Of(ctx, id, store.ParseHolder(owner))
	if err == nil && d.Mode.SignsIn() && (cfg.Transport == store.Stdio || d.Host == "") { // sign-in tokens expire, and are sent to one host only
		return store.Secret{}, store.Mark(fmt.Errorf("the credential %s is a token for one host, and %s has none", id, cfg.Name), store.ErrRefused)
	}
	if err != nil || cfg.Transport == store.Stdio {
		return v.Secret(), err
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return store.Secret{}, fmt.Errorf("%w URL of server %s", store.ErrInvalid, cfg.Name)
	}
	switch host := cmp.Or(d.Host, v.Sealed.Host); {
	case host == u.Host || host == u.Hostname():
	case host != "":
		return store.Secret{}, store.Mark(fmt.Errorf("the credential %s is for host %s, not for %s; to change its host: nizectl credentials declare %s --host HOST", id, host, u.Host, id), store.ErrRefused)
	case v.Sealed.Service != "": // a key that was not sent anywhere yet
		v.Sealed.Host = u.Host
		if err := p.opt.Credentials.PutCredential(ctx, store.System, v.Sealed); err != nil {
			return store.Secret{}, fmt.Errorf("binding the credential %s to %s: %w", id, u.Host, err)
		}
	}
	return v.Secret(), nil
}

// resolveValue returns the text of a value, and whether it is secret.
func (p *Pool) resolveValue(ctx context.Context, cfg store.Server, owner string, v store.Value) (text string, secret bool, err error) {
	if v.Credential != "" {
		s, err := p.declaredValue(ctx, cfg, owner, v.Credential)
		return s.Reveal(), true, err
	}
	if v.SecretKey == "" {
		return v.Text, false, nil
	}
	if v.SecretKey == store.LoginName && p.opt.Logins != nil && cfg.Transport != store.Stdio {
		holders, err := p.holders(ctx, cfg, owner)
		if err != nil {
			return "", true, err
		}
		token, err := p.opt.Logins.Token(ctx, cfg, holders)
		if err != nil || !token.IsZero() {
			return token.Reveal(), true, err
		}
	}
	s, err := p.credential(ctx, cfg, owner, v.SecretKey)
	return s.Reveal(), true, err
}

// headers returns the registered headers with their credentials filled in. The caller's own
// token is never among them, because it is not available here.
func (p *Pool) headers(ctx context.Context, cfg store.Server, owner string) (http.Header, error) {
	h := make(http.Header, len(cfg.Headers)+8)
	for name, v := range cfg.Headers {
		text, secret, err := p.resolveValue(ctx, cfg, owner, v)
		if err != nil {
			return nil, err
		}
		if text = strings.TrimSpace(text); v.Credential != "" && text == "" {
			continue
		}
		name = http.CanonicalHeaderKey(name)
		if wire.ProtocolHeader(name) {
			return nil, fmt.Errorf("%w header %s of server %s: the protocol itself sets it", store.ErrInvalid, name, cfg.Name)
		}
		if secret && name == "Authorization" && !strings.Contains(text, " ") {
			text = "Bearer " + text
		}
		if strings.ContainsAny(text, "\r\n\x00") {
			return nil, fmt.Errorf("%w header %s of server %s: it holds a line break", store.ErrInvalid, name, cfg.Name)
		}
		h.Set(name, text)
	}
	return h, nil
}

// denied handles a 401 or 403 response to a request with these headers. It reports whether
// the request may be sent once more with new headers, or returns an error for the caller.
// It also handles a server that requires a bearer token and has no header for one, because
// a user may be able to sign in to it.
func (d *dialer) denied(ctx context.Context, sent http.Header, resp *http.Response, again bool) (retry bool, err error) {
	if d.pool.opt.Logins == nil {
		return false, nil
	}
	denial := func(header string) oauth.Denial {
		token, _ := strings.CutPrefix(sent.Get(header), "Bearer ")
		return oauth.Denial{Status: resp.StatusCode, Challenge: oauth.ParseChallenge(resp.Header.Values("WWW-Authenticate")), Token: store.NewSecret(token), Again: again}
	}
	for name, v := range d.cfg.Headers {
		if v.Credential != "" && d.owner != "" && d.pool.opt.Declared != nil && sent.Get(name) != "" {
			decl, err := d.pool.opt.Declared.Get(ctx, v.Credential)
			if err != nil {
				return false, err
			}
			if decl.Mode.SignsIn() {
				return d.pool.opt.Logins.DeclaredDenied(ctx, decl, store.ParseHolder(d.owner), denial(name))
			}
		}
	}
	for name, v := range d.cfg.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" && v.SecretKey != store.LoginName {
			return false, nil
		}
	}
	holders, err := d.pool.holders(ctx, d.cfg, d.owner)
	if err != nil {
		return false, err
	}
	return d.pool.opt.Logins.Denied(ctx, d.cfg, holders, denial("Authorization"))
}

// environment returns the complete environment of a stdio server: PATH, HOME, LANG and the
// variables of its record. It returns the secrets among them separately, to keep them out
// of logs.
func (p *Pool) environment(ctx context.Context, cfg store.Server, owner string) (env, secrets []string, err error) {
	vars := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	for name, v := range cfg.Env {
		text, secret, err := p.resolveValue(ctx, cfg, owner, v)
		if err != nil {
			return nil, nil, err
		}
		if v.Credential != "" && text == "" {
			continue
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(text, 0) {
			return nil, nil, fmt.Errorf("%w environment variable %q of server %s", store.ErrInvalid, name, cfg.Name)
		}
		if secret {
			secrets = append(secrets, text)
		}
		vars[name] = text
	}
	for name, v := range vars {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env, secrets, nil
}
