package daemon_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/daemon"
	"nize/daemon/api"
	"nize/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestWire holds each request of the control API to what it has always been:
// method, path, query and body, with every field filled.
func TestWire(t *testing.T) {
	var lines []string
	for _, op := range daemon.Operations() {
		v := reflect.New(op.Request).Elem()
		fillValue(v)
		path, query, body, err := api.Encode(op.Path, v.Interface())
		if err != nil {
			t.Errorf("%s %s: %v", op.Method, op.Path, err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s?%s %s", op.Method, op.Path, path, query.Encode(), body)))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "wire.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(got, "\n"), strings.Split(string(want), "\n")); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

// fillValue sets every field of a value to something that is not zero. A struct
// inside one of its own type stays zero; within holds the types around v.
func fillValue(v reflect.Value, within ...reflect.Type) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"v":1}`)
		return
	case *api.Secret:
		*x = api.NewSecret("s")
		return
	case *store.Secret:
		*x = store.NewSecret("s")
		return
	case *store.Rate:
		*x = store.Rate{Calls: 60, Per: store.Duration(time.Minute)}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("a b/ö:1")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), within...)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), within...)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key, within...)
		fillValue(elem, within...)
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		if slices.Contains(within, v.Type()) {
			return
		}
		within = append(slices.Clip(within), v.Type())
		for _, f := range v.Fields() {
			if f.CanSet() {
				fillValue(f, within...)
			}
		}
	}
}
