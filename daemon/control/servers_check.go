package control

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"nize/mcp/upstream/openapi"
	"nize/store"
)

// CheckServer validates a record and resolves its command.
func CheckServer(s *store.Server) error {
	if err := store.CheckSlug(s.Name); err != nil {
		return err
	}
	switch s.Transport {
	case "":
		switch {
		case s.Document != "":
			s.Transport = store.OpenAPI
		case s.URL != "":
			s.Transport = store.HTTP
		default:
			s.Transport = store.Stdio
		}
	case store.Stdio, store.HTTP, store.SSE, store.OpenAPI, store.External:
	default:
		return fmt.Errorf("%w transport %q: use stdio, http, sse, openapi or external", store.ErrInvalid, s.Transport)
	}
	switch s.Approval {
	case "", store.ApproveAuto, store.ApproveAlways, store.ApproveNever:
	default:
		return fmt.Errorf("%w approval %q: use auto, always or never", store.ErrInvalid, s.Approval)
	}
	var err error
	if s.Auth, err = store.ParseAuth(string(s.Auth)); err != nil {
		return err
	}
	if s.Timeout < 0 || time.Duration(s.Timeout) > time.Hour {
		return fmt.Errorf("%w timeout %s: use up to 1h", store.ErrInvalid, s.Timeout)
	}
	if s.StartTimeout != 0 && (time.Duration(s.StartTimeout) < time.Second || time.Duration(s.StartTimeout) > time.Hour) {
		return fmt.Errorf("%w start_timeout %s: use 1s to 1h", store.ErrInvalid, s.StartTimeout)
	}
	if s.MaxConcurrency < 0 || s.MaxConcurrency > 1000 {
		return fmt.Errorf("%w max_concurrency %d: use 1 to 1000", store.ErrInvalid, s.MaxConcurrency)
	}
	if s.IdleTimeout < 0 || s.IdleTimeout > 0 && time.Duration(s.IdleTimeout) < time.Second {
		return fmt.Errorf("%w idle_timeout %s: use 1s or more", store.ErrInvalid, s.IdleTimeout)
	}
	if s.MemoryLimit != 0 && (s.MemoryLimit < 16<<20 || s.Transport != store.Stdio) {
		return fmt.Errorf("%w memory_limit %s: use 16MiB or more, for a stdio server", store.ErrInvalid, s.MemoryLimit)
	}
	if err := checkDocument(s); err != nil {
		return err
	}
	if s.Enterprise && (s.Auth != store.AuthUserLogin || s.Transport == store.Stdio) {
		return fmt.Errorf("%w server: the company's identity provider signs in each person, so enterprise needs the auth %s and a URL", store.ErrInvalid, store.AuthUserLogin)
	}
	switch s.Transport {
	case store.External:
		return checkExternal(*s)
	case store.Stdio:
		return checkCommand(s)
	}
	u, err := url.Parse(s.URL)
	if s.Transport == store.OpenAPI && s.URL == "" { // the document has it
		u, err = url.Parse("https://document")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%w URL %q: use http:// or https:// with a host and no user name", store.ErrInvalid, s.URL)
	}
	if _, set := s.Headers["Authorization"]; s.Auth.Login() && !set {
		s.Headers = WithLogin(s.Headers)
	}
	if s.Command != "" || len(s.Args) > 0 {
		return fmt.Errorf("%w server: give a URL or a command, not both", store.ErrInvalid)
	}
	return nil
}

// checkDocument validates the document and the allowed operations of an OpenAPI server, and
// returns an error if any other server has them.
func checkDocument(s *store.Server) error {
	for _, p := range s.AllowedTools {
		if s.Transport != store.OpenAPI && strings.Contains(p, " ") {
			return fmt.Errorf("%w pattern %q: only the tools of an OpenAPI server have a method and a path", store.ErrInvalid, p)
		}
		if err := openapi.CheckPattern(p); err != nil {
			return err
		}
	}
	if s.Transport != store.OpenAPI {
		for name := range s.Headers {
			if strings.HasPrefix(name, store.QueryPrefix) {
				return fmt.Errorf("%w header %q: only an OpenAPI server has parameters of the query; give a key of an MCP server in a header", store.ErrInvalid, name)
			}
		}
		if s.Document != "" {
			return fmt.Errorf("%w server: an OpenAPI document needs the transport openapi, not %s", store.ErrInvalid, s.Transport)
		}
		s.URLFromDocument = false
		return nil
	}
	if !openapi.IsURL(s.Document) {
		if !filepath.IsAbs(s.Document) {
			return fmt.Errorf("%w OpenAPI document %q: give an http or https URL, or an absolute path", store.ErrInvalid, s.Document)
		}
		return nil
	}
	u, err := url.Parse(s.Document)
	if err != nil || u.Host == "" || u.User != nil {
		return fmt.Errorf("%w address of the OpenAPI document %q: use http:// or https:// with a host and no user name", store.ErrInvalid, s.Document)
	}
	return nil
}

// checkExternal returns an error for fields that a source of asks can't have, since nothing
// of it runs here.
func checkExternal(s store.Server) error {
	if s.URL != "" || s.Command != "" || len(s.Args) > 0 || s.Cwd != "" || len(s.Headers) > 0 || len(s.Env) > 0 || s.Auth != store.AuthAny {
		return fmt.Errorf("%w server: an external one has no command, no URL and no credentials, since its tools run elsewhere", store.ErrInvalid)
	}
	return nil
}

// HostOf returns the host that a server's credentials are bound to, "" for none.
func HostOf(s store.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
