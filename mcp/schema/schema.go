// Package schema validates the arguments of a call against a tool's input schema before the
// call is sent.
//
// Its errors are written so that a model can correct its call.
//
// The work is done by santhosh-tekuri/jsonschema, chosen over google/jsonschema-go (which
// the MCP SDK links anyway) because it supports every draft that servers use, reports all
// errors with their location in the instance, and stops at a reference cycle, at which the
// other ends the process. It is not trusted further than that:
//
//   - It gets no loader: only references inside the document resolve, and nothing
//     is ever read from a disk or a network.
//   - A schema that has an in-place cycle, or whose numbers have exponents that
//     take gigabytes to compare, does not compile.
//   - Every check is metered first: a walk over schema and arguments together
//     counts the steps that the library would take, and stops at a fixed
//     limit (see meter). Recursion through properties can double the work at
//     each level, so no static limit on the schema alone would suffice.
//   - A panic becomes an error.
//
// A schema comes from an upstream, and a call must not fail because of an unreadable
// schema: every error except invalid arguments wraps [ErrUnchecked]. The caller logs it and
// lets the call pass; the server still validates for itself.
//
// Compilation is lenient where servers need it: it tries the declared draft, then 2020-12,
// then draft-07 (array items), then draft-04 (boolean exclusiveMinimum), then the result of
// [toolschema.Valid]; a pattern that RE2 doesn't support is dropped alone; formats are
// annotations, as in 2020-12, because servers disagree about the meaning of "date-time". A
// root that isn't about objects is ignored, and OpenAPI's nullable has its OpenAPI meaning.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"nize/store"
	"nize/store/toolschema"
)

// ErrUnchecked means that arguments could not be validated, through no fault of their own.
// The call passes; the caller logs the error.
var ErrUnchecked = errors.New("arguments not checked")

const (
	maxSchema   = 64 << 10 // bytes, as in the gate of mcp/scan
	maxArgs     = 4 << 20  // bytes, as in the HTTP body
	maxProblems = 5        // named in one error
)

// Validator is a compiled schema. It is safe for concurrent use.
type Validator struct {
	root    *jsonschema.Schema
	dynamic map[string][]*jsonschema.Schema // by $dynamicAnchor; "" for $recursiveAnchor

	once sync.Once
	at   map[string]*jsonschema.Schema // by location, for messages; created at the first failure
}

// errBounds means that a document is too deep, or that its numbers are too large.
var errBounds = errors.New("beyond the bounds")

// Compile compiles the schema of a tool's arguments, which are an object whatever the
// schema says. It never loads anything. Its errors wrap [ErrUnchecked].
func Compile(raw json.RawMessage) (*Validator, error) { return newValidator(raw, compileInput) }

// CompileOutput compiles the schema of a tool's structured result, which may be of any
// type.
func CompileOutput(raw json.RawMessage) (*Validator, error) { return newValidator(raw, compileForm) }

func newValidator(raw json.RawMessage, compile func(json.RawMessage) (*jsonschema.Schema, error)) (v *Validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("%w: compiling the schema: panic: %v", ErrUnchecked, p)
		}
	}()
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("%w: compiling the schema: %d bytes, over the limit of %d", ErrUnchecked, len(raw), maxSchema)
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%w: reading the schema: not JSON", ErrUnchecked)
	}
	root, err := compile(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: compiling the schema: %w", ErrUnchecked, err)
	}
	v = &Validator{root: root, dynamic: map[string][]*jsonschema.Schema{}}
	if err := v.learn(); err != nil {
		return nil, fmt.Errorf("%w: compiling the schema: %w", ErrUnchecked, err)
	}
	return v, nil
}

// compileInput compiles the schema of arguments, verbatim or corrected. It returns the
// first error if neither works.
func compileInput(raw json.RawMessage) (*jsonschema.Schema, error) {
	root, err := compileForm(raw)
	if errors.Is(err, errBounds) || err == nil && takesObjects(raw) {
		return root, err
	}
	repaired, errRepaired := compileForm(toolschema.Valid(raw))
	if err == nil || errRepaired == nil {
		return repaired, errRepaired
	}
	return nil, err
}

// takesObjects reports whether the root of a schema is about objects and contains no
// OpenAPI keyword that changes its meaning.
func takesObjects(raw json.RawMessage) bool {
	var root struct {
		Type  json.RawMessage `json:"type"`
		Enum  json.RawMessage `json:"enum"`
		Const json.RawMessage `json:"const"`
	}
	if json.Unmarshal(raw, &root) != nil || root.Enum != nil || root.Const != nil || bytes.Contains(raw, []byte(`"nullable"`)) {
		return false
	}
	return len(root.Type) == 0 || bytes.Contains(root.Type, []byte(`"object"`))
}

func compileForm(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	if _, err := survey(doc, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", errBounds, err)
	}
	dropUnsupported(doc)
	return compile(doc)
}

// compile tries the drafts in turn and returns the first error if none works.
func compile(doc any) (*jsonschema.Schema, error) {
	root, first := compileAs(doc, jsonschema.Draft2020)
	if first == nil {
		return root, nil
	}
	if obj, ok := doc.(map[string]any); ok {
		delete(obj, "$schema")
	}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		if root, err := compileAs(doc, draft); err == nil {
			return root, nil
		}
	}
	return nil, first
}

func compileAs(doc any, draft *jsonschema.Draft) (*jsonschema.Schema, error) {
	const url = "nize:///schema"
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // supports no scheme; the default loader opens files
	c.UseRegexpEngine(regexpEngine)
	c.DefaultDraft(draft)
	for _, name := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// formats lists the formats that the library would assert in draft-07 and older.
var formats = strings.Fields(`json-pointer relative-json-pointer uuid duration period ipv4 ipv6 hostname email
	date time date-time uri iri uri-reference iri-reference uri-template semver`)

// Check validates args. It returns nil if they are valid, and a [*store.CallError] with
// code invalid_arguments if not; its message names up to five locations, the rule and the
// received value. Any other error wraps [ErrUnchecked]. Missing args count as {}.
func (v *Validator) Check(args json.RawMessage) error {
	return v.check("the schema", args)
}

// check is Check with the name of the validated tool.
func (v *Validator) check(name string, args json.RawMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", ErrUnchecked, p)
		}
	}()
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if len(args) > maxArgs {
		return invalid("arguments for %s are %d bytes, over the limit of %d", name, len(args), maxArgs)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return invalid("arguments for %s are not JSON: %v", name, err)
	}
	if path, err := survey(doc, 0); err != nil {
		return invalid("arguments don't fit %s: %s", name, placed(path, store.TextOf(err)))
	}
	if m := (meter{v: v, left: maxSteps}); !m.visit(v.root, doc) {
		return fmt.Errorf("%w: it would take more than %d steps", ErrUnchecked, maxSteps)
	}
	err = v.root.Validate(doc)
	if err == nil {
		return nil
	}
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%w: %w", ErrUnchecked, err)
	}
	if cyclic(bad) {
		return fmt.Errorf("%w: the schema has a reference cycle", ErrUnchecked)
	}
	text, misfits := v.explain(bad, doc)
	return &store.CallError{Code: store.CodeInvalid, Message: store.Textf("arguments don't fit %s: %s", name, text), Misfits: misfits}
}

func invalid(format string, args ...any) error {
	return &store.CallError{Code: store.CodeInvalid, Message: store.Textf(format, args...)}
}

func cyclic(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	for _, c := range e.Causes {
		if cyclic(c) {
			return true
		}
	}
	return false
}

// takesOthers reports whether a schema of the root value has rules for undeclared
// properties.
func (v *Validator) takesOthers() (others bool) {
	seen := map[*jsonschema.Schema]bool{}
	var visit func(s *jsonschema.Schema) bool
	visit = func(s *jsonschema.Schema) bool {
		if seen[s] {
			return true
		}
		seen[s] = true
		if s.AdditionalProperties != nil && s.AdditionalProperties != false || len(s.PatternProperties) > 0 || s.UnevaluatedProperties != nil {
			others = true
		}
		inPlace(s, visit)
		return true
	}
	visit(v.root)
	return others
}

// properties returns the names of all properties that the schema declares for its root
// value, sorted.
func (v *Validator) properties() []string {
	names := map[string]bool{}
	seen := map[*jsonschema.Schema]bool{}
	var visit func(s *jsonschema.Schema) bool
	visit = func(s *jsonschema.Schema) bool {
		if !seen[s] {
			seen[s] = true
			for name := range s.Properties {
				names[name] = true
			}
			inPlace(s, visit)
		}
		return true
	}
	visit(v.root)
	return slices.Sorted(maps.Keys(names))
}
