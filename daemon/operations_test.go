package daemon

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nize/daemon/api"
	"nize/daemon/commands"
	"nize/store"
)

// Every operation's request, with something in each of its fields, arrives as
// it was sent.
func TestRequestsArrive(t *testing.T) {
	for _, op := range Operations() {
		sent := reflect.New(op.Request).Elem()
		fill(sent)
		path, query, body, err := api.Encode(op.Path, sent.Interface())
		if err != nil {
			t.Errorf("%s %s: %v", op.Method, op.Path, err)
			continue
		}
		got := reflect.New(op.Request)
		on := http.NewServeMux()
		on.HandleFunc(op.Method+" "+op.Path, func(_ http.ResponseWriter, r *http.Request) {
			err = api.Decode(got.Interface(), r.PathValue, r.URL.Query(), body, true)
		})
		answer := httptest.NewRecorder()
		on.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), op.Method, path+"?"+query.Encode(), nil))
		if answer.Code != http.StatusOK || err != nil || !reflect.DeepEqual(got.Elem().Interface(), sent.Interface()) {
			t.Errorf("%s %s%s %s: %d, %v; got %+v, want %+v", op.Method, path, query.Encode(), body, answer.Code, err, got.Elem(), sent)
		}
	}
}

// fill puts something into every field that travels.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 30, 0, 5, time.UTC)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"n":9007199254740993}`)))
		return
	case store.Rate:
		v.Set(reflect.ValueOf(store.Rate{Calls: 60, Per: store.Duration(time.Minute)}))
		return
	case store.Value: // one of its two fields
		v.Set(reflect.ValueOf(store.Value{Text: "v"}))
		return
	case api.Secret:
		v.Set(reflect.ValueOf(api.NewSecret("a <secret>")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && (f.Tag.Get("json") != "-" || f.Tag.Get("path")+f.Tag.Get("query") != "") {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(`ä/b c?d=%2F&"e"`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(1<<63 + 1)
	case reflect.Float64:
		v.SetFloat(0.1)
	}
}

// TestCommandOrder: help lists every command, in the order that is written down.
func TestCommandOrder(t *testing.T) {
	var names []string
	for _, c := range new(operations).commands(new(commands.Commands)) {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff(commandOrder, names); diff != "" {
		t.Errorf("the commands are not those of commandOrder (-want +got):\n%s", diff)
	}
}
