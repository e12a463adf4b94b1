package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"nize/mcp/feature"
	"nize/mcp/upstream/wire"
	"nize/mcp/view"
	"nize/store"
)

// The prompts and resources of a server are handled like its tools: they are listed with
// them, scanned, pinned and stored as tools whose name contains their kind
// (store.FeatureOf), and read by a call. Their input schema describes the arguments of a
// request; their meta is the complete definition that the server listed.

// maxFeature is the maximum size of the definition of a prompt or resource, in bytes.
const maxFeature = 32 << 10

// maxURI is the maximum length of a resource's URI, which is part of a name.
const maxURI = 1 << 10

var (
	noArguments = json.RawMessage(`{"type":"object","additionalProperties":false}`)
	oneURI      = json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"],"additionalProperties":false}`)
)

// fetchFeatures reads the lists that the server declares. If a list can't be read, it adds
// a warning, and the stored features of that kind stay unchanged.
func (s *session) fetchFeatures(ctx context.Context, c *catalog) error {
	lists := []struct {
		has                  bool
		kind, method, member string
	}{
		{s.prompts, feature.Prompt, wire.MethodPrompts, "prompts"},
		{s.resources, feature.Resource, wire.MethodResources, "resources"},
		{s.resources, feature.Template, wire.MethodTemplates, "resourceTemplates"},
	}
	for _, l := range lists {
		if !l.has {
			continue
		}
		err := s.fetchPages(ctx, c, l.method, l.member, func(c *catalog, raw json.RawMessage) { s.addFeature(c, l.kind, raw) })
		var rpc *wire.RPCError
		switch {
		case errors.As(err, &rpc):
			c.warn(fmt.Sprintf("it declares %s but can't list them: %v", l.member, rpc))
			c.kept = append(c.kept, l.kind)
		case err != nil:
			return err
		}
	}
	return nil
}

// addFeature adds one prompt, resource or template of a page, scanned and pinned.
func (s *session) addFeature(c *catalog, kind string, raw json.RawMessage) {
	var f struct {
		Name        string `json:"name"`
		Title       string `json:"title"`
		Description string `json:"description"`
		URI         string `json:"uri"`
		Template    string `json:"uriTemplate"`
		Arguments   []struct {
			Name        string `json:"name"`
			Title       string `json:"title"`
			Description string `json:"description"`
			Required    bool   `json:"required"`
		} `json:"arguments"`
		Icons json.RawMessage `json:"icons"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		c.warn(fmt.Sprintf("an invalid %s is left out: %v", kind, err))
		return
	}
	name, most := f.Name, 256
	input := noArguments
	switch kind {
	case feature.Resource:
		name, most = f.URI, maxURI
	case feature.Template:
		name, most, input = f.Template, maxURI, oneURI
	default:
		type property struct {
			Type        string `json:"type"`
			Title       string `json:"title,omitempty"`
			Description string `json:"description,omitempty"`
		}
		properties, required := map[string]property{}, []string{}
		for _, a := range f.Arguments {
			if properties[a.Name] = (property{"string", a.Title, a.Description}); a.Required && !slices.Contains(required, a.Name) {
				required = append(required, a.Name)
			}
		}
		var err error
		if input, err = json.Marshal(struct {
			Type       string              `json:"type"`
			Properties map[string]property `json:"properties"`
			Required   []string            `json:"required"`
			Others     bool                `json:"additionalProperties"`
		}{"object", properties, required, false}); err != nil {
			return // unreachable: strings always encode
		}
	}
	id := kind + ":" + name
	_, twice := c.byName[id]
	switch {
	case name == "" || len(name) > most || !utf8.ValidString(name):
		c.warn(fmt.Sprintf("a %s with the name %q is left out: it may have 1 to %d bytes", kind, store.Clip(name, 40), most))
		return
	case len(raw) > maxFeature:
		c.warn(fmt.Sprintf("the %s %q is left out: it is listed with more than %d KiB", kind, store.Clip(name, 40), maxFeature>>10))
		return
	case twice:
		c.warn(fmt.Sprintf("a second %s with the name %q is left out", kind, store.Clip(name, 40)))
		return
	case !allowed(s.config(), id, nil):
		return
	}
	l := listed{tool: store.Tool{Server: s.config().Name, Name: id, Title: f.Title, Description: f.Description, InputSchema: input, Meta: definitionOf(kind, raw), Icons: icons(f.Icons)}}
	o := offer{refused: s.gate.Check(l.tool)}
	o.pin, l.findings = s.gate.Pin(s.config(), s.instructions, l.tool)
	l.tool.Pin = o.pin
	c.byName[id] = o
	c.list = append(c.list, l)
}

// definitionOf returns the definition of a listed feature that is stored: its members
// unchanged, without those that depend on a resource's content, which may change without
// approval, and without icons, which are stored as a tool's are.
func definitionOf(kind string, raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	delete(members, "icons")
	if kind == feature.Resource {
		delete(members, "size")
		var notes map[string]json.RawMessage
		if json.Unmarshal(members["annotations"], &notes) == nil && notes["lastModified"] != nil {
			delete(notes, "lastModified")
			if members["annotations"], _ = json.Marshal(notes); len(notes) == 0 {
				delete(members, "annotations")
			}
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	return out
}

// requestOf returns the request that a call sends.
func requestOf(c *store.Call) (*wire.Request, error) {
	kind, rest := feature.Of(c.Tool)
	switch kind {
	case feature.Prompt:
		return &wire.Request{Method: wire.MethodPrompt, Name: rest, Args: c.Args}, nil
	case feature.Resource:
		return &wire.Request{Method: wire.MethodRead, URI: rest}, nil
	case feature.Template:
		var args struct {
			URI string `json:"uri"`
		}
		if err := json.Unmarshal(c.Args, &args); err != nil || args.URI == "" {
			return nil, &store.CallError{Code: store.CodeInvalid, Message: store.Plain("the address of a resource is missing")}
		}
		return &wire.Request{Method: wire.MethodRead, URI: args.URI}, nil
	}
	return &wire.Request{Method: wire.MethodCall, Name: c.Tool, Args: c.Args}, nil
}

const (
	maxViews = 20               // views of a server that are read with its list
	viewTime = 20 * time.Second // for all of them together
)

// errSpoilt ends a list during which reading a view ended the session. The next list skips
// that view.
var errSpoilt = errors.New("reading a view")

// knownViews provides the information about a server's views from earlier lists.
type knownViews interface {
	// declared returns the domains that the tool's view at this URI declared.
	declared(tool, uri string) view.Domains
	// isSpoilt reports whether reading a view has ended a session, as recorded by spoil.
	// The view is not read again while nize runs.
	isSpoilt(uri string) bool
	spoil(uri string)
}

func (s *server) declared(tool, uri string) view.Domains {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.tools.byName[tool].view; v != nil && v.URI == uri {
		return v.Accepted
	}
	return view.Domains{}
}

func (s *server) isSpoilt(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools.spoilt[uri]
}

func (s *server) spoil(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools.spoilt == nil {
		s.tools.spoilt = map[string]bool{}
	}
	if len(s.tools.spoilt) < maxViews {
		s.tools.spoilt[uri] = true
	}
}

// pinViews adds the domains that the views of the listed tools declare to the definition
// that an admin accepts with the tool. A view that is not read, or can't be, keeps its
// earlier domains, so that one person's missing access doesn't change the pin for all.
func (s *session) pinViews(ctx context.Context, c *catalog, read bool) error {
	limited, cancel := context.WithTimeout(ctx, viewTime)
	defer cancel()
	type place struct {
		uri       string
		skybridge bool
	}
	declared := map[place]*view.Domains{} // nil for a view that can't be read
	for i, l := range c.list {
		claims := view.Of(l.tool.Meta)
		if claims == nil || claims.URI == "" || !feature.IsTool(l.tool.Name) {
			continue
		}
		at := place{claims.URI, claims.Skybridge}
		d, known := declared[at]
		if !known && read && len(declared) < maxViews {
			var why, err error
			if d, why, err = s.readDeclared(limited, c, *claims); err != nil && ctx.Err() == nil && limited.Err() != nil {
				why, err = fmt.Errorf("it did not come within %s", viewTime), nil
			}
			if err != nil {
				return err
			}
			if why != nil {
				c.warn(fmt.Sprintf("the view %s is left out: %v", store.Clip(at.uri, 80), why))
			}
			declared[at] = d
		}
		if d == nil && s.views != nil {
			before := s.views.declared(l.tool.Name, at.uri)
			d = &before
		}
		if d == nil || !d.Any() {
			continue
		}
		l.tool.Meta = view.Pinned(l.tool.Meta, *d)
		o := c.byName[l.tool.Name]
		o.pin, l.findings = s.gate.Pin(s.config(), s.instructions, l.tool)
		l.findings = append(slices.Clip(l.findings), d.Findings()...)
		l.tool.Pin = o.pin
		c.byName[l.tool.Name], c.list[i] = o, l
	}
	return nil
}

// learnView adds the domains that a view declares to its tool if no list could read the
// view, because it needs a person's credential, as this read did. Until an admin has
// accepted them, the view can't reach any domain.
func learnView(ctx context.Context, s *server, by store.Caller, tool, uri string, raw json.RawMessage) error {
	s.mu.Lock()
	claims := s.tools.byName[tool].view
	s.mu.Unlock()
	if claims == nil || claims.URI != uri || claims.Accepted.Any() {
		return nil
	}
	content, err := view.Read(raw, *claims)
	if err != nil {
		return nil // the caller of ReadView gets this error itself
	}
	owner, err := s.pool.sessionOwner(ctx, s.config(), by.User)
	if err != nil || owner == "" {
		return err // the shared list reads the view
	}
	select {
	case s.syncing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.syncing }()
	sess := s.currentSession(owner)
	if sess == nil || s.isEnded() {
		return nil
	}
	tools, err := s.pool.opt.Tools.ListTools(ctx, s.name)
	if err != nil {
		return err
	}
	var inList json.RawMessage
	at := -1
	for i, t := range tools {
		switch t.Name {
		case tool:
			at = i
		case feature.Resource + ":" + uri:
			inList = metaOf(t.Meta)
		}
	}
	d := content.Domains(inList)
	if at < 0 || !d.Any() {
		return nil
	}
	t := tools[at]
	if now := view.Of(t.Meta); now == nil || now.URI != uri || now.Accepted.Any() || t.State == store.ToolRefused {
		return nil // the tool has changed since
	}
	j := toolJudge{gate: s.pool.opt.Gate, cfg: s.config(), instructions: sess.instructions, known: map[string]store.Tool{tool: t}}
	t.Meta, t.Findings = view.Pinned(t.Meta, d), nil
	l := listed{tool: t}
	l.tool.Pin, l.findings = j.gate.Pin(j.cfg, j.instructions, t)
	l.findings = append(slices.Clip(l.findings), d.Findings()...)
	tools[at] = j.judgeTool(l, nil)
	if _, err = s.pool.opt.Tools.PutTools(ctx, store.System, s.name, tools); err != nil {
		return err
	}
	s.outdateOthers(nil)
	s.setTools(tools)
	if s.pool.opt.OnTools != nil {
		s.pool.opt.OnTools(ctx, s.name, tools)
	}
	return nil
}

// readDeclared reads one view. why is the reason why the view is unusable; err means that
// the session has ended.
func (s *session) readDeclared(ctx context.Context, c *catalog, claims view.Claims) (d *view.Domains, why, err error) {
	if s.views != nil && s.views.isSpoilt(claims.URI) {
		return nil, errors.New("reading it ended a session"), nil
	}
	raw, err := s.Call(ctx, &wire.Request{Method: wire.MethodRead, URI: claims.URI})
	var rpc *wire.RPCError
	switch {
	case errors.As(err, &rpc), err != nil && !wire.AsFault(err).Drop:
		return nil, err, nil
	case err != nil && ctx.Err() == nil && s.views != nil:
		s.views.spoil(claims.URI)
		return nil, nil, &wire.Fault{Reach: wire.Never, Drop: true, Err: fmt.Errorf("%w: %w", errSpoilt, err)}
	case err != nil:
		return nil, nil, err
	}
	content, why := view.Read(raw, claims)
	if why != nil {
		return nil, why, nil
	}
	var listed json.RawMessage
	for _, l := range c.list {
		if l.tool.Name == feature.Resource+":"+claims.URI {
			listed = metaOf(l.tool.Meta)
		}
	}
	all := content.Domains(listed)
	for _, dropped := range all.Dropped {
		c.warn(fmt.Sprintf("the view %s declares %q, which is not a valid origin", store.Clip(claims.URI, 80), store.Clip(dropped, 80)))
	}
	return &all, nil, nil
}

// metaOf returns the _meta of a listed definition.
func metaOf(definition json.RawMessage) json.RawMessage {
	var of struct {
		Meta json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(definition, &of) // a _meta of another type counts as absent
	return of.Meta
}
