package rounds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"nize/daemon/api"
	"nize/store"
	"nize/store/project"
)

const (
	maxServers = 32   // per request
	maxOffered = 1024 // tools per request
	maxLabel   = 200
	maxSlug    = 30
)

// offer validates the entries of tools, first all of them by themselves, then concurrently
// with what their servers list.
func (e *Engine) offer(ctx context.Context, of project.Project, s *state, tools []Tool) ([][]offered, error) {
	groups := make([][]offered, len(tools))
	servers := map[int]project.Server{}
	for i, t := range tools {
		param := fmt.Sprintf("tools[%d]", i)
		if t.Type == remote {
			server, bad := t.server(param)
			if bad != nil {
				return nil, bad
			}
			servers[i] = server
			continue
		}
		one, err := e.readTool(ctx, of, t, param)
		if err != nil {
			return nil, err
		}
		groups[i] = []offered{one}
	}
	if len(servers) > maxServers {
		return nil, Invalid("tools", "tools has more than %d servers", maxServers)
	}
	warnings, errs := make([][]string, len(tools)), make([]error, len(tools))
	var fetching sync.WaitGroup
	for i, server := range servers {
		fetch := func() {
			listed, err := e.Servers.Open(ctx, of, server)
			if err != nil {
				errs[i] = fetchError(ctx, tools[i], err, fmt.Sprintf("tools[%d]", i))
				return
			}
			groups[i], warnings[i] = tools[i].choose(listed)
		}
		if len(servers) == 1 { // the usual case; avoid waking another thread
			fetch()
		} else {
			fetching.Go(fetch)
		}
	}
	fetching.Wait()
	n := 0
	for i := range tools { // report the first in order, whichever failed first
		if errs[i] != nil {
			return nil, errs[i]
		}
		s.Warnings = append(s.Warnings, warnings[i]...)
		n += len(groups[i])
	}
	if n > maxOffered {
		return nil, Invalid("tools", "tools come to %d, more than %d; name those that are needed in allowed_tools", n, maxOffered)
	}
	return groups, nil
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

// server validates an entry of type mcp.
func (t Tool) server(param string) (none project.Server, _ *api.Error) {
	u, err := url.Parse(t.ServerURL)
	switch {
	case t.ServerLabel == "":
		return none, Invalid(param+".server_label", "%s.server_label is required", param)
	case len(t.ServerLabel) > maxLabel || strings.ContainsFunc(t.ServerLabel, unicode.IsControl):
		return none, Invalid(param+".server_label", "%s.server_label must have at most %d bytes and no line breaks", param, maxLabel)
	case t.ServerURL == "":
		return none, Invalid(param+".server_url", "%s.server_url is required", param)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return none, Invalid(param+".server_url", "%s.server_url must start with http:// or https://", param)
	case t.AllowedTools == nil:
		return none, Invalid(param+".allowed_tools", "%s.allowed_tools is required; send [] for all tools", param)
	case t.RequireApproval == "":
		return none, Invalid(param+".require_approval", "%s.require_approval is required", param)
	case t.RequireApproval != store.ApproveAlways && t.RequireApproval != store.ApproveNever && t.RequireApproval != store.ApproveAuto:
		return none, Invalid(param+".require_approval", "%s.require_approval must be always, never or auto", param)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		h, at := t.Headers[name], param+".headers."+name
		switch {
		case !headerName.MatchString(name):
			return none, Invalid(at, "%s is not the name of a header", at)
		case seen[http.CanonicalHeaderKey(name)]:
			return none, Invalid(at, "%s is there twice", at)
		case strings.ContainsAny(h.Text.Reveal(), "\r\n\x00"):
			return none, Invalid(at, "%s holds a line break", at)
		}
		seen[http.CanonicalHeaderKey(name)] = true
	}
	return project.Server{Label: t.ServerLabel, Slug: slugOf(t.ServerLabel), URL: t.ServerURL, Headers: t.Headers}, nil
}

// fetchError returns the caller's error if a server's tools could not be listed.
func fetchError(ctx context.Context, t Tool, err error, param string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var lacks *project.NoCredentialError
	if errors.As(err, &lacks) {
		return Invalid(param+".headers."+lacks.Header, "No API key configured for MCP tool %q header %q", t.ServerLabel, lacks.Header)
	}
	return &api.Error{Code: "fetch_failed", Message: fmt.Sprintf("Failed to fetch tools from MCP server %s: %s", t.ServerLabel, store.Clip(err.Error(), 500)), Param: param + ".server_url"}
}

// choose returns the tools that the entry allows. It omits those that the scan holds back,
// with a warning.
func (t Tool) choose(listed []store.Tool) (offers []offered, warnings []string) {
	for _, l := range listed {
		switch {
		case strings.Contains(l.Name, ":"): // prompts and resources, which models don't call
		case len(*t.AllowedTools) > 0 && !slices.Contains(*t.AllowedTools, l.Name):
		case l.State != store.ToolAccepted:
			warnings = append(warnings, fmt.Sprintf("tool %s of MCP server %s is left out: %s", l.Name, t.ServerLabel, strings.Join(l.Findings, "; ")))
		default:
			offers = append(offers, offered{
				Kind: remote, Callable: l.ID(), Label: t.ServerLabel, Approval: t.RequireApproval,
				Function: store.Function{Name: l.Name, Description: l.Description, Schema: l.InputSchema},
				Origin:   t.ServerLabel + "\n" + t.ServerURL + "\n" + l.Name, Pin: definitionHash(l),
			})
		}
	}
	return offers, warnings
}

// definitionHash identifies a server's definition of a tool, independent of the session.
func definitionHash(t store.Tool) string {
	raw, err := json.Marshal([]any{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations})
	if err != nil {
		return "" // the schema is not JSON: never equal to another
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// pinTools removes tools whose definition differs from the one that the conversation has
// pinned, and pins the others.
func (s *state) pinTools() {
	if s.Pins == nil {
		s.Pins = map[string]string{}
	}
	s.Tools = slices.DeleteFunc(s.Tools, func(t offered) bool {
		if t.Kind != remote {
			return false
		}
		switch met := s.Pins[t.Origin]; met {
		case "":
			s.Pins[t.Origin] = t.Pin
		case t.Pin:
		default:
			_, name, _ := strings.Cut(t.Callable, ":")
			s.Warnings = append(s.Warnings, fmt.Sprintf("tool %s of MCP server %s is left out: its definition changed in this conversation", name, t.Label))
			return true
		}
		return false
	})
}

// letters are those that Unicode normalization does not decompose.
var letters = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i")

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slugOf converts a label to a part of a name: its letters without diacritics, and a dash
// for anything that is neither letter nor digit.
func slugOf(label string) string {
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(letters.Replace(strings.ToLower(label))))
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(plain), "-"), "-")
	if slug = strings.Trim(slug[:min(len(slug), maxSlug)], "-"); slug == "" {
		return "server"
	}
	return slug
}
