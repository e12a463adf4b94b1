package schema

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"nize/store"
)

// problem is one error at one location. rank orders them: missing, unknown, wrong value.
type problem struct {
	at   []string
	rank int
	text store.Text
}

const (
	missing = iota
	unknown
	wrong
)

// maxMisfits is how many errors are reported by location.
const maxMisfits = 100

// explain converts the library's tree of errors to one sentence, and to messages by
// location.
func (v *Validator) explain(bad *jsonschema.ValidationError, doc any) (all store.Text, misfits []store.Misfit) {
	v.once.Do(v.locate)
	e := explainer{v: v, doc: doc}
	problems := e.flatten(bad)
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), slices.Compare(a.at, b.at), cmp.Compare(a.text.String(), b.text.String()))
	})
	var parts []store.Text
	for _, p := range problems {
		if part := placed(p.at, p.text); !slices.Contains(parts, part) {
			parts = append(parts, part)
			if len(misfits) < maxMisfits {
				misfits = append(misfits, store.Misfit{At: p.at, Text: p.text})
			}
		}
	}
	if len(parts) == 0 {
		return store.Textf("they break a rule of the schema"), nil
	}
	if more := len(parts) - maxProblems; more > 0 {
		parts = append(parts[:maxProblems], store.Textf("and %d more", more))
	}
	all = parts[0]
	for _, part := range parts[1:] {
		all = store.Textf("%s; %s", all, part)
	}
	return all, misfits
}

// placed prefixes a message with its location.
func placed(at []string, text store.Text) store.Text {
	if len(at) == 0 {
		return store.Textf("the arguments %s", text)
	}
	return store.Textf("%s %v", pointer(at), text)
}

// locate indexes all schemas by location, by which errors refer to them.
func (v *Validator) locate() {
	v.at = map[string]*jsonschema.Schema{}
	todo := []*jsonschema.Schema{v.root}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v.at[s.Location] != nil {
			continue
		}
		v.at[s.Location] = s
		todo = append(todo, below(s)...)
		inPlace(s, func(sub *jsonschema.Schema) bool {
			todo = append(todo, sub)
			return true
		})
	}
}

type explainer struct {
	v   *Validator
	doc any
}

// flatten returns the problems below e; of alternatives it takes the one that was most
// likely intended.
func (x *explainer) flatten(e *jsonschema.ValidationError) []problem {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return x.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return x.alternatives(e)
		}
		return []problem{{e.InstanceLocation, wrong, store.Textf("fits more than one of the forms that exclude each other (%d and %d, counted from 0)", k.Subschemas[0], k.Subschemas[1])}}
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return x.flattenAll(e.Causes)
	}
	return x.leaf(e)
}

func (x *explainer) flattenAll(causes []*jsonschema.ValidationError) []problem {
	var out []problem
	for _, c := range causes {
		out = append(out, x.flatten(c)...)
	}
	return out
}

// alternatives explains an anyOf or oneOf without a match.
func (x *explainer) alternatives(e *jsonschema.ValidationError) []problem {
	here := len(e.InstanceLocation)
	var types []string // types that the failing branches require of the value itself
	var branches []*jsonschema.ValidationError
	for _, branch := range e.Causes {
		if want := wrongType(branch, here); want != nil {
			types = append(types, want...)
		} else {
			branches = append(branches, branch)
		}
	}
	if len(branches) == 0 {
		slices.Sort(types)
		types = slices.Compact(types)
		return []problem{{e.InstanceLocation, wrong, x.received(e.InstanceLocation, store.Textf("must be %v", orList(types, aType)))}}
	}
	// {"kind":"a",…} or {"kind":"b",…}: use the branch with the matching kind.
	if meant := slices.DeleteFunc(slices.Clone(branches), func(b *jsonschema.ValidationError) bool { return wrongTag(b, here) }); len(meant) > 0 {
		branches = meant
	} else if merged := x.tags(branches, here); merged != nil {
		return merged
	}
	var best []problem
	for _, branch := range branches {
		if p := x.flatten(branch); best == nil || len(p) < len(best) {
			best = p
		}
	}
	if n := len(e.Causes); len(branches) > 1 && len(best) > 0 {
		last := &best[len(best)-1]
		last.text = store.Textf("%s (or use another of the %d forms)", last.text, n)
	}
	return best
}

// wrongType returns the types that a branch requires of the value itself, if that is why it
// failed.
func wrongType(e *jsonschema.ValidationError, here int) []string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		if len(e.InstanceLocation) == here {
			return k.Want
		}
	case *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range e.Causes {
			if want := wrongType(c, here); want != nil {
				return want
			}
		}
	}
	return nil
}

// wrongTag reports whether a branch fails because of a constant value one level down.
func wrongTag(e *jsonschema.ValidationError, here int) bool {
	switch k := e.ErrorKind.(type) {
	case *kind.Const:
		return len(e.InstanceLocation) == here+1
	case *kind.Enum:
		return len(e.InstanceLocation) == here+1 && len(k.Want) == 1
	case *kind.Group, *kind.Reference, *kind.AllOf:
		return slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return wrongTag(c, here) })
	}
	return false
}

// tags merges branches that all fail because of the constant value of one property.
func (x *explainer) tags(branches []*jsonschema.ValidationError, here int) []problem {
	var at []string
	var want []any
	for _, b := range branches {
		e := tagError(b, here)
		if e == nil || at != nil && !slices.Equal(at, e.InstanceLocation) {
			return nil
		}
		at = e.InstanceLocation
		switch k := e.ErrorKind.(type) {
		case *kind.Const:
			want = append(want, k.Want)
		case *kind.Enum:
			want = append(want, k.Want...)
		}
	}
	return []problem{{at, wrong, x.oneOf(want, at)}}
}

func tagError(e *jsonschema.ValidationError, here int) *jsonschema.ValidationError {
	if len(e.Causes) == 0 && wrongTag(e, here) {
		return e
	}
	for _, c := range e.Causes {
		if found := tagError(c, here); found != nil {
			return found
		}
	}
	return nil
}

// leaf explains one error without relevant errors below it.
func (x *explainer) leaf(e *jsonschema.ValidationError) []problem {
	at := e.InstanceLocation
	one := func(text store.Text) []problem { return []problem{{at, wrong, text}} }
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return x.required(e, k.Missing, store.Textf("is required"))
	case *kind.DependentRequired:
		return x.required(e, k.Missing, store.Textf("is required when %s is given", show(k.Prop)))
	case *kind.Dependency:
		return x.required(e, k.Missing, store.Textf("is required when %s is given", show(k.Prop)))
	case *kind.AdditionalProperties:
		var out []problem
		for _, name := range k.Properties {
			out = append(out, x.unknown(append(slices.Clone(at), name), x.v.at[e.SchemaURL]))
		}
		return out
	case *kind.FalseSchema:
		if parent, ok := strings.CutSuffix(e.SchemaURL, "/unevaluatedProperties"); ok && len(at) > 0 {
			return []problem{x.unknown(at, x.v.at[parent])}
		}
		return one(store.Textf("is not allowed"))
	case *kind.Type:
		return one(x.received(at, store.Textf("must be %v", orList(k.Want, aType))))
	case *kind.Enum:
		return one(x.oneOf(k.Want, at))
	case *kind.Const:
		return one(x.received(at, mustBe(k.Want)))
	case *kind.PropertyNames:
		return one(store.Textf("must not have a property named %s", show(k.Property)))
	case *kind.Not:
		return one(x.received(at, store.Textf("has a form that the schema excludes")))
	}
	return one(x.received(at, limits(e.ErrorKind)))
}

// limits returns the message for a rule that compares with one number or pattern.
func limits(k jsonschema.ErrorKind) store.Text {
	switch k := k.(type) {
	case *kind.Minimum:
		return store.Textf("must be at least %s", ratio(k.Want))
	case *kind.Maximum:
		return store.Textf("must be at most %s", ratio(k.Want))
	case *kind.ExclusiveMinimum:
		return store.Textf("must be greater than %s", ratio(k.Want))
	case *kind.ExclusiveMaximum:
		return store.Textf("must be less than %s", ratio(k.Want))
	case *kind.MultipleOf:
		return store.Textf("must be a multiple of %s", ratio(k.Want))
	case *kind.MinLength:
		return store.Textf("must have at least %d characters and has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return store.Textf("must have at most %d characters and has %d", k.Want, k.Got)
	case *kind.Pattern:
		return store.Textf("must match the pattern %s", store.Clip(k.Want, 120))
	case *kind.MinItems:
		return store.Textf("must have at least %d items and has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return store.Textf("must have at most %d items and has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return store.Textf("must not repeat an item (%d and %d are equal)", k.Duplicates[0], k.Duplicates[1])
	case *kind.AdditionalItems:
		return store.Textf("has %d items too many", k.Count)
	case *kind.Contains:
		return store.Textf("lacks an item of the form that the schema asks for")
	case *kind.MinContains:
		return store.Textf("must have at least %d items of the form that the schema asks for and has %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return store.Textf("must have at most %d items of that form and has %d", k.Want, len(k.Got))
	case *kind.MinProperties:
		return store.Textf("must have at least %d properties and has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return store.Textf("must have at most %d properties and has %d", k.Want, k.Got)
	}
	return store.Textf("breaks the rule %s", strings.Join(k.KeywordPath(), "/"))
}

func (x *explainer) required(e *jsonschema.ValidationError, names []string, rule store.Text) []problem {
	var out []problem
	for _, name := range names {
		text := rule
		if s := property(x.v.at[e.SchemaURL], name, 0); s != nil {
			text = describe(s, text)
		}
		out = append(out, problem{append(slices.Clone(e.InstanceLocation), name), missing, text})
	}
	return out
}

// unknown returns the problem of a property that the schema s doesn't have.
func (x *explainer) unknown(at []string, s *jsonschema.Schema) problem {
	name, head := at[len(at)-1], at[:len(at)-1]
	names := map[string]bool{}
	properties(s, names, 0)
	known := slices.Sorted(maps.Keys(names))
	text := store.Textf("is not a parameter; there are none")
	if near := store.Nearest(name, known); near != "" {
		text = store.Textf("is not a parameter, did you mean %s?", pointer(append(slices.Clone(head), near)))
	} else if len(known) > 0 {
		for i, k := range known {
			known[i] = pointer(append(slices.Clone(head), k))
		}
		if len(known) > 12 {
			known = append(known[:11], "…")
		}
		text = store.Textf("is not a parameter; there are %s", strings.Join(known, ", "))
	}
	return problem{at, unknown, text}
}

// maxHops is how many references are followed for a message.
const maxHops = 6

// properties collects the names that s and the schemas applied with it declare.
func properties(s *jsonschema.Schema, names map[string]bool, hops int) {
	if s == nil || hops > maxHops {
		return
	}
	for name := range s.Properties {
		names[name] = true
	}
	inPlace(s, func(sub *jsonschema.Schema) bool {
		properties(sub, names, hops+1)
		return len(names) < 500
	})
}

// property returns the declaration of one property.
func property(s *jsonschema.Schema, name string, hops int) (found *jsonschema.Schema) {
	if s == nil || hops > maxHops {
		return nil
	}
	if p := s.Properties[name]; p != nil {
		return p
	}
	inPlace(s, func(sub *jsonschema.Schema) bool {
		found = property(sub, name, hops+1)
		return found == nil
	})
	return found
}

// describe appends a parameter's types, values and description to a rule.
func describe(s *jsonschema.Schema, rule store.Text) store.Text {
	var types []string
	var enum []any
	text := ""
	for hops := 0; s != nil && hops <= maxHops; hops++ {
		if s.Types != nil && types == nil {
			types = s.Types.ToStrings()
		}
		if s.Enum != nil && enum == nil {
			enum = s.Enum.Values
		}
		if text == "" {
			text = sentence(cmp.Or(s.Description, s.Title))
		}
		s = s.Ref
	}
	head := orList(types, bareType)
	switch {
	case enum != nil && len(types) > 0:
		head = store.Textf("%v %v", head, choice(enum))
	case enum != nil:
		head = choice(enum)
	}
	switch some := head != (store.Text{}); {
	case some && text != "":
		return store.Textf("%s (%s: %s)", rule, head, text)
	case some:
		return store.Textf("%s (%s)", rule, head)
	case text != "":
		return store.Textf("%s (%s)", rule, text)
	}
	return rule
}

// sentence returns the first sentence of a description, on one line.
func sentence(s string) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	return store.Clip(strings.TrimSuffix(store.FirstSentence(s), "."), 120)
}

func (x *explainer) oneOf(want []any, at []string) store.Text {
	var names []string
	for _, w := range want {
		if s, ok := w.(string); ok {
			names = append(names, s)
		}
	}
	must := mustBe(want...)
	text := x.received(at, must)
	if s, ok := x.value(at).(string); ok && text != must {
		if near := store.Nearest(s, names); near != "" {
			word, _ := display(near)
			return store.Textf("%s, did you mean %s?", text, word)
		}
	}
	return text
}
