package store

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestToolEqual changes every field of a tool, so that one that is new cannot
// be forgotten.
func TestToolEqual(t *testing.T) {
	yes, no := true, false
	full := func() Tool {
		hint := func() *bool { b := yes; return &b }
		return Tool{Server: "s", Name: "n", Title: "t", Description: "d", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{}`), Meta: json.RawMessage(`{}`), Icons: json.RawMessage(`{}`),
			Annotations: Annotations{Title: "a", ReadOnly: hint(), Destructive: hint(), Idempotent: hint(), OpenWorld: hint()},
			State:       ToolAccepted, Pin: "p", Accepted: "p", Findings: []string{"f"}, Around: Around{Launch: "l", Instructions: "i"}, Was: new(Definition)}
	}
	if a, b := full(), full(); !a.Equal(b) {
		t.Error("two tools with the same fields differ")
	}
	if a, b := (Tool{Findings: []string{}, Meta: json.RawMessage{}}), (Tool{}); !a.Equal(b) {
		t.Error("an empty list differs from none")
	}
	var change func(path string, v reflect.Value, a *Tool)
	change = func(path string, v reflect.Value, a *Tool) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			was := reflect.New(f.Type()).Elem()
			was.Set(f)
			others := []reflect.Value{reflect.Zero(f.Type())}
			switch f.Interface().(type) {
			case Annotations:
				change(name+".", f, a)
				continue
			case *bool:
				others = append(others, reflect.ValueOf(&no))
			case json.RawMessage:
				others = append(others, reflect.ValueOf(json.RawMessage(`[]`)))
			case []string:
				others = append(others, reflect.ValueOf([]string{"g"}), reflect.ValueOf([]string{"f", "g"}))
			}
			for _, o := range others {
				f.Set(o)
				if b := full(); a.Equal(b) || b.Equal(*a) {
					t.Errorf("a tool with another %s is equal", name)
				}
			}
			f.Set(was)
		}
	}
	a := full()
	change("", reflect.ValueOf(&a).Elem(), &a)
}
