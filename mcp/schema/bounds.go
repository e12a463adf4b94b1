package schema

import (
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"nize/store"
)

const (
	maxDepth    = 64      // nesting of JSON values, as in store.Canonical
	maxDigits   = 1000    // bytes of a number's literal
	maxExponent = 400     // of a number: comparison is exact, and 1e999999999 takes a gigabyte
	maxProgram  = 2000    // instructions of a compiled pattern
	maxSteps    = 200_000 // per check, about 0.1 s
)

// survey returns an error for values that would make exact arithmetic or recursion
// expensive, and their path, innermost name last.
func survey(doc any, depth int) (path []string, err error) {
	if depth > maxDepth {
		return nil, store.Errorf("is nested deeper than %d", maxDepth)
	}
	switch t := doc.(type) {
	case json.Number:
		return nil, checkNumber(string(t))
	case map[string]any:
		for k, e := range t {
			if path, err := survey(e, depth+1); err != nil {
				return append([]string{k}, path...), err
			}
		}
	case []any:
		for i, e := range t {
			if path, err := survey(e, depth+1); err != nil {
				return append([]string{strconv.Itoa(i)}, path...), err
			}
		}
	}
	return nil, nil
}

func checkNumber(s string) error {
	if len(s) > maxDigits {
		return store.Errorf("is a number of %d digits, over the limit of %d", len(s), maxDigits)
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return nil
	}
	if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > maxExponent || exp < -maxExponent {
		return store.Errorf("is the number %.20s, whose exponent is over %d", s, maxExponent)
	}
	return nil
}

// dropUnsupported removes patterns that our regular expressions don't support, such as
// look-ahead, from the schemas of doc. A pattern is removed alone; a key of
// patternProperties is removed together with the rule about all remaining properties, which
// would no longer be correct. It only examines keyword positions, so that a property called
// "pattern" is kept.
func dropUnsupported(doc any) {
	switch t := doc.(type) {
	case []any:
		for _, e := range t {
			dropUnsupported(e)
		}
	case map[string]any:
		if p, ok := t["pattern"].(string); ok && usable(p) != nil {
			delete(t, "pattern")
		}
		if byPattern, ok := t["patternProperties"].(map[string]any); ok {
			for p := range byPattern {
				if usable(p) != nil {
					delete(byPattern, p)
					delete(t, "additionalProperties")
					delete(t, "unevaluatedProperties")
				}
			}
		}
		for key, e := range t {
			switch key {
			case "enum", "const", "default", "examples", "required", "type":
			case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
				if named, ok := e.(map[string]any); ok {
					for _, s := range named {
						dropUnsupported(s)
					}
				}
			default:
				dropUnsupported(e)
			}
		}
	}
}

// usable returns an error if a pattern can't be used.
func usable(pattern string) error {
	_, err := regexpEngine(pattern)
	return err
}

// expression is a pattern with the number of its instructions, which is the cost of a match
// per byte.
type expression struct {
	*regexp.Regexp
	size int
}

func regexpEngine(pattern string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxProgram {
		return nil, errors.New("pattern too large")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return &expression{re, len(prog.Inst)}, nil
}

// meter estimates the cost of a validation before it runs, by walking schema and arguments
// like the library: one step per schema and value, more for enumerations and patterns. It
// may overestimate (every branch, every dynamic anchor with a name), but never
// underestimates by more than a constant factor.
type meter struct {
	v    *Validator
	left int
}

// visit reports whether the budget is sufficient.
func (m *meter) visit(s *jsonschema.Schema, v any) bool {
	if m.left--; m.left < 0 {
		return false
	}
	if s.Bool != nil {
		return true
	}
	if s.Enum != nil {
		m.left -= len(s.Enum.Values) / 4
	}
	switch t := v.(type) {
	case string:
		m.match(s.Pattern, t)
	case map[string]any:
		if !m.object(s, t) {
			return false
		}
	case []any:
		if !m.array(s, t) {
			return false
		}
	}
	ok := true
	inPlace(s, func(sub *jsonschema.Schema) bool {
		ok = m.visit(sub, v)
		return ok
	})
	if !ok {
		return false
	}
	return m.dynamic(s, v)
}

func (m *meter) dynamic(s *jsonschema.Schema, v any) bool {
	var more []*jsonschema.Schema
	var done *jsonschema.Schema // already visited as the reference's own target
	if s.DynamicRef != nil {
		more, done = m.v.dynamic[s.DynamicRef.Anchor], s.DynamicRef.Ref
	} else if s.RecursiveRef != nil {
		more, done = m.v.dynamic[""], s.RecursiveRef
	}
	for _, sub := range more {
		if sub != s && sub != done && !m.visit(sub, v) {
			return false
		}
	}
	return true
}

func (m *meter) match(re jsonschema.Regexp, s string) {
	if e, ok := re.(*expression); ok {
		m.left -= len(s) * e.size / 128
	}
}

func (m *meter) object(s *jsonschema.Schema, obj map[string]any) bool {
	m.left -= len(s.Required) / 8
	if s.Properties == nil && s.AdditionalProperties == nil && s.PatternProperties == nil && s.PropertyNames == nil && s.UnevaluatedProperties == nil {
		return m.left >= 0
	}
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, value := range obj {
		sub, named := s.Properties[name]
		if named && !m.visit(sub, value) {
			return false
		}
		for re, sub := range s.PatternProperties {
			m.match(re, name)
			if m.left < 0 || re.MatchString(name) && !m.visit(sub, value) {
				return false
			}
		}
		if !named && additional != nil && !m.visit(additional, value) {
			return false
		}
		if s.UnevaluatedProperties != nil && !m.visit(s.UnevaluatedProperties, value) {
			return false
		}
		if s.PropertyNames != nil && !m.visit(s.PropertyNames, name) {
			return false
		}
	}
	return m.left >= 0
}

func (m *meter) array(s *jsonschema.Schema, arr []any) bool {
	if s.UniqueItems {
		m.left -= len(arr)
	}
	every := make([]*jsonschema.Schema, 0, 5) // the keywords that apply one schema to many items
	for _, sub := range []*jsonschema.Schema{s.Items2020, s.Contains, s.UnevaluatedItems} {
		if sub != nil {
			every = append(every, sub)
		}
	}
	places := s.PrefixItems
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		every = append(every, items)
	case []*jsonschema.Schema:
		places = items
	}
	if sub, ok := s.AdditionalItems.(*jsonschema.Schema); ok {
		every = append(every, sub)
	}
	for i, item := range arr {
		if i < len(places) && !m.visit(places[i], item) {
			return false
		}
		for _, sub := range every {
			if !m.visit(sub, item) {
				return false
			}
		}
	}
	return m.left >= 0
}

// inPlace calls f with each schema that applies to the same value as s, until f returns
// false.
func inPlace(s *jsonschema.Schema, f func(*jsonschema.Schema) bool) {
	one := [...]*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	for _, sub := range one {
		if sub != nil && !f(sub) {
			return
		}
	}
	if s.DynamicRef != nil && !f(s.DynamicRef.Ref) {
		return
	}
	for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, sub := range list {
			if !f(sub) {
				return
			}
		}
	}
	for _, sub := range s.DependentSchemas {
		if !f(sub) {
			return
		}
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok && !f(sub) {
			return
		}
	}
}

// below returns the schemas that apply to parts of a value to which s applies.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	out := append([]*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}, s.PrefixItems...)
	for _, sub := range s.Properties {
		out = append(out, sub)
	}
	for _, sub := range s.PatternProperties {
		out = append(out, sub)
	}
	for _, held := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch t := held.(type) {
		case *jsonschema.Schema:
			out = append(out, t)
		case []*jsonschema.Schema:
			out = append(out, t...)
		}
	}
	return slices.DeleteFunc(out, func(sub *jsonschema.Schema) bool { return sub == nil })
}

// learn walks the compiled graph once. It returns an error for in-place cycles, on which
// the meter and the library would run until they give up, and collects the dynamic anchors.
func (v *Validator) learn() error {
	state := map[*jsonschema.Schema]int{} // 1 entered, 2 left
	todo := []*jsonschema.Schema{v.root}
	var enter func(s *jsonschema.Schema) error
	enter = func(s *jsonschema.Schema) (err error) {
		switch state[s] {
		case 1:
			return errors.New("its references form a cycle that never reaches a property or item")
		case 2:
			return nil
		}
		state[s] = 1
		if s.DynamicAnchor != "" {
			v.dynamic[s.DynamicAnchor] = append(v.dynamic[s.DynamicAnchor], s)
		}
		if s.RecursiveAnchor {
			v.dynamic[""] = append(v.dynamic[""], s)
		}
		inPlace(s, func(sub *jsonschema.Schema) bool {
			err = enter(sub)
			return err == nil
		})
		todo = append(todo, below(s)...)
		state[s] = 2
		return err
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := enter(s); err != nil {
			return err
		}
	}
	return nil
}
