package upstream

import (
	"testing"

	"nize/store"
)

func TestAnnotations(t *testing.T) {
	a := annotations([]byte(`{"title":"T","readOnlyHint":true,"destructiveHint":"yes","idempotentHint":null,"openWorldHint":false}`))
	if a.Title != "T" || a.ReadOnly == nil || !*a.ReadOnly || a.Destructive != nil || a.Idempotent != nil || a.OpenWorld == nil || *a.OpenWorld {
		t.Errorf("annotations %+v", a)
	}
	if got := annotations([]byte(`7`)); got != (store.Annotations{}) {
		t.Errorf("annotations of a number: %+v", got)
	}
}

func TestAllowed(t *testing.T) {
	cfg := store.Server{Name: "s", AllowedTools: []string{"one", "s:two", "list_*"}}
	for name, want := range map[string]bool{"one": true, "two": true, "list_all": true, "three": false, "on": false} {
		if got := allowed(cfg, name, nil); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
